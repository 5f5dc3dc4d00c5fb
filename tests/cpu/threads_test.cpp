// One program in two contexts at once, each with threads of its own: what they share must not be written. The thread
// sanitizer sees it (preset tsan); every build compares the answers with those of a context that runs alone.
#include <gtest/gtest.h>

#include <thread>

#include "difference.h"
#include "driver/build.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

constexpr int rounds = 3;
constexpr int64_t lengths[] = {1, 2, 7, 16, 33, 70};

Tensor ramp(const Dims& dims, int64_t seed) {
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<int64_t>(i) * 7 + seed * 5) % 17 - 8) / 16;
  return Tensor::from<float>(DType::f32, dims, values);
}

// Text IR over constants of these names and shapes.
std::shared_ptr<const runtime::Executable> built(const std::vector<std::pair<const char*, Dims>>& constants,
                                                 const std::string& text) {
  auto module = std::make_unique<ir::Module>();
  for (const auto& [name, dims] : constants) module->add_constant(name, ramp(dims, 1));
  return driver::build(ir::parse(text, ops::op_set(), "threads", std::move(module))).executable;
}

// Inputs are of the shape `dims(length)`; what the two threads find must be what one finds alone.
template <class Shape>
void check_contexts(const std::shared_ptr<const runtime::Executable>& executable, Shape dims) {
  std::vector<HostValue> inputs, expected;
  runtime::Context alone(executable, 1);
  for (int64_t length : lengths) {
    inputs.emplace_back(ramp(dims(length), length));
    expected.push_back(alone.run({&inputs.back(), 1}).at(0));
  }
  std::string differences[2];
  auto work = [&](std::string& said) {
    runtime::Context context(executable, 2);
    for (int round = 0; round < rounds; ++round)
      for (size_t i = 0; i < inputs.size(); ++i) said += difference(context.run({&inputs[i], 1}).at(0), expected[i]);
  };
  std::thread first(work, std::ref(differences[0]));
  std::thread second(work, std::ref(differences[1]));
  first.join();
  second.join();
  EXPECT_EQ(differences[0], "");
  EXPECT_EQ(differences[1], "");
}

TEST(Contexts, ProductsAttentionAndGeneratedKernels) {
  auto executable = built({{"w", {48, 48}}, {"v", {48, 96}}}, R"(
func @main(%x: f32[B, S, 48]) -> (y: ?) {
  %q = matmul(%x, @w)
  %k = transpose(%q) {perm = [0, 2, 1]}
  %s = matmul(%q, %k)
  %p = softmax(%s)
  %a = matmul(%p, %x)
  %r = add(%a, %x)
  %h = matmul(%r, @v)
  %g = sigmoid(%h)
  %y = mul(%g, %h)
  return %y
})");
  check_contexts(executable, [](int64_t length) { return Dims{3, length, 48}; });
}

TEST(Contexts, ConvolutionsOfAllForms) {
  auto executable = built({{"stem", {32, 3, 3, 3}}, {"wide", {32, 32, 3, 3}}, {"deep", {32, 1, 3, 3}}}, R"(
func @main(%x: f32[N, 3, H, W]) -> (y: ?) {
  %a = conv(%x, @stem) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %b = relu(%a)
  %c = conv(%b, @wide) {pads = [1, 1, 1, 1]}
  %d = add(%c, %b)
  %e = conv(%d, @deep) {pads = [1, 1, 1, 1], group = 32}
  %f = max_pool(%e) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  %y = global_average_pool(%f)
  return %y
})");
  check_contexts(executable, [](int64_t length) { return Dims{2, 3, length, 40}; });
}

TEST(Contexts, RecurrentLayers) {
  auto executable = built({{"w", {1, 64, 24}}, {"r", {1, 64, 16}}}, R"(
func @main(%x: f32[T, 2, 24]) -> (y: ?) {
  %y, %h, %c = lstm(%x, @w, @r)
  return %y
})");
  check_contexts(executable, [](int64_t length) { return Dims{length, 2, 24}; });
}

TEST(Contexts, ProductsOfBytesAndOfHalves) {
  auto executable = built({{"w", {48, 40}}, {"v", {40, 24}}}, R"(
func @main(%x: f32[S, 48]) -> (y: ?) {
  %b, %b_scale, %b_zero = dynamic_quantize_linear(@w)
  %q, %scale, %zero = dynamic_quantize_linear(%x)
  %sums = matmul_integer(%q, %b, %zero, %b_zero)
  %p = cast(%sums) {to = 1}
  %h = mul(%p, %scale)
  %h16 = cast(%h) {to = 10}
  %v16 = cast(@v) {to = 10}
  %y16 = matmul(%h16, %v16)
  %y = cast(%y16) {to = 1}
  return %y
})");
  check_contexts(executable, [](int64_t length) { return Dims{length, 48}; });
}

// Nodes on the host share the module: its symbols and operators.
TEST(Contexts, BranchesAndSizesThatOnlyRunningTells) {
  auto executable = built({{"w", {8, 8}}}, R"(
const @zero: f32[] = {0}
func @main(%x: f32[S, 8]) -> (y: ?) {
  %m = reduce_sum(%x) {keepdims = 0}
  %c = greater(%m, @zero)
  %h = if(%c) then() { %p = matmul(%x, @w) yield %p } else() { %n = neg(%x) yield %n }
  %g = greater(%h, @zero)
  %i = non_zero(%g)
  %f = cast(%i) {to = 1}
  %y = add(%f, %f)
  return %y
})");
  EXPECT_FALSE(executable->program.host_calls.empty());
  check_contexts(executable, [](int64_t length) { return Dims{length, 8}; });
}

}  // namespace
}  // namespace selkie::tests
