// Library kernels in programs: convolutions, products, attention and recurrent layers at sizes that only the run tells,
// with what is fused into them, and the layouts around them.
#include "sizes.h"

namespace selkie::tests {
namespace {

// A constant of small numbers.
std::string constant(std::string_view name, const Dims& dims, int64_t seed) {
  std::string values;
  for (int64_t i = 0; i < element_count(dims); ++i)
    values += fmt::format("{}{}", i == 0 ? "" : ", ", static_cast<double>((i * 7 + seed * 5) % 17 - 8) / 16);
  std::string text;
  for (int64_t d : dims) text += fmt::format("{}{}", text.empty() ? "" : ", ", d);
  return fmt::format("const @{}: f32[{}] = {{{}}}\n", name, text, values);
}

std::string convolution(std::string_view input, const Dims& weights, std::string_view attrs,
                        std::string_view after = "%y = conv(%x, @w, @b) {{{}}}") {
  return constant("w", weights, 1) + constant("b", {weights[0]}, 2) +
         fmt::format("func @main(%x: {}) -> (y: ?) {{ {} return %y }}", input,
                     fmt::format(fmt::runtime(std::string(after)), attrs));
}

program::Program compiled(const std::string& text) {
  return driver::compile(*ir::parse(text, ops::op_set(), "test")).program;
}

TEST(Library, ConvolutionsOfAllForms) {
  Rules rules{.runs = 16, .least_good = 4, .largest = 17};
  check(convolution("f32[N, 3, H, W]", {5, 3, 3, 3}, "pads = [1, 1, 1, 1]"), rules);
  check(convolution("f32[N, 3, H, W]", {9, 3, 7, 7}, "pads = [3, 3, 3, 3], strides = [2, 2]"), rules);
  check(convolution("f32[N, 8, H, W]", {16, 8, 1, 1}, ""), rules);
  check(convolution("f32[N, 4, H, W]", {6, 2, 3, 2}, "group = 2, strides = [2, 3], auto_pad = \"SAME_LOWER\""), rules);
  check(convolution("f32[N, 12, H, W]", {12, 1, 3, 3}, "group = 12, pads = [1, 1, 1, 1]"), rules);
  check(convolution("f32[N, 12, H, W]", {12, 1, 5, 5}, "group = 12, pads = [2, 2, 2, 2], strides = [2, 2]"), rules);
  check(convolution("f32[N, 2, L]", {3, 2, 3}, "dilations = [2], pads = [1, 2]"), rules);
  check(convolution("f32[N, 2, D, H, W]", {3, 2, 2, 1, 3}, "pads = [1, 0, 1, 0, 0, 1]"),
        {.runs = 16, .least_good = 4, .largest = 7});
}

// Wide enough for Winograd's algorithm, whose error is larger.
TEST(Library, ConvolutionsByWinograd) {
  // Of images of a known size transformed weights are kept; others may have theirs transformed in the run.
  std::string text = convolution("f32[N, 32, 16, 16]", {32, 32, 3, 3}, "pads = [1, 1, 1, 1]");
  EXPECT_NE(compiled(text).convolutions.at(0).winograd, program::no_register);
  check(text, {.runs = 2, .least_good = 1, .largest = 17});
  check(convolution("f32[N, 32, H, W]", {32, 32, 3, 3}, "pads = [1, 1, 1, 1]"),
        {.runs = 6, .least_good = 2, .largest = 17});
  // One output pixel per line and column does not pay for it.
  EXPECT_EQ(compiled(convolution("f32[1, 32, 3, 3]", {32, 32, 3, 3}, "")).convolutions.at(0).winograd,
            program::no_register);
}

// Tiles are larger where all sizes are known, and are such that few of a tile's outputs lie over the edge.
TEST(Library, ConvolutionsByWinogradOfLargerTiles) {
  auto is_wide = [](std::string_view input) {
    return compiled(convolution(input, {32, 32, 3, 3}, "pads = [1, 1, 1, 1]")).convolutions.at(0).wide_winograd;
  };
  EXPECT_TRUE(is_wide("f32[1, 32, 64, 64]"));
  EXPECT_FALSE(is_wide("f32[1, 32, 8, 8]"));
  EXPECT_FALSE(is_wide("f32[N, 32, H, W]"));
  check(convolution("f32[2, 32, 64, 61]", {32, 32, 3, 3}, "pads = [1, 1, 1, 1]"),
        {.runs = 1, .least_good = 1, .largest = 64});
}

// Filters that only read the first pixel of their window, over an image whose last two lines are large: no output is
// made of those, but Winograd's sums add and subtract all pixels of a tile.
std::string lines_times_zero() {
  std::string weights;
  for (int64_t i = 0; i < 32 * 32 * 9; ++i)
    weights += fmt::format("{}{}", i == 0 ? "" : ", ", i % 9 == 0 ? static_cast<double>(i * 7 % 17 - 8) / 16 : 0);
  return fmt::format(
      "const @w: f32[32, 32, 3, 3] = {{{}}}\nfunc @main(%x: f32[N, 32, H, W]) -> (y: ?) {{ %y = conv(%x, @w) return %y "
      "}}",
      weights);
}

// The largest difference from the reference evaluator, as a part of the largest result.
double error_of(const std::string& text, const Tensor& image, const compiler::Options& options) {
  auto parse = [&] { return std::shared_ptr(ir::parse(text, ops::op_set(), "test")); };
  std::vector<HostValue> inputs{HostValue(image)};
  std::vector<double> expected = widen<double>(interp::run(*parse(), inputs)[0].tensor());
  driver::Built built = driver::build(parse(), {.compiler = options});
  std::vector<double> actual = widen<double>(runtime::Context(built.executable).run(inputs)[0].tensor());
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::max(error, std::fabs(actual[i] - expected[i]));
  }
  return error / largest;
}

TEST(Library, ExactConvolutionsAreNotByWinograd) {
  std::string text = lines_times_zero();
  auto module = ir::parse(text, ops::op_set(), "test");
  EXPECT_EQ(driver::compile(*module, {.exact = true}).program.convolutions.at(0).winograd, program::no_register);

  constexpr int64_t side = 34;
  std::vector<double> pixels(32 * side * side);
  std::mt19937_64 random(3);
  for (size_t i = 0; i < pixels.size(); ++i) {
    bool is_read = i / side % side < side - 2;
    pixels[i] = is_read ? static_cast<double>(random() % 255) / 128 - 1 : 1e5;
  }
  Tensor image = narrow<double>(pixels, DType::f32, {1, 32, side, side});
  EXPECT_GT(error_of(text, image, {}), 1e-4);
  EXPECT_LT(error_of(text, image, {.exact = true}), 1e-6);
}

// Blocks of the result are made by a convolution, whatever the strides; what has no such form is gathered by a kernel.
// Trained weights may be full of numbers that are too small to matter, each of which costs many cycles.
TEST(Library, SubnormalWeightsAreFlushedUnlessExact) {
  auto outputs = [](bool exact) {
    std::string text =
        "const @w: f32[2, 2, 1, 1] = {1e-40, 0.5, 2e-38, -1e-39}\nconst @b: f32[2] = {1e-39, 3e-38}\n"
        "const @m: f32[2, 2] = {1e-40, 0.5, 2e-38, -1e-39}\nconst @r: f32[1, 2, 2] = {1e-40, 0.5, 0.25, 2e-38}\n"
        "func @main(%x: f32[N, 2, H, W], %v: f32[M, 2], %s: f32[T, 1, 2]) -> (y: ?, z: ?, h: ?) { %y = conv(%x, @w, "
        "@b) "
        "%z = matmul(%v, @m) %h, %l = rnn(%s, @r, @r) {hidden_size = 2, activations = [\"Relu\"]} return %y, %z, %h }";
    driver::Built built = driver::build(ir::parse(text, ops::op_set(), "test"), {.compiler = {.exact = exact}});
    EXPECT_EQ(built.host_calls, 0u);
    auto large = [](Dims dims) { return narrow<double>(std::vector<double>{1e30, 0}, DType::f32, dims); };
    std::vector<double> all;
    for (const HostValue& out : runtime::Context(built.executable)
                                    .run(std::vector<HostValue>{large({1, 2, 1, 1}), large({1, 2}), large({1, 1, 2})}))
      for (double v : widen<double>(out.tensor())) all.push_back(v);
    return all;
  };
  auto near = [](const std::vector<double>& actual, const std::vector<double>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], std::fabs(expected[i]) / 1e4) << i;
  };
  near(outputs(true), {1e-10, 2e-8, 1e-10, 5e29, 1e-10, 2.5e29});
  near(outputs(false), {0, 2e-8, 0, 5e29, 0, 2.5e29});  // normal ones count, however small
}

// Every second pixel of every second line, four times, is the image itself. Images with an odd side are refused.
TEST(Library, ConvolutionsOfPhases) {
  auto phase = [](std::string_view name, int down, int across) {
    return fmt::format(
        "%{} = slice(%x, _, _, _, _) {{starts = sym[{}, {}], ends = sym[9223372036854775807, 9223372036854775807], "
        "axes = sym[2, 3], steps = sym[2, 2]}}\n",
        name, down, across);
  };
  std::string text = constant("w", {6, 12, 3, 3}, 1) + "func @main(%x: f32[N, 3, H, W]) -> (y: ?) {" +
                     phase("a", 0, 0) + phase("b", 1, 0) + phase("c", 0, 1) + phase("d", 1, 1) +
                     "%s = concat(%a, %b, %c, %d) {axis = 1} %y = conv(%s, @w) {pads = [1, 1, 1, 1]} return %y }";
  program::Program program = compiled(text);
  // The image with its channels last, and the result with its channels first.
  EXPECT_EQ(program.launches.size(), 2u) << program::disassemble(program);
  check(text, {.runs = 40, .least_good = 4, .largest = 17});
}

TEST(Library, TransposedConvolutions) {
  Rules rules{.runs = 12, .least_good = 3, .largest = 9};
  auto transposed = [](std::string_view input, const Dims& weights, int64_t channels, std::string_view attrs) {
    return constant("w", weights, 1) + constant("b", {channels}, 2) +
           fmt::format("func @main(%x: {}) -> (y: ?) {{ %y = conv_transpose(%x, @w, @b) {{{}}} return %y }}", input,
                       attrs);
  };
  for (std::string_view attrs :
       {"strides = [2, 2], pads = [1, 1, 1, 1]", "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]",
        "strides = [3, 3]", "strides = [1, 1], pads = [2, 0, 0, 1]", "strides = [2, 2], dilations = [2, 1]",
        "strides = [2, 2], auto_pad = \"SAME_UPPER\"", "strides = [4, 4], auto_pad = \"SAME_LOWER\"",
        "strides = [2, 2], pads = [2, 1, 0, 2], output_padding = [0, 1], group = 2"}) {
    for (int64_t kernel : {2, 3, 4}) {
      bool grouped = attrs.ends_with("group = 2");
      std::string text = transposed("f32[N, 4, H, W]", {4, 3, kernel, kernel + 1}, grouped ? 6 : 3, attrs);
      EXPECT_EQ(compiled(text).convolutions.size(), 1u) << text;
      check(text, rules);
    }
  }
  for (const std::string& text :
       {transposed("f32[N, 4, L]", {4, 3, 5}, 6, "group = 2, strides = [2], pads = [1, 2], dilations = [2]"),
        transposed("f32[N, 4, L]", {4, 3, 16}, 3, "strides = [8], pads = [4, 4]"),
        transposed("f32[N, 2, H, W]", {2, 3, 3, 3}, 3, "strides = [2, 1], auto_pad = \"SAME_LOWER\""),
        transposed("f32[N, 2, D, H, W]", {2, 1, 2, 3, 2}, 1, "strides = [2, 2, 1], pads = [0, 1, 0, 0, 0, 1]")}) {
    EXPECT_EQ(compiled(text).convolutions.size(), 1u) << text;
    check(text, rules);
  }
  std::string late =
      "func @main(%x: f32[N, 4, L], %w: f32[4, 3, 5]) -> (y: ?) { %y = conv_transpose(%x, %w) {group = 2, strides = "
      "[2], pads = [1, 2], dilations = [2]} return %y }";
  for (const std::string& text :
       {late, transposed("f32[N, 2, H, W]", {2, 3, 3, 3}, 3, "strides = [2, 2], output_shape = [9, 8]")}) {
    EXPECT_EQ(compiled(text).convolutions.size(), 0u) << text;
    check(text, rules);
  }
}

TEST(Library, WeightsOfUnknownSizesGoThroughKernels) {
  std::string text =
      "func @main(%x: f32[N, 4, L], %w: f32[6, 2, K]) -> (y: ?) { %y = conv(%x, %w) {group = 2, pads = [1, 1]} "
      "return %y }";
  EXPECT_EQ(compiled(text).convolutions.size(), 0u);
  check(text, {.runs = 30, .least_good = 4, .largest = 9});
}

TEST(Library, WeightsThatOnlyTheRunKnowsArePackedInTheCall) {
  for (std::string_view form : {"f32[6, 2, 3, 3] group = 2", "f32[32, 4, 3, 3] group = 1", "f32[4, 1, 3, 3] group = 4",
                                "f32[7, 4, 1, 1] group = 1"}) {
    size_t end = form.find("] ") + 1;
    std::string text = fmt::format(
        "func @main(%x: f32[N, 4, H, W], %w: {}) -> (y: ?) {{ %v = neg(%w) %c = conv(%x, %v) {{{}, pads = [1, 1, 1, "
        "1]}} %y = relu(%c) return %y }}",
        form.substr(0, end), form.substr(end + 1));
    EXPECT_TRUE(compiled(text).convolutions.at(0).packs_weights) << text;
    check(text, {.runs = 12, .least_good = 4, .largest = 17});
  }
}

TEST(Library, LargeProductsByStrassen) {
  std::string weights = constant("w", {256, 256}, 1);
  for (std::string_view body : {"(%x: f32[M, 256]) -> (y: ?) { %p = matmul(%x, @w) %y = relu(%p) return %y }",
                                "(%x: f32[M, 256]) -> (y: ?) { %p = matmul(%x, @w) %y = add(%p, %x) return %y }",
                                "(%x: f32[M, 256]) -> (y: ?) { %p = matmul(%x, @w) %y = sigmoid(%p) return %y }"})
    check(weights + "func @main" + std::string(body), {.runs = 6, .least_good = 2, .largest = 400});
  std::string pixels = constant("w", {256, 256, 1, 1}, 1) +
                       "func @main(%x: f32[N, 256, H, W]) -> (y: ?) { %p = conv(%x, @w) %y = add(%p, %x) return %y }";
  check(pixels, {.runs = 4, .least_good = 2, .largest = 15});
}

TEST(Library, ProductsBeforeGathers) {
  std::string weights = constant("w", {24, 33}, 1) + constant("b", {33}, 2);
  std::string rows =
      weights +
      "func @main(%x: f32[N, 16], %y: f32[M, 8], %a: f32[P], %c: f32[P]) -> (y: ?) { %i = cast(%a) {to = "
      "7} %j = cast(%c) {to = 7} %g = gather(%x, %i) %h = gather(%y, %j) %k = concat(%g, %h) {axis = 1} "
      "%p = gemm(%k, @w, @b) %y1 = relu(%p) return %y1 }";
  EXPECT_EQ(compiled(rows).products.size(), 4u);
  check(rows, {.runs = 40, .least_good = 4, .largest = 30});
  // Numbers of rows that only the run knows, and that must be equal; of N rows they are never more.
  auto found = [&](std::string_view all) {
    return weights + fmt::format(
                         "const @one: i64[1] = {{-1}}\nfunc @main(%x: f32[{0}, 16], %y: f32[{0}, 8], %a: f32[N], "
                         "%c: f32[N]) -> (y: ?) {{ %l = non_zero(%a) %r = non_zero(%c) %i = reshape(%l, @one) "
                         "%j = reshape(%r, @one) %g = gather(%x, %i) %h = gather(%y, %j) %k = concat(%g, %h) "
                         "{{axis = 1}} %y1 = matmul(%k, @w) return %y1 }}",
                         all);
  };
  EXPECT_EQ(compiled(found("N")).products.size(), 2u);
  EXPECT_EQ(compiled(found("M")).products.size(), 4u);
  check(found("M"), {.runs = 80, .least_good = 2, .host_calls = 2, .largest = 4});
}

TEST(Library, ProductsWithOneColumn) {
  check("func @main(%x: f32[M, K], %c: f32[K, 1]) -> (y: ?) { %y = matmul(%x, %c) return %y }",
        {.runs = 30, .least_good = 4, .largest = 50});
  check("func @main(%x: f32[B, M, K], %c: f32[B, K, 1]) -> (y: ?) { %p = matmul(%x, %c) %y = tanh(%p) return %y }",
        {.runs = 30, .least_good = 4, .largest = 20});
}

TEST(Library, WeightsThatSeveralNodesUseArePackedOnce) {
  const char* text =
      "const @w: f32[2, 2] = {1, 2, 3, 4} const @k: f32[2, 2, 1, 1] = {1, 2, 3, 4} "
      "func @main(%x: f32[N, 2], %y: f32[M, 2], %p: f32[1, 2, H, 3], %q: f32[1, 2, H, 5]) "
      "-> (f32[*], f32[*], f32[*], f32[*]) { %a = matmul(%x, @w) %b = matmul(%y, @w) "
      "%c = conv(%p, @k) %d = conv(%q, @k) return %a, %b, %c, %d }";
  driver::Built built = driver::build(ir::parse(text, ops::op_set(), "test"), {});
  const program::Program& program = built.executable->program;
  ASSERT_EQ(program.products.size(), 2u);
  EXPECT_EQ(program.products[0].b.value, program.products[1].b.value);
  ASSERT_EQ(program.convolutions.size(), 2u);
  EXPECT_EQ(program.convolutions[0].weights, program.convolutions[1].weights);
}

TEST(Library, EpiloguesAreFused) {
  std::string residual = convolution("f32[N, 8, H, W]", {8, 8, 3, 3}, "pads = [1, 1, 1, 1]",
                                     "%c = conv(%x, @w, @b) {{{}}} %a = add(%c, %x) %r = relu(%a) %y = conv(%r, @w)");
  program::Program p = compiled(residual);
  ASSERT_EQ(p.convolutions.size(), 2u);
  EXPECT_TRUE(p.convolutions[0].epilogue.has_value());
  check(residual, {.runs = 24, .least_good = 4, .largest = 17});
  std::string swish = constant("w", {7, 9}, 3) + constant("b", {9}, 4) +
                      "func @main(%x: f32[B, S, 7]) -> (y: ?) { %p = matmul(%x, @w) %a = add(%p, @b) %s = sigmoid(%a) "
                      "%y = mul(%a, %s) return %y }";
  p = compiled(swish);
  EXPECT_TRUE(p.products.at(0).epilogue.has_value());
  EXPECT_EQ(count(p, program::Opcode::launch), 0u);
  check(swish);
}

TEST(Library, EpiloguesThatCannotBeAreNotFused) {
  // Something else reads the product, its elements move, or a row is reduced.
  for (std::string_view after :
       {"%p = matmul(%x, @w) %r = relu(%p) %y = add(%r, %p) return %y, %p",
        "%p = matmul(%x, @w) %t = transpose(%p) {perm = [1, 0]} %y = relu(%p) %z = add(%t, %t) "
        "return %y, %z",
        "%p = matmul(%x, @w) %y = softmax(%p) {axis = -1} %z = softmax(%y) {axis = -1} return "
        "%y, %z"}) {
    std::string text =
        constant("w", {5, 6}, 1) + fmt::format("func @main(%x: f32[M, 5]) -> (y: ?, z: ?) {{ {} }}", after);
    EXPECT_FALSE(compiled(text).products.at(0).epilogue.has_value()) << text;
    check(text);
  }
}

TEST(Library, LayoutsDoNotShow) {
  Rules rules{.runs = 12, .least_good = 3, .largest = 17};
  std::string weights = constant("w", {8, 8, 3, 3}, 1) + constant("v", {4, 8, 1, 1}, 2) + constant("s", {8, 5}, 3);
  // A result in between, views and kernels of all kinds behind channels-last tensors.
  for (std::string_view body :
       {"%a = conv(%x, @w) {pads = [1, 1, 1, 1]} %b = relu(%a) %y = conv(%b, @v) return %y, %b",
        "%a = conv(%x, @w) {pads = [1, 1, 1, 1]} %y = reshape(%a, _) {shape = sym[N, 8, -1]} %z = transpose(%y) {perm "
        "= [0, 2, 1]} %q = matmul(%z, @s) return %q, %z",
        "%a = conv(%x, @w) {pads = [1, 1, 1, 1]} %b = global_average_pool(%a) %c = mul(%a, %b) %d = concat(%c, %x) "
        "{axis = 1} %e = max_pool(%d) {kernel_shape = [2, 2], pads = [1, 1, 0, 0]} return %e, %c",
        "%a = conv(%x, @w) {pads = [1, 1, 1, 1]} %b = softmax(%a) {axis = 1} %c = softmax(%a) {axis = -1} %d = add(%b, "
        "%c) %e = flatten(%d) return %e, %d",
        "%t = transpose(%x) {perm = [0, 2, 3, 1]} %a = exp(%t) %b = transpose(%a) {perm = [0, 3, 1, 2]} %c = conv(%b, "
        "@v) return %c, %a"})
    check(weights + fmt::format("func @main(%x: f32[N, 8, H, W]) -> (y: ?, z: ?) {{ {} }}", body), rules);
}

TEST(Library, GemmsOfAllFlagsAreProducts) {
  for (std::string_view flags : {"", "transB = 1", "alpha = 0.5", "alpha = -2.0, beta = 0.25", "beta = 3.0"})
    for (std::string_view added : {"", ", %r", ", %c", ", %m", ", %s"}) {
      std::string text =
          constant("w", flags == "transB = 1" ? Dims{9, 7} : Dims{7, 9}, 1) +
          fmt::format(
              "func @main(%x: f32[7, M], %r: f32[9], %c: f32[M, 1], %m: f32[M, 9], %s: f32[]) -> (y: ?) {{ %y "
              "= gemm(%x, @w{}) {{transA = 1{}{}}} return %y }}",
              added, flags.empty() ? "" : ", ", flags);
      program::Program p = compiled(text);
      EXPECT_EQ(p.products.size(), 1u) << text;
      EXPECT_LE(count(p, program::Opcode::launch), 1u) << program::disassemble(p);
      check(text, {.runs = 8, .least_good = 4, .largest = 17});
    }
}

// Over 4 MB, and of numbers that small floats do not hold: packed some columns at a time.
TEST(Library, WeightsOfManyColumnsArePackedInPieces) {
  std::string values;
  for (int64_t i = 0; i < 1500 * 800; ++i)
    values += fmt::format("{}{:.7g}", i == 0 ? "" : ", ", static_cast<double>((i * 7 + i / 800) % 19 - 9) / 171);
  std::string text = "const @w: f32[1500, 800] = {" + values +
                     "}\nfunc @main(%x: f32[M, 800]) -> (y: ?) { %y = gemm(%x, @w) {transB = 1} return %y }";
  program::Program p = compiled(text);
  EXPECT_EQ(p.registers.at(p.products.at(0).b.value).dtype, DType::f32);
  check(text, {.runs = 3, .least_good = 2, .largest = 17});
}

TEST(Library, TransposesOfFactorsNeedNoCopy) {
  std::string text =
      "func @main(%q: f32[B, S, 2, 8], %k: f32[B, T, 2, 8]) -> (y: ?) { %a = transpose(%q) {perm = [0, 2, 1, 3]} %b = "
      "transpose(%k) {perm = [0, 2, 3, 1]} %y = matmul(%a, %b) return %y }";
  program::Program p = compiled(text);
  EXPECT_EQ(count(p, program::Opcode::launch), 0u) << program::disassemble(p);
  check(text, {.largest = 17});
}

// The rows of a factor lie along one axis, others of 1 come before or after it.
TEST(Library, RowsOfTransposedFactorsBesideAxesOfOne) {
  for (std::string_view order : {"2, 0, 1", "0, 2, 1"})
    check(
        constant("w", {4, 3}, 1) +
            fmt::format("const @zero: i64[1] = {{0}}\nfunc @main(%x: f32[4, N]) -> (y: ?) {{ %u = unsqueeze(%x, @zero) "
                        "%t = transpose(%u) {{perm = [{}]}} %y = matmul(%t, @w) return %y }}",
                        order),
        {.runs = 16, .least_good = 4, .largest = 17});
}

// Rows without elements have no memory, however they lie.
TEST(Library, ProductsOverNothingAreZero) {
  Rules rules{.runs = 16, .least_good = 4, .largest = 17};
  check("const @w: f32[0, 3] = {} func @main(%x: f32[N, 0]) -> (y: ?) { %t = tanh(%x) %y = matmul(%t, @w) return %y }",
        rules);
  check(
      "const @w: f32[0, 3] = {} func @main(%x: f32[0, N]) -> (y: ?) { %t = transpose(%x) %u = tanh(%t) %y = matmul(%u, "
      "@w) return %y }",
      rules);
}

TEST(Library, ConcatenationDoesNotRepeatWhatItJoins) {
  std::string text = constant("w", {8, 8, 1, 1}, 1) + constant("v", {4, 16, 1, 1}, 2) +
                     "func @main(%x: f32[N, 8, H, W]) -> (y: ?) { %a = conv(%x, @w) %b = sigmoid(%a) %c = mul(%a, %b) "
                     "%d = conv(%c, @w) %e = sigmoid(%d) %f = concat(%c, %e) {axis = 1} %y = max_pool(%f) "
                     "{kernel_shape = [1, 1]} %z = conv(%y, @v) return %z }";
  program::Program p = compiled(text);
  EXPECT_EQ(p.launches.size() - count(p, program::Opcode::launch), 2u) << program::disassemble(p);
  check(text, {.runs = 12, .least_good = 4, .largest = 9});
}

TEST(Library, Attention) {
  Rules rules{.largest = 37};
  std::string heads = "%q: f32[B, 4, S, 8], %k: f32[B, 2, T, 8], %v: f32[B, 2, T, 5]";
  check(fmt::format("func @main({}) -> (y: ?) {{ %y = attention(%q, %k, %v) return %y }}", heads), rules);
  check(fmt::format("func @main({}) -> (y: ?) {{ %y = attention(%q, %k, %v) {{is_causal = 1}} return %y }}", heads),
        rules);
  check(fmt::format("func @main({}, %m: f32[B, 1, S, T]) -> (y: ?) {{ %y = attention(%q, %k, %v, %m) {{scale = 0.5}} "
                    "return %y }}",
                    heads),
        rules);
  check(
      fmt::format("func @main({}, %m: bool[S, T]) -> (y: ?) {{ %y = attention(%q, %k, %v, %m) {{masked_score = -3.0}} "
                  "return %y }}",
                  heads),
      {.largest = 37, .whole_to = 1});
  std::string parts = R"(
const @c: f32[] = {0.25}
func @main(%q: f32[B, S, 2, 8], %k: f32[B, T, 2, 8], %v: f32[B, T, 2, 8], %m: f32[B, 1, 1, T]) -> (y: ?) {
  %a = transpose(%q) {perm = [0, 2, 1, 3]}
  %b = transpose(%k) {perm = [0, 2, 3, 1]}
  %d = transpose(%v) {perm = [0, 2, 1, 3]}
  %s = matmul(%a, %b)
  %t = mul(%s, @c)
  %u = add(%t, %m)
  %p = softmax(%u) {axis = -1}
  %o = matmul(%p, %d)
  %y = transpose(%o) {perm = [0, 2, 1, 3]}
  return %y
})";
  program::Program p = compiled(parts);
  EXPECT_EQ(p.attentions.size(), 1u);
  EXPECT_EQ(count(p, program::Opcode::launch), 0u) << program::disassemble(p);
  check(parts, rules);
}

TEST(Library, RecurrentLayers) {
  Rules rules{.runs = 16, .least_good = 4, .largest = 17};
  struct Case {
    std::string_view op;
    int64_t gates;
    std::string_view results;
  };
  for (const Case& c : {Case{"rnn", 1, "%y, %h"}, Case{"gru", 3, "%y, %h"}, Case{"lstm", 4, "%y, %h, %c"}})
    for (std::string_view direction : {"forward", "reverse", "bidirectional"}) {
      int64_t directions = direction == "bidirectional" ? 2 : 1;
      std::string weights = constant("w", {directions, c.gates * 9, 4}, 1) +
                            constant("r", {directions, c.gates * 9, 9}, 2) +
                            constant("b", {directions, c.gates * 18}, 3);
      std::string outputs = c.op == "lstm" ? "y: ?, h: ?, c: ?" : "y: ?, h: ?";
      check(weights + fmt::format("func @main(%x: f32[T, B, 4], %l: i32[B]) -> ({}) {{ {} = {}(%x, @w, @r, @b, %l) "
                                  "{{direction = \"{}\"}} return {} }}",
                                  outputs, c.results, c.op, direction, c.results),
            rules);
      check(weights + fmt::format("func @main(%x: f32[B, T, 4], %i: f32[B, {}, 9]) -> ({}) {{ {} = {}(%x, @w, @r, @b, "
                                  "_, %i) {{direction = \"{}\", layout = 1}} return {} }}",
                                  directions, outputs, c.results, c.op, direction, c.results),
            rules);
    }
}

}  // namespace
}  // namespace selkie::tests
