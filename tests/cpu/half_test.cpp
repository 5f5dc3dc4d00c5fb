// Products and convolutions of f16 and bf16 in programs: library calls in f32, narrowed in their epilogues.
#include "kernels/half_table.h"
#include "sizes.h"

namespace selkie::tests {
namespace {

std::string constant(std::string_view name, std::string_view dtype, const Dims& dims, int64_t seed) {
  std::string values;
  for (int64_t i = 0; i < element_count(dims); ++i)
    values += fmt::format("{}{}", i == 0 ? "" : ", ", static_cast<double>((i * 7 + seed * 5) % 17 - 8) / 16);
  std::string text;
  for (int64_t d : dims) text += fmt::format("{}{}", text.empty() ? "" : ", ", d);
  return fmt::format("const @{}: {}[{}] = {{{}}}\n", name, dtype, text, values);
}

program::Program compiled(const std::string& text) {
  return driver::compile(*ir::parse(text, ops::op_set(), "test")).program;
}

TEST(Half, Products) {
  for (std::string_view dtype : {"f16", "bf16"}) {
    std::string weights = constant("w", dtype, {24, 17}, 1) + constant("b", dtype, {17}, 2);
    std::string layer = weights + fmt::format(
                                      "func @main(%x: {}[B, S, 24]) -> (y: ?) {{ %p = matmul(%x, @w) %a = "
                                      "add(%p, @b) %y = relu(%a) return %y }}",
                                      dtype);
    program::Program p = compiled(layer);
    ASSERT_EQ(p.products.size(), 1u) << program::disassemble(p);
    EXPECT_TRUE(p.products[0].packed && p.products[0].epilogue) << program::disassemble(p);
    EXPECT_EQ(count(p, program::Opcode::launch), 1u) << program::disassemble(p);  // widens the input
    check(layer, {.runs = 12, .least_good = 4, .largest = 37});
    check(weights + fmt::format("func @main(%x: {}[24, M]) -> (y: ?) {{ %y = gemm(%x, @w, @b) {{transA = 1, alpha = "
                                "0.5}} return %y }}",
                                dtype),
          {.runs = 12, .least_good = 4, .largest = 37});
    check(fmt::format("func @main(%x: {0}[B, M, K], %y: {0}[B, K, N]) -> (y: ?) {{ %z = matmul(%x, %y) return %z }}",
                      dtype),
          {.runs = 24, .least_good = 4, .largest = 37});
  }
}

// So many weights that caches do not hold them in f32 are kept small.
TEST(Half, LargeWeightsStaySmall) {
  if (kernels::half_table(kernels::best_isa()) == nullptr) GTEST_SKIP() << "this processor converts no f16";
  int64_t side = 8 + static_cast<int64_t>(std::sqrt(static_cast<double>(kernels::cache_sizes().l2) / 8));
  for (std::string_view dtype : {"f16", "bf16"}) {
    std::string text =
        constant("w", dtype, {side, side + 1}, 1) +
        fmt::format("func @main(%x: {}[M, {}]) -> (y: ?) {{ %y = matmul(%x, @w) return %y }}", dtype, side);
    program::Program p = compiled(text);
    ASSERT_EQ(p.products.size(), 1u);
    EXPECT_EQ(p.registers[p.products[0].b.value].dtype, DType::f16);  // which holds these numbers, and is faster
    check(text, {.runs = 4, .least_good = 2, .largest = 70});
  }
}

TEST(Half, Convolutions) {
  for (std::string_view dtype : {"f16", "bf16"}) {
    std::string text = constant("w", dtype, {9, 4, 3, 3}, 1) + constant("b", dtype, {9}, 2) +
                       constant("v", dtype, {9, 1, 3, 3}, 3) +
                       fmt::format(
                           "func @main(%x: {}[N, 4, H, W]) -> (y: ?) {{ %c = conv(%x, @w, @b) {{pads = [1, 1, "
                           "1, 1]}} %r = relu(%c) %y = conv(%r, @v) {{group = 9, pads = [1, 1, 1, 1]}} "
                           "return %y }}",
                           dtype);
    EXPECT_EQ(compiled(text).convolutions.size(), 2u);
    check(text, {.runs = 12, .least_good = 4, .largest = 17});
  }
}

}  // namespace
}  // namespace selkie::tests
