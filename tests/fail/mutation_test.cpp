// Broken model files: every truncation and many random mutations either run or give an Error, and never anything else.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "analysis/checks.h"
#include "base/convert.h"
#include "interp/interp.h"
#include "onnx/import.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

namespace fs = std::filesystem;

struct Model {
  std::string name;
  std::string bytes;
};

std::vector<Model> models() {
  std::vector<Model> out;
  for (std::string folder : {"examples", "tests/fail/models"})
    for (const auto& entry : fs::directory_iterator(fs::path(SELKIE_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".onnx") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::stringstream text;
      text << in.rdbuf();
      out.push_back({entry.path().stem().string(), text.str()});
    }
  std::sort(out.begin(), out.end(), [](const Model& a, const Model& b) { return a.name < b.name; });
  return out;
}

// Zeros of the declared types, with 2 for dims that are not numbers.
HostValue input_for(const ir::Type& type) {
  if (type.kind == ir::Type::Kind::seq) return Sequence{};
  if (type.kind == ir::Type::Kind::opt) return Optional{};
  if (!type.is_tensor()) return Tensor(DType::f32, {});
  Dims dims;
  for (sym::Expr d : type.dims.value_or(ir::SymDims{})) dims.push_back(d.constant().value_or(2));
  return Tensor(type.dtype, std::move(dims));
}

enum class Outcome { ran, refused };

Outcome try_model(std::string_view bytes) {
  MemoryBudget::Scope scope(std::make_shared<MemoryBudget>(int64_t{1} << 26));
  try {
    auto module = onnx::import_bytes(bytes, ops::op_set(), "no such folder");
    std::vector<HostValue> inputs;
    for (const auto& p : module->main().body.parameters) inputs.push_back(input_for(p->type));
    analysis::Rdp rdp(*module);
    analysis::check_inputs(rdp, inputs);
    interp::Options options{.limits = {.loop_trips = 100, .call_depth = 50, .sequence_items = 1000},
                            .memory_limit = int64_t{1} << 26};
    interp::run(*module, std::move(inputs), options);
    return Outcome::ran;
  } catch (const Error&) {
    return Outcome::refused;
  }
}

TEST(Mutation, TheModelsThemselvesRun) {
  ASSERT_GE(models().size(), 4u);
  for (const Model& model : models()) EXPECT_EQ(try_model(model.bytes), Outcome::ran) << model.name;
}

TEST(Mutation, EveryTruncation) {
  for (const Model& model : models()) {
    size_t refused = 0;
    size_t step = model.bytes.size() > 4096 ? 7 : 1;
    for (size_t length = 0; length < model.bytes.size(); length += step)
      refused += try_model(std::string_view(model.bytes).substr(0, length)) == Outcome::refused;
    EXPECT_GT(refused, model.bytes.size() / step / 2) << model.name;
    std::printf("%s: %zu truncations, %zu refused\n", model.name.c_str(), (model.bytes.size() + step - 1) / step,
                refused);
  }
}

TEST(Mutation, TenThousandRandomOnesPerSeed) {
  const char* given = std::getenv("SELKIE_SEED");
  for (uint64_t seed :
       {uint64_t{1}, given ? uint64_t{std::strtoull(given, nullptr, 10)} : uint64_t{std::random_device{}()}}) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::mt19937_64 random(seed);
    std::vector<Model> all = models();
    size_t refused = 0;
    for (int i = 0; i < 10000; ++i) {
      std::string bytes = all[random() % all.size()].bytes;
      for (uint64_t edits = 1 + random() % 4; edits > 0 && !bytes.empty(); --edits) {
        size_t at = random() % bytes.size();
        switch (random() % 4) {
          case 0:
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
            break;
          case 1:
            bytes[at] = static_cast<char>(random());
            break;
          case 2:
            bytes.erase(at, 1 + random() % 8);
            break;
          default:
            bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16));
            break;
        }
      }
      refused += try_model(bytes) == Outcome::refused;
    }
    std::printf("10000 mutations, %zu refused\n", refused);
    EXPECT_GT(refused, 0u);
  }
}

}  // namespace
}  // namespace selkie::tests
