// Weights of arms are packed by the first run that takes one, if a file has them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/mapped_file.h"
#include "difference.h"
#include "driver/artifact.h"
#include "driver/build.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view two_arms = R"(
func @main(%x: f32[N, 4, H, W], %c: bool[]) -> (y: ?) {
  %b = conv(%x, @before) {pads = [1, 1, 1, 1]}
  %a = if(%c) then() {
    %p = conv(%b, @then) {pads = [1, 1, 1, 1]}
    yield %p
  } else() {
    %q = conv(%b, @else) {pads = [1, 1, 1, 1]}
    %r = conv(%q, @both) {pads = [1, 1, 1, 1]}
    yield %r
  }
  %y = conv(%a, @both) {pads = [1, 1, 1, 1]}
  return %y
}
)";
const Dims filters = {4, 4, 3, 3};

class LateWeights : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::path(testing::TempDir()) / fmt::format("selkie_late_weights_{}", getpid());
    std::vector<float> values(4 * count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 17) / 16 - 0.5F;
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
    file_ = MappedFile::open(path_.string());
  }
  void TearDown() override { fs::remove(path_); }

  static size_t count() { return static_cast<size_t>(element_count(filters)); }

  driver::Built built(bool in_file, const driver::Options& options = {}) const {
    auto module = std::make_unique<ir::Module>();
    size_t at = 0;
    for (const char* name : {"before", "then", "else", "both"}) {
      std::span<const std::byte> raw = file_->bytes().subspan(at++ * count() * sizeof(float), count() * sizeof(float));
      if (!in_file) {
        module->add_constant(
            name, Tensor::from<float>(DType::f32, filters, {reinterpret_cast<const float*>(raw.data()), count()}));
        continue;
      }
      ir::Constant& constant = module->add_constant(name);
      constant.dims = filters;
      constant.raw = raw;
      constant.file = file_;
      ir::SymDims dims;
      for (int64_t d : filters) dims.push_back(module->symbols().constant(d));
      constant.value.type = ir::Type::tensor(DType::f32, std::move(dims));
    }
    return driver::build(ir::parse(two_arms, ops::op_set(), "two arms", std::move(module)), options);
  }
  static HostValue run(runtime::Context& context, bool condition) {
    Tensor x(DType::f32, {2, 4, 9, 8});
    for (int64_t i = 0; i < x.count(); ++i) x.mutable_data<float>()[i] = static_cast<float>(i % 11) / 8;
    std::vector<HostValue> inputs = {x, Tensor::from<bool>(DType::boolean, {}, std::array{condition})};
    return context.run(inputs).at(0);
  }

  fs::path path_;
  std::shared_ptr<const MappedFile> file_;
};

TEST_F(LateWeights, ArmsThatAreTakenHaveTheirs) {
  driver::Built late = built(true);
  driver::Built all = built(true, {.late_weights = false});
  ASSERT_NE(late.executable->late_weights, nullptr);
  EXPECT_EQ(all.executable->late_weights, nullptr);
  EXPECT_EQ(late.executable->late_weights->missing(), 2U) << "those that are read outside arms, too, cannot wait";
  runtime::Context context(late.executable);
  runtime::Context expected(all.executable);
  EXPECT_EQ(difference(run(context, true), run(expected, true)), "");
  EXPECT_EQ(late.executable->late_weights->missing(), 1U);
  EXPECT_EQ(difference(run(context, false), run(expected, false)), "");
  EXPECT_EQ(late.executable->late_weights->missing(), 0U);
}

TEST_F(LateWeights, ThoseInMemoryDoNotWait) { EXPECT_EQ(built(false).executable->late_weights, nullptr); }

TEST_F(LateWeights, SavedModelsHaveAll) {
  driver::Built late = built(true);
  fs::path saved = path_.string() + ".selkie";
  driver::save(late, saved.string());
  EXPECT_EQ(late.executable->late_weights->missing(), 0U);
  driver::Built loaded = driver::load(saved.string());
  fs::remove(saved);
  runtime::Context context(loaded.executable);
  runtime::Context expected(late.executable);
  for (bool condition : {true, false}) EXPECT_EQ(difference(run(context, condition), run(expected, condition)), "");
}

TEST_F(LateWeights, TwoContextsBringThemInOnce) {
  driver::Built all = built(true, {.late_weights = false});
  runtime::Context alone(all.executable);
  HostValue expected = run(alone, false);
  for (int round = 0; round < 10; ++round) {
    driver::Built late = built(true);
    std::string said[2];
    auto work = [&](std::string& differences) {
      runtime::Context context(late.executable);
      differences = difference(run(context, false), expected);
    };
    {
      std::jthread first(work, std::ref(said[0]));
      std::jthread second(work, std::ref(said[1]));
    }
    EXPECT_EQ(said[0] + said[1], "");
  }
}

}  // namespace
}  // namespace selkie::tests
