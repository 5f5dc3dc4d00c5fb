// Integer products and convolutions in programs: that they are library calls with their epilogues where they can be,
// are not where they must not, and equal the reference exactly either way.
#include "sizes.h"

namespace selkie::tests {
namespace {

std::string bytes(std::string_view name, std::string_view dtype, const Dims& dims, int64_t seed) {
  std::string values;
  int64_t least = dtype == "i8" ? -128 : 0;
  for (int64_t i = 0; i < element_count(dims); ++i)
    values += fmt::format("{}{}", i == 0 ? "" : ", ", (i * 83 + seed * 61) % 256 + least);
  std::string text;
  for (int64_t d : dims) text += fmt::format("{}{}", text.empty() ? "" : ", ", d);
  return fmt::format("const @{}: {}[{}] = {{{}}}\n", name, dtype, text, values);
}

program::Program compiled(const std::string& text) {
  return driver::compile(*ir::parse(text, ops::op_set(), "test")).program;
}

// One integer product with or without an epilogue, so many kernels beside it, and nothing on the host.
void expect_call(const std::string& text, bool epilogue, size_t launches) {
  program::Program p = compiled(text);
  ASSERT_EQ(p.integer_products.size(), 1u) << program::disassemble(p);
  EXPECT_EQ(p.integer_products[0].epilogue.has_value(), epilogue) << program::disassemble(p);
  EXPECT_EQ(count(p, program::Opcode::launch), launches) << program::disassemble(p);
  EXPECT_EQ(p.host_calls.size(), 0u) << program::disassemble(p);
}

void expect_no_call(const std::string& text) {
  program::Program p = compiled(text);
  EXPECT_EQ(p.integer_products.size(), 0u) << program::disassemble(p);
}

TEST(Integer, ProductsAreCalls) {
  for (std::string_view a : {"u8", "i8"})
    for (std::string_view b : {"u8", "i8"})
      for (std::string_view zeros : {"", ", %z", ", %z, @z", ", _, @zs", ", %zs, @zs"}) {
        bool rows = zeros.starts_with(", %zs");
        std::string text = bytes("w", b, {37, 19}, 1) + bytes("z", b, {}, 2) + bytes("zs", b, {19}, 3) +
                           fmt::format(
                               "func @main(%x: {0}[{1}M, 37], %z: {0}[], %zs: {0}[M]) -> (y: ?) {{ %y = "
                               "matmul_integer(%x, @w{2}) return %y }}",
                               a, rows ? "" : "B, ", zeros);
        expect_call(text, false, 0);
        check(text, {.runs = 8, .least_good = 2, .largest = 33, .whole_to = 255});
      }
}

TEST(Integer, ProductsThatAreNoCalls) {
  // Weights, or their zero points, that only the run tells; a batch of them; none at all.
  for (std::string_view body : {"%y = matmul_integer(%x, %w)", "%y = matmul_integer(%x, @w, _, %z)",
                                "%y = matmul_integer(%x, @b)", "%y = matmul_integer(%x, @v)"}) {
    std::string text =
        bytes("w", "u8", {5, 7}, 1) + bytes("b", "u8", {2, 5, 7}, 2) + bytes("v", "u8", {5}, 3) +
        fmt::format("func @main(%x: u8[2, M, 5], %w: u8[5, N], %z: u8[]) -> (y: ?) {{ {} return %y }}", body);
    expect_no_call(text);
    check(text, {.runs = 8, .least_good = 2, .largest = 17, .whole_to = 255});
  }
}

// As ONNX Runtime's dynamic quantisation writes a layer.
TEST(Integer, DynamicallyQuantisedLayers) {
  std::string text = bytes("w", "i8", {24, 40}, 1) + bytes("z", "i8", {}, 0) +
                     "const @s: f32[] = {0.0078125}\nconst @b: f32[40] = {" +
                     [] {
                       std::string values;
                       for (int i = 0; i < 40; ++i) values += fmt::format("{}{}", i == 0 ? "" : ", ", i - 20);
                       return values;
                     }() +
                     R"(}
func @main(%x: f32[B, S, 24]) -> (y: ?) {
  %q, %xs, %xz = dynamic_quantize_linear(%x)
  %p = matmul_integer(%q, @w, %xz, @z)
  %f = cast(%p) {to = 1}
  %c = mul(%xs, @s)
  %m = mul(%f, %c)
  %a = add(%m, @b)
  %y = relu(%a)
  return %y
})";
  program::Program p = compiled(text);
  ASSERT_EQ(p.integer_products.size(), 1u) << program::disassemble(p);
  EXPECT_TRUE(p.integer_products[0].epilogue.has_value()) << program::disassemble(p);
  EXPECT_EQ(p.host_calls.size(), 0u);
  check(text, {.runs = 12, .least_good = 4, .largest = 33, .whole_to = 255});
}

std::string quantised_product(std::string_view a, std::string_view b, std::string_view y, std::string_view scale) {
  return bytes("w", b, {29, 3}, 1) + bytes("za", a, {}, 2) + bytes("zb", b, {}, 3) + bytes("zy", y, {}, 4) +
         fmt::format("const @sa: f32[] = {{0.03}}\nconst @sb: f32{}\nconst @sy: f32[] = {{0.7}}\n", scale) +
         fmt::format(
             "func @main(%x: {}[B, M, 29]) -> (y: ?) {{ %y = qlinear_matmul(%x, @sa, @za, @w, @sb, @zb, @sy, "
             "@zy) return %y }}",
             a);
}

TEST(Integer, QuantisedProducts) {
  for (std::string_view a : {"u8", "i8"})
    for (std::string_view y : {"u8", "i8"})
      for (std::string_view scale : {"[] = {0.011}", "[3] = {0.011, 0.25, 0.003}"}) {
        expect_call(quantised_product(a, "i8", y, scale), true, 0);
        check(quantised_product(a, "i8", y, scale), {.runs = 8, .least_good = 2, .largest = 33, .whole_to = 255});
      }
  check(quantised_product("u8", "u8", "u8", "[] = {0.011}"),
        {.runs = 8, .least_good = 2, .largest = 33, .whole_to = 255});
}

TEST(Integer, QuantisedProductsWithoutUsualScalesStayAsTheyAre) {
  expect_no_call(quantised_product("u8", "i8", "u8", "[] = {0}"));
  expect_no_call(quantised_product("u8", "i8", "u8", "[] = {inf}"));
}

std::string convolution(std::string_view x, std::string_view w, const Dims& weights, std::string_view attrs,
                        std::string_view zeros) {
  return bytes("w", w, weights, 1) + bytes("z", w, {}, 2) + bytes("zs", w, {weights[0]}, 3) +
         fmt::format(
             "func @main(%x: {0}[N, {1}, H, W], %z: {0}[]) -> (y: ?) {{ %y = conv_integer(%x, @w{2}) {{{3}}} "
             "return %y }}",
             x, weights[1] * (attrs.find("group = 2") == std::string_view::npos ? 1 : 2), zeros, attrs);
}

TEST(Integer, Convolutions) {
  Rules rules{.runs = 8, .least_good = 3, .largest = 17, .whole_to = 255};
  for (std::string_view x : {"u8", "i8"})
    for (std::string_view zeros : {"", ", %z", ", %z, @z", ", %z, @zs"}) {
      for (std::string_view w : {"u8", "i8"}) {
        std::string text = convolution(x, w, {9, 5, 3, 3}, "pads = [1, 1, 1, 1]", zeros);
        EXPECT_EQ(compiled(text).integer_products.size(), 1u) << text;
        check(text, rules);
      }
      check(convolution(x, "i8", {12, 4, 3, 2}, "group = 2, strides = [2, 3], auto_pad = \"SAME_LOWER\"", zeros),
            rules);
    }
}

TEST(Integer, DepthwiseConvolutions) {
  for (std::string_view zeros : {"", ", %z, @z", ", %z, @zs"})
    for (std::string_view w : {"u8", "i8"}) {
      std::string text = convolution("u8", w, {2, 1, 3, 3}, "group = 2, pads = [1, 1, 1, 1], strides = [2, 1]", zeros);
      EXPECT_EQ(compiled(text).integer_products.size(), 1u) << text;
      check(text, {.runs = 8, .least_good = 3, .largest = 17, .whole_to = 255});
    }
}

TEST(Integer, ConvolutionsThatAreNoCallsAreKernels) {
  // Few channels in each group, and weights that only the run tells.
  std::string few = convolution("u8", "i8", {4, 1, 3, 3}, "group = 2, pads = [1, 1, 1, 1]", ", %z, @zs");
  std::string late =
      "func @main(%x: u8[N, 3, L], %w: i8[2, 3, 3], %z: u8[]) -> (y: ?) { %y = conv_integer(%x, %w, %z) return %y }";
  for (const std::string& text : {few, late}) {
    expect_no_call(text);
    EXPECT_EQ(compiled(text).host_calls.size(), 0u);
    check(text, {.runs = 12, .least_good = 3, .largest = 17, .whole_to = 255});
  }
}

TEST(Integer, QuantisedConvolutionsFollowEachOther) {
  std::string scales =
      "const @sx: f32[] = {0.02}\nconst @sw: f32[6] = {0.01, 0.02, 0.03, 0.001, 0.5, 0.007}\n"
      "const @sv: f32[] = {0.004}\nconst @sy: f32[] = {0.9}\n"
      "const @b: i32[6] = {1000, -2000, 30, 4, 50000, -6}\n";
  std::string text = scales + bytes("w", "i8", {6, 4, 3, 3}, 1) + bytes("v", "i8", {8, 6, 1, 1}, 2) +
                     bytes("zx", "u8", {}, 1) + bytes("zw", "i8", {6}, 2) + bytes("zv", "i8", {}, 0) +
                     bytes("zy", "u8", {}, 3) + R"(
func @main(%x: u8[N, 4, H, W]) -> (y: ?) {
  %a = qlinear_conv(%x, @sx, @zx, @w, @sw, @zw, @sy, @zy, @b) {pads = [1, 1, 1, 1]}
  %y = qlinear_conv(%a, @sy, @zy, @v, @sv, @zv, @sy, @zy)
  return %y
})";
  program::Program p = compiled(text);
  ASSERT_EQ(p.integer_products.size(), 2u) << program::disassemble(p);
  EXPECT_TRUE(p.integer_products[0].epilogue.has_value()) << program::disassemble(p);
  // The input into channels-last, and what makes the output bytes, which are not; nothing between the two.
  EXPECT_EQ(count(p, program::Opcode::launch), 2u) << program::disassemble(p);
  check(text, {.runs = 12, .least_good = 3, .largest = 17, .whole_to = 255});
}

}  // namespace
}  // namespace selkie::tests
