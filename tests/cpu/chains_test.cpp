// Convolutions that are made together, a few lines at a time: what models give with and without that, and what it
// saves.
#include <gtest/gtest.h>

#include <algorithm>

#include "difference.h"
#include "driver/build.h"
#include "ir/parse.h"
#include "kernels/table.h"
#include "ops/registry.h"
#include "program/chains.h"

namespace selkie::tests {
namespace {

constexpr int64_t wide = 32;
constexpr int64_t narrow = 8;

// Two separable blocks. The first one's input is not used after its first convolution, so that its memory might serve
// for results; the second adds its input.
constexpr std::string_view blocks = R"(
func @main(%x: f32[N, 8, H, W]) -> (y: ?) {
  %s = relu(%x)
  %s0 = conv(%s, @first) {pads = [1, 1, 1, 1]} from "stem"
  %a = conv(%s0, @expand)
  %b = relu(%a)
  %c = conv(%b, @depthwise) {pads = [1, 1, 1, 1], group = 32}
  %d = hard_swish(%c)
  %e = conv(%d, @project)
  %f = conv(%e, @expand)
  %g = sigmoid(%f)
  %h = conv(%g, @depthwise) {pads = [1, 1, 1, 1], group = 32}
  %i = conv(%h, @project)
  %j = add(%i, %e)
  %y = neg(%j)
  return %y KEPT
}
)";

// The same in an arm.
constexpr std::string_view in_an_arm = R"(
func @main(%x: f32[N, 8, H, W], %take: bool[]) -> (y: ?) {
  %s = relu(%x)
  RESULTS = if(%take) then() {
    %a = conv(%s, @expand)
    %b = relu(%a)
    %c = conv(%b, @depthwise) {pads = [1, 1, 1, 1], group = 32}
    %d = conv(%c, @project)
    yield %d KEPT
  } else() {
    yield %s OTHERS
  }
  return RESULTS
}
)";

// `kept` are values that are outputs, too, so that they must be stored.
driver::Built built(std::string_view text, const std::string& kept) {
  auto module = std::make_unique<ir::Module>();
  auto add = [&](const char* name, Dims dims) {
    std::vector<float> values(static_cast<size_t>(element_count(dims)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 17) / 40 - 0.2F;
    module->add_constant(name, Tensor::from<float>(DType::f32, dims, values));
  };
  add("first", {narrow, narrow, 3, 3});
  add("expand", {wide, narrow, 1, 1});
  add("depthwise", {wide, 1, 3, 3});
  add("project", {narrow, wide, 1, 1});
  std::string model(text);
  std::string results = "%y";
  std::string declared = "(y: ?";
  std::string others;
  for (size_t at = kept.find('%'); at != std::string::npos; at = kept.find('%', at + 1)) {
    results += fmt::format(", %r{}", at);
    declared += fmt::format(", r{}: ?", at);
    others += ", %s";
  }
  auto replace = [&](std::string_view what, const std::string& by) {
    for (size_t at = model.find(what); at != std::string::npos; at = model.find(what, at + by.size()))
      model.replace(at, what.size(), by);
  };
  replace(" KEPT", kept);
  replace(" OTHERS", others);
  replace("RESULTS", results);
  replace("(y: ?", declared);
  return driver::build(ir::parse(model, ops::op_set(), "chains", std::move(module)));
}

Tensor image(int64_t batch, int64_t height, int64_t width) {
  Tensor x(DType::f32, {batch, narrow, height, width});
  for (int64_t i = 0; i < x.count(); ++i) x.mutable_data<float>()[i] = static_cast<float>(i * 13 % 29) / 16 - 0.8F;
  return x;
}

// An image whose wide tensors do not fit into the second-level cache.
int64_t large() {
  int64_t side = 32;
  while (side * side * wide * 4 <= kernels::cache_sizes().l2) side += 16;
  return side;
}

size_t chains_in(runtime::Context& context, std::span<const HostValue> inputs) {
  runtime::Profile profile;
  context.record_to(&profile);
  context.run(inputs);
  context.record_to(nullptr);
  return static_cast<size_t>(
      std::ranges::count(profile.events, "chain", [](const auto& event) { return event.work.kind; }));
}

TEST(Chains, GiveWhatSingleConvolutionsGive) {
  driver::Built together = built(blocks, "");
  driver::Built alone = built(blocks, ", %b, %d, %g, %h");
  EXPECT_EQ(program::find_chains(together.executable->program).size(), 2U);
  for (int threads : {1, 2, 3}) {
    runtime::Context context(together.executable, threads);
    runtime::Context expected(alone.executable, threads);
    EXPECT_EQ(chains_in(expected, std::vector<HostValue>{image(1, large(), large())}), 0U);
    for (auto [batch, height, width] : {std::array<int64_t, 3>{1, large(), large()},
                                        {2, large(), large() + 3},
                                        {3, large() / 2, large() + 1},
                                        {1, 5, 4},
                                        {1, 1, 1},
                                        {0, 4, 4}}) {
      std::vector<HostValue> inputs = {image(batch, height, width)};
      EXPECT_EQ(difference(context.run(inputs)[0], expected.run(inputs)[0]), "")
          << batch << " images of " << height << "x" << width << ", " << threads << " threads";
    }
  }
}

TEST(Chains, NeedNoMemoryForWhatLiesBetween) {
  driver::Built together = built(blocks, "");
  runtime::Context context(together.executable);
  int64_t side = large();
  std::vector<HostValue> inputs = {image(1, side, side)};
  EXPECT_EQ(chains_in(context, inputs), 2U);
  int64_t narrow_bytes = side * side * narrow * 4;
  EXPECT_LT(context.statistics().arena_bytes, 4 * narrow_bytes) << "a wide tensor takes as much";
  EXPECT_EQ(context.memory_plan(inputs).arena_bytes, context.statistics().arena_bytes);
}

TEST(Chains, NotOfSmallImages) {
  driver::Built together = built(blocks, "");
  runtime::Context context(together.executable);
  std::vector<HostValue> inputs = {image(1, 6, 6)};
  EXPECT_EQ(chains_in(context, inputs), 0U);
}

TEST(Chains, InArmsThatAreTakenOrNot) {
  driver::Built together = built(in_an_arm, "");
  runtime::Context context(together.executable);
  int64_t side = large();
  Tensor x = image(1, side, side);
  auto inputs = [&](bool take) {
    return std::vector<HostValue>{x, Tensor::from<bool>(DType::boolean, {}, std::array{take})};
  };
  EXPECT_EQ(chains_in(context, inputs(true)), 1U);
  EXPECT_EQ(chains_in(context, inputs(false)), 0U);
  driver::Built alone = built(in_an_arm, ", %b, %c");
  runtime::Context expected(alone.executable);
  EXPECT_EQ(chains_in(expected, inputs(true)), 0U);
  for (bool take : {true, false})
    EXPECT_EQ(difference(context.run(inputs(take))[0], expected.run(inputs(take))[0]), "");
}

}  // namespace
}  // namespace selkie::tests
