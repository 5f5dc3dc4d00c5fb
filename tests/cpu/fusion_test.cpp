// Fusion and programs: what becomes one kernel, what must not, and what a program refuses.
#include <gtest/gtest.h>

#include "codegen/loops.h"
#include "driver/build.h"
#include "ir/parse.h"
#include "kir/interpret.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

std::unique_ptr<ir::Module> parse(const char* text) { return ir::parse(text, ops::op_set(), "test"); }

// A constant of so many elements, as text.
std::string elements(size_t count) {
  std::string text = "{0";
  for (size_t i = 1; i < count; ++i) text += ", 0";
  return text + "}";
}

program::Program compile(const std::string& text) {
  auto module = parse(text.c_str());
  return driver::compile(*module).program;
}

TEST(Fusion, ChainOfElementsIsOneKernel) {
  program::Program p = compile(R"(
func @main(%x: f32[N, M], %y: f32[M]) -> (z: f32[N, M]) {
  %a = add(%x, %y)
  %b = sigmoid(%a)
  %c = mul(%a, %b)
  return %c
})");
  EXPECT_EQ(p.launches.size(), 1u);
  EXPECT_TRUE(p.host_calls.empty());
}

TEST(Fusion, NormalisationInPiecesIsOneKernel) {
  program::Program p = compile(R"(
const @last: i64[1] = {-1}
const @two: f32[] = {2}
const @small: f32[] = {0.00001}
func @main(%x: f32[B, S, 64], %g: f32[64], %b: f32[64]) -> (y: f32[B, S, 64]) {
  %m = reduce_mean(%x, @last)
  %d = sub(%x, %m)
  %q = pow(%d, @two)
  %v = reduce_mean(%q, @last)
  %e = add(%v, @small)
  %s = sqrt(%e)
  %n = div(%d, %s)
  %t = mul(%n, %g)
  %y = add(%t, %b)
  return %y
})");
  EXPECT_EQ(p.launches.size() + p.host_calls.size(), 1u) << program::disassemble(p);
}

// The last axis stays the last axis under other dims: its elements are read side by side, not one by one.
TEST(Fusion, RowsSeenThroughAReshapeAreContiguous) {
  auto module = parse(R"(
const @dims: i64[2] = {-1, 6625}
func @main(%x: f32[N, T, 6625], %b: f32[6625]) -> (y: ?) {
  %s = add(%x, %b)
  %r = reshape(%s, @dims)
  %y = softmax(%r)
  return %y
})");
  compiler::Compiled compiled = driver::compile(*module);
  ASSERT_EQ(compiled.kernels.size(), 1u) << program::disassemble(compiled.program);
  std::string text = kir::print(compiled.kernels[0]);
  EXPECT_NE(text.find("v1"), std::string::npos);
  for (const char* division : {"mod(v1", "floordiv(v1", "floordiv(v2", "mod(v3"})
    EXPECT_EQ(text.find(division), std::string::npos) << text;
}

// That the elements of a row are there is known inside the loop over them only: a row without any has a sum, too.
TEST(Fusion, WhatALoopTellsHoldsInsideIt) {
  sym::Context symbols;
  kir::Kernel kernel = codegen::shape_loops(kir::parse(symbols, R"(kernel @k(out c: i64[M], a: i64[M*N]) sizes(M, N) {
    serial i < M {
      local sum: i64 = i64 0
      serial j < N { sum add= a[N*i + mod(j, N)] }
      serial never < 0 { sum add= a[never] }
      c[i] = add(sum, [max(N, 1) + i])
    } })"),
                                            symbols);
  std::string text = kir::print(kernel);
  EXPECT_EQ(text.find("mod"), std::string::npos) << text;
  for (int64_t n : {0, 2}) {
    std::vector<int64_t> a(static_cast<size_t>(3 * n), 10);
    std::vector<int64_t> c(3);
    kir::BufferView buffers[] = {{.data = c.data(), .count = 3}, {.data = a.data(), .count = 3 * n}};
    int64_t sizes[] = {3, n};
    int64_t rows[] = {0, 3};
    kir::interpret(kernel, buffers, sizes, rows);
    EXPECT_EQ(c, n == 0 ? (std::vector<int64_t>{1, 2, 3}) : (std::vector<int64_t>{22, 23, 24})) << text;
  }
}

std::string only_kernel(const char* text) {
  auto module = parse(text);
  compiler::Compiled compiled = driver::compile(*module);
  EXPECT_EQ(compiled.kernels.size(), 1u) << program::disassemble(compiled.program);
  return compiled.kernels.empty() ? "" : kir::print(compiled.kernels[0]);
}

// Pixels of channels-last images are reduced: neither what is reduced nor what is stored lies side by side, but what
// other channels read does.
TEST(Fusion, ReductionsReadMemoryInOrder) {
  std::string text = only_kernel(R"(
const @axes: i64[2] = {3, 5}
func @main(%x: f32[N, 4, H, 4, W, 32]) -> (y: ?) {
  %t = transpose(%x) {perm = [0, 5, 1, 2, 3, 4]}
  %y = reduce_max(%t, @axes) {keepdims = 0}
  return %y
})");
  EXPECT_NE(text.find("vector v1 < 32"), std::string::npos) << text;
  EXPECT_NE(text.find(" + v1 + 32*v3]"), std::string::npos) << text;
}

// Too few channels make no vector, and rows that lie side by side stay what lanes are.
TEST(Fusion, ReductionsOfFewChannelsOrOfRowsStayAsTheyAre) {
  std::string few = only_kernel(R"(
const @axes: i64[2] = {3, 5}
func @main(%x: f32[N, 4, H, 4, W, 3]) -> (y: ?) {
  %t = transpose(%x) {perm = [0, 5, 1, 2, 3, 4]}
  %y = reduce_max(%t, @axes) {keepdims = 0}
  return %y
})");
  EXPECT_EQ(few.find("vector v1 < 3 "), std::string::npos) << few;
  std::string rows = only_kernel(R"(
const @last: i64[1] = {-1}
func @main(%x: f32[N, 32, W]) -> (y: ?) { %y = reduce_max(%x, @last) {keepdims = 0} return %y })");
  EXPECT_EQ(rows.find("vector v1 < 32"), std::string::npos) << rows;
}

// The most loops around an accumulation.
size_t deepest_sum(const kir::Block& block, size_t depth = 0) {
  size_t deepest = 0;
  for (const kir::Statement& s : block) {
    if (s.kind == kir::Statement::Kind::accumulate) deepest = std::max(deepest, depth);
    deepest = std::max(deepest, deepest_sum(s.body, depth + (s.kind == kir::Statement::Kind::loop ? 1 : 0)));
  }
  return deepest;
}

size_t deepest_sum(const std::string& node, std::string_view dims = "N, 24, H, W") {
  auto module =
      parse(fmt::format("func @main(%x: f32[{}]) -> (y: ?) {{\n  %y = {}\n  return %y\n}}", dims, node).c_str());
  compiler::Compiled compiled = driver::compile(*module);
  EXPECT_EQ(compiled.kernels.size(), 1U);
  return deepest_sum(compiled.kernels.at(0).body);
}

// Along an axis that is not the innermost, each element would have its own otherwise.
TEST(Fusion, ReductionsAreNotRepeatedAlongWhatTheyReduce) {
  // All other axes are one loop.
  for (int axis : {1, 2, 3}) EXPECT_EQ(deepest_sum(fmt::format("softmax(%x) {{axis = {}}}", axis)), 2U);
  EXPECT_EQ(deepest_sum("mean_variance_normalization(%x) {axes = [0, 2, 3]}"), 4U);
}

// Vectors make up for a few steps, and read memory in order.
TEST(Fusion, ReductionsOverAFewElementsAreRepeated) {
  EXPECT_EQ(deepest_sum("softmax(%x) {axis = 1}", "N, 3, H, W"), 3U);
}

TEST(Fusion, SoftmaxOfScaledMaskedScoresIsOneKernel) {
  program::Program p = compile(R"(
const @eight: f32[] = {8}
func @main(%x: f32[B, 12, S, S], %mask: f32[B, 1, 1, S]) -> (y: f32[B, 12, S, S]) {
  %a = div(%x, @eight)
  %b = add(%a, %mask)
  %y = softmax(%b)
  return %y
})");
  EXPECT_EQ(p.launches.size(), 1u) << program::disassemble(p);
  EXPECT_TRUE(p.host_calls.empty());
}

TEST(Fusion, ReductionThatWouldBeRepeatedIsStored) {
  // For each of the B·M results a sum of its own would be made again; it is made once instead.
  program::Program p = compile(R"(
const @last: i64[1] = {-1}
func @main(%x: f32[M, K], %y: f32[B, M]) -> (z: f32[B, M]) {
  %s = reduce_sum(%x, @last) {keepdims = 0}
  %z = add(%y, %s)
  return %z
})");
  EXPECT_EQ(p.launches.size(), 2u) << program::disassemble(p);
}

TEST(Fusion, WindowsOverWindowsAreNotMultiplied) {
  program::Program p = compile(R"(
func @main(%x: f32[N, 4, H, W]) -> (z: f32[*]) {
  %a = max_pool(%x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  %b = max_pool(%a) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  %c = max_pool(%b) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  return %c
})");
  EXPECT_EQ(p.launches.size(), 3u) << program::disassemble(p);
}

TEST(Fusion, ValueWithUsersOutsideIsStored) {
  program::Program p = compile(R"(
func @main(%x: f32[N]) -> (a: f32[N], b: f32[N]) {
  %a = exp(%x)
  %b = neg(%a)
  return %a, %b
})");
  EXPECT_EQ(p.launches.size(), 2u);
}

TEST(Fusion, ReshapeNeedsNoKernel) {
  program::Program p = compile(R"(
const @shape: i64[2] = {0, -1}
func @main(%x: f32[N, 3, 4]) -> (y: f32[N, 12]) {
  %y = reshape(%x, @shape)
  return %y
})");
  EXPECT_TRUE(p.launches.empty());
  EXPECT_TRUE(p.host_calls.empty());
}

TEST(Programs, SizesOfAViewThatIsAResultAreComputed) {
  driver::Built built = driver::build(parse(R"(
const @all: i64[1] = {-1}
func @main(%x: f32[N]) -> (y: ?) {
  %i = non_zero(%x)
  %y = reshape(%i, @all)
  return %y
})"));
  std::vector<float> x{1, 0, 2, 3};
  Tensor input = Tensor::from<float>(DType::f32, {4}, x);
  EXPECT_EQ(runtime::Context(built.executable).run(std::vector<HostValue>{input})[0].describe(), "i64[3]");
}

TEST(Programs, EqualKernelsAreOne) {
  program::Program p = compile(R"(
func @main(%x: f32[N, 8], %y: f32[M, 8]) -> (a: f32[N, 8], b: f32[M, 8], c: f32[M, 8]) {
  %a = exp(%x)
  %b = exp(%y)
  %c = log(%y)
  return %a, %b, %c
})");
  EXPECT_EQ(p.launches.size(), 3u);
  EXPECT_EQ(p.kernels.size(), 2u);
}

std::string error_of(const char* text, std::vector<HostValue> inputs) {
  driver::Built built = driver::build(parse(text));
  runtime::Context context(built.executable);
  try {
    context.run(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Programs, IndexOutsideIsRefused) {
  const char* text = R"(
func @main(%table: f32[N, 4], %ids: i64[S]) -> (y: f32[S, 4]) {
  %y = gather(%table, %ids)
  return %y
})";
  std::vector<int64_t> inside{0, -3};
  std::vector<int64_t> outside{0, 3};
  EXPECT_EQ(error_of(text, {Tensor(DType::f32, {3, 4}), Tensor::of_i64(inside)}), "");
  EXPECT_NE(error_of(text, {Tensor(DType::f32, {3, 4}), Tensor::of_i64(outside)}).find("index 3 is outside -3..2"),
            std::string::npos);
}

TEST(Programs, InputsThatDoNotFitAreRefused) {
  const char* text = R"(
func @main(%x: f32[N, 4], %y: f32[N]) -> (z: f32[N, 4]) {
  %z = neg(%x)
  return %z
})";
  EXPECT_NE(error_of(text, {Tensor(DType::f32, {3, 5}), Tensor(DType::f32, {3})}).find("input 'x' dim 1 is 5"),
            std::string::npos);
  EXPECT_NE(error_of(text, {Tensor(DType::f32, {3, 4}), Tensor(DType::f32, {2})}).find("input 'y' dim 0 is 2"),
            std::string::npos);
  EXPECT_NE(error_of(text, {Tensor(DType::f32, {3, 4})}).find("2 inputs, but 1"), std::string::npos);
  EXPECT_NE(error_of(text, {Tensor(DType::f64, {3, 4}), Tensor(DType::f32, {3})}).find("must be f32"),
            std::string::npos);
}

TEST(Programs, ANewShapePlansOnceAndAnOldOneNotAgain) {
  driver::Built built = driver::build(parse(R"(
func @main(%x: f32[N, 8], %w: f32[8, 8]) -> (y: f32[N, 8]) {
  %a = matmul(%x, %w)
  %b = relu(%a)
  %c = matmul(%b, %w)
  return %c
})"));
  runtime::Context context(built.executable);
  for (int64_t n : {3, 5, 3, 0, 5, 1})
    EXPECT_EQ(
        context.run(std::vector<HostValue>{Tensor(DType::f32, {n, 8}), Tensor(DType::f32, {8, 8})})[0].tensor().dim(0),
        n);
  EXPECT_EQ(context.statistics().plans, 4);
}

// Convolutions of 16 channels to 32 and back around some lines that make %b of %a and %s.
std::string disassemble_between_convolutions(const std::string& lines) {
  return program::disassemble(
      compile("const @w: f32[32, 16, 1, 1] = " + elements(512) + "\nconst @v: f32[16, 32, 1, 1] = " + elements(512) +
              "\nconst @d: f32[32, 1, 3, 3] = " + elements(288) + "\nconst @row: f32[32, 1, 1] = " + elements(32) + R"(
const @low: f32[] = {0}
const @high: f32[] = {6}
func @main(%x: f32[N, 16, H, W], %t: f32[N, 16, H, W]) -> (y: f32[N, 16, H, W]) {
  %s = conv(%t, @w)
  %a = conv(%x, @w)
  )" + lines + R"(
  %y = conv(%b, @v)
  return %y
})"));
}

// Sums with what is in the same place, and bounds, are made as the library stores its results.
TEST(Fusion, BoundsAndSumsAreMadeAsResultsAreStored) {
  const std::pair<const char*, const char*> cases[] = {
      {"%b = relu(%a)", " at least 0  #"},
      {"%b = clip(%a, @low, @high)", " at least 0 at most 6  #"},
      {"%b = add(%s, %a)", " + r"},
      {"%c = add(%a, %s)\n  %b = relu(%c)", "at least 0  #"},
      {"%c = conv(%a, @d) {group = 32, pads = [1, 1, 1, 1]}\n  %b = clip(%c, @low, @high)",
       " depthwise at least 0 at most 6  #"}};
  for (const auto& [lines, want] : cases) {
    std::string text = disassemble_between_convolutions(lines);
    EXPECT_NE(text.find(want), std::string::npos) << lines << "\n" << text;
    EXPECT_EQ(text.find(" then "), std::string::npos) << lines << "\n" << text;
  }
}

TEST(Fusion, WhatIsMoreThanBoundsAndASumIsAnEpilogue) {
  for (const char* lines : {"%b = sigmoid(%a)", "%b = mul(%a, %s)", "%b = sub(%s, %a)", "%b = div(%a, @row)",
                            "%c = relu(%a)\n  %b = add(%c, %s)"}) {
    std::string text = disassemble_between_convolutions(lines);
    EXPECT_NE(text.find(" then "), std::string::npos) << lines << "\n" << text;
    EXPECT_EQ(text.find(" + r"), std::string::npos) << lines << "\n" << text;
  }
}

}  // namespace
}  // namespace selkie::tests
