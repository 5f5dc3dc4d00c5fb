// Operators with sizes that only the run tells: one program for all sizes, against the reference evaluator, with
// kernels compiled and with kernels interpreted under bounds checks.
#include "sizes.h"

namespace selkie::tests {
namespace {

// One operator of one operand.
std::string unary_program(std::string_view operand, std::string_view call, std::string_view constants = "") {
  return fmt::format("{} func @main(%x: {}) -> (y: ?) {{ %y = {} return %y }}", constants, operand, call);
}

TEST(CpuSizes, BatchNormalization) {
  std::string parameters = "%s: f32[C], %b: f32[C], %m: f32[C], %v: f32[C]";
  for (std::string_view x : {"f32[N, C]", "f32[N, C, L]", "f32[N, C, H, W]"})
    check(fmt::format("func @main(%x: {}, {}) -> (y: ?) {{ %w = mul(%v, %v) %y = batch_normalization(%x, %s, %b, %m, "
                      "%w) return %y }}",
                      x, parameters),
          {.largest = 17});
}

TEST(CpuSizes, Pools) {
  Rules rules{.runs = 40, .largest = 17};
  for (std::string_view op : {"max_pool", "average_pool", "lp_pool"})
    for (std::string_view window :
         {"kernel_shape = [3]", "kernel_shape = [3], pads = [1, 1]", "kernel_shape = [2], strides = [2]",
          "kernel_shape = [4], strides = [3], pads = [2, 1], ceil_mode = 1",
          "kernel_shape = [3], dilations = [2], pads = [1, 3]",
          "kernel_shape = [3], strides = [2], auto_pad = "
          "\"SAME_UPPER\"",
          "kernel_shape = [4], auto_pad = \"SAME_LOWER\", strides = [3], dilations = [2]"})
      check(unary_program("f32[N, C, L]", fmt::format("{}(%x) {{{}}}", op, window)), rules);
  check(unary_program("f32[1, 2, H, W]",
                      "average_pool(%x) {kernel_shape = [3, 2], strides = [2, 3], pads = [1, 0, 1, "
                      "1], ceil_mode = 1, count_include_pad = 1}"),
        rules);
  check(unary_program("f32[1, 2, H, W]",
                      "average_pool(%x) {kernel_shape = [3, 2], pads = [1, 0, 1, 1], dilations = "
                      "[1, 2]}"),
        rules);
  check(unary_program("f32[1, C, H, W]", "max_pool(%x) {kernel_shape = [17, 17], pads = [8, 8, 8, 8]}"),
        {.runs = 8, .least_good = 4, .largest = 9});
  check(unary_program("f32[1, C, H, W]", "average_pool(%x) {kernel_shape = [17, 17], pads = [8, 8, 8, 8]}"),
        {.runs = 8, .least_good = 4, .largest = 9});
  check(unary_program("u8[1, C, H, W]", "max_pool(%x) {kernel_shape = [2, 2], pads = [1, 1, 0, 0]}"), rules);
  check(unary_program("f16[1, C, L]", "average_pool(%x) {kernel_shape = [3]}"), rules);
}

TEST(CpuSizes, PoolsWithPlaces) {
  for (int order : {0, 1})
    check(fmt::format("func @main(%x: f32[2, C, H, W]) -> (y: ?, i: ?) {{ %y, %i = max_pool(%x) {{kernel_shape = [3, "
                      "2], pads = [1, 1, 1, 0], storage_order = {}}} return %y, %i }}",
                      order),
          {.largest = 9, .nans = true});
}

TEST(CpuSizes, PoolsOfPlanes) {
  for (std::string_view call : {"global_average_pool(%x)", "global_max_pool(%x)", "global_lp_pool(%x)",
                                "global_lp_pool(%x) {p = 1}", "global_lp_pool(%x) {p = 3}"})
    for (std::string_view x : {"f32[N, C, H, W]", "f32[N, C, L]", "f32[N, C]"})
      check(unary_program(x, call), {.largest = 17});
}

TEST(CpuSizes, Pad) {
  for (std::string_view mode : {"constant", "edge", "reflect", "wrap"})
    for (std::string_view pads : {"1, 2, 3, 4", "0, -1, 2, 5", "-1, 0, 1, 0", "20, 0, 0, 33"})
      check(unary_program("f32[H, W]", fmt::format("pad(%x, @p) {{mode = \"{}\"}}", mode),
                          fmt::format("const @p: i64[4] = {{{}}}", pads)),
            {.runs = 40});
  check(
      "const @p: i64[2] = {1, 2} const @a: i64[1] = {-1} func @main(%x: i64[H, W], %v: i64[1]) -> (y: ?) { %y = "
      "pad(%x, @p, %v, @a) return %y }");
  // As many as there are elements of another tensor.
  check(
      "const @zero: i64[1] = {0} func @main(%x: f32[W], %z: f32[P]) -> (y: ?) { %s = shape(%z) %p = concat(%s, "
      "@zero) {axis = 0} %y = pad(%x, %p) {mode = \"reflect\"} return %y }",
      {.largest = 9});
}

TEST(CpuSizes, ResizeByScales) {
  for (std::string_view mode : {"nearest", "linear", "cubic"})
    for (std::string_view coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "tf_half_pixel_for_nn"})
      for (std::string_view scales : {"1, 1, 2, 2", "1, 1, 3, 0.5", "1, 1, 1.5, 4"})
        check(unary_program("f32[N, 2, H, W]",
                            fmt::format("resize(%x, _, @s) {{mode = \"{}\", coordinate_transformation_mode = \"{}\"}}",
                                        mode, coordinates),
                            fmt::format("const @s: f32[4] = {{{}}}", scales)),
              {.runs = 6, .least_good = 3, .largest = 17});
}

TEST(CpuSizes, ResizeBySizes) {
  for (std::string_view attrs :
       {"mode = \"linear\"", "mode = \"cubic\", exclude_outside = 1", "mode = \"nearest\", nearest_mode = \"ceil\"",
        "mode = \"nearest\", nearest_mode = \"round_prefer_ceil\", coordinate_transformation_mode = \"align_corners\"",
        "mode = \"nearest\", nearest_mode = \"floor\", coordinate_transformation_mode = \"asymmetric\""}) {
    check(fmt::format("const @two: i64[1] = {{2}} const @four: i64[1] = {{4}} func @main(%x: f32[1, C, H, W], %z: "
                      "f32[1, C, P, Q]) -> (y: ?) {{ %s = shape(%z) {{start = 2}} %y = resize(%x, _, _, %s) {{axes = "
                      "[2, 3], {}}} return %y }}",
                      attrs),
          {.largest = 17});
    check(unary_program("f32[1, 2, H, W]", fmt::format("resize(%x, _, _, @s) {{axes = [2, 3], {}}}", attrs),
                        "const @s: i64[2] = {5, 17}"),
          {.largest = 17});
  }
  check(unary_program("u8[H, W]", "resize(%x, _, _, @s)", "const @s: i64[2] = {5, 17}"));
  check(unary_program("f32[H, 5]",
                      "resize(%x, @r, _, @s) {mode = \"linear\", coordinate_transformation_mode = "
                      "\"tf_crop_and_resize\", extrapolation_value = 7.0}",
                      "const @s: i64[2] = {5, 17} const @r: f32[4] = {0.1, -0.25, 0.8, 1.5}"));
}

TEST(CpuSizes, Fillers) {
  check("func @main(%x: f32[H, W], %k: i64[]) -> (y: ?) { %y = trilu(%x, %k) return %y }",
        {.whole_from = -4, .whole_to = 4});
  check(unary_program("f32[B, H, W]", "trilu(%x) {upper = 0}"), {.largest = 17});
  check(unary_program("i32[H, W]", "eye_like(%x) {k = -2, dtype = 1}"));
  check(
      "func @main(%x: f32[H, W]) -> (y: ?) { %s = shape(%x) %y = constant_of_shape(%s) {value = "
      "i64[1]{9007199254740993}} return %y }");
  check("const @r: i64[2] = {3, 2} func @main(%x: f32[H, W]) -> (y: ?) { %y = tile(%x, @r) return %y }",
        {.largest = 17});
  check("func @main(%x: f32[H, W], %z: f32[P, 1]) -> (y: ?) { %r = shape(%z) %y = tile(%x, %r) return %y }",
        {.largest = 17});
  check("func @main(%x: f32[H, W], %z: f32[P, Q]) -> (y: ?) { %s = shape(%z) %y = center_crop_pad(%x, %s) return %y }");
}

TEST(CpuSizes, Blocks) {
  for (std::string_view mode : {"DCR", "CRD"})
    check(unary_program("f32[N, 12, H, W]", fmt::format("depth_to_space(%x) {{blocksize = 2, mode = \"{}\"}}", mode)),
          {.largest = 9});
  check(unary_program("f32[N, C, H, W]", "space_to_depth(%x) {blocksize = 2}"), {.runs = 60, .largest = 9});
}

TEST(CpuSizes, Picks) {
  Rules rules{.largest = 17, .whole_from = -3, .whole_to = 2};
  check("func @main(%x: f32[5, W], %i: i64[P, W]) -> (y: ?) { %y = gather_elements(%x, %i) return %y }", rules);
  check("func @main(%x: f32[H, 3], %i: i32[P, Q]) -> (y: ?) { %y = gather_elements(%x, %i) {axis = 1} return %y }",
        {.runs = 60, .largest = 17, .whole_from = -3, .whole_to = 2});
  check("func @main(%x: f32[4, W], %i: i64[P, 1]) -> (y: ?) { %y = gather_nd(%x, %i) return %y }", rules);
  check(
      "func @main(%x: f32[N, 4, W], %i: i64[N, P, 1]) -> (y: ?) { %y = gather_nd(%x, %i) {batch_dims = 1} return %y }",
      rules);
  for (int axis : {-1, 0})
    check(fmt::format("const @d: i64[] = {{3}} func @main(%i: i64[H, W], %v: f32[2]) -> (y: ?) {{ %y = one_hot(%i, @d, "
                      "%v) {{axis = {}}} return %y }}",
                      axis),
          {.whole_from = -5, .whole_to = 5});
}

TEST(CpuSizes, PlacesOfExtremes) {
  for (std::string_view op : {"arg_max", "arg_min"})
    for (std::string_view attrs : {"axis = 1", "axis = 0, keepdims = 0", "axis = 1, select_last_index = 1"}) {
      check(unary_program("f32[H, W]", fmt::format("{}(%x) {{{}}}", op, attrs)), {.nans = true});
      check(unary_program("i64[H, W]", fmt::format("{}(%x) {{{}}}", op, attrs)), {.whole_from = -3, .whole_to = 3});
      check(unary_program("u8[H, W]", fmt::format("{}(%x) {{{}}}", op, attrs)));
    }
}

TEST(CpuSizes, Reductions) {
  for (std::string_view op : {"reduce_l1", "reduce_l2", "reduce_log_sum", "reduce_max", "reduce_mean", "reduce_min",
                              "reduce_prod", "reduce_sum", "reduce_sum_square"})
    for (std::string_view x :
         {"f32[A, B, C]", "f64[A, B, C]", "f16[A, B, C]", "i32[A, B, C]", "i64[A, B, C]", "u32[A, B, C]"}) {
      if (op == "reduce_prod" && x.starts_with("f16")) continue;  // leaves the range
      for (std::string_view axes : {"[1] = {1}", "[2] = {0, -1}", "[0] = {}"})
        check(unary_program(x, fmt::format("{}(%x, @a)", op), fmt::format("const @a: i64{}", axes)),
              {.runs = 8, .least_good = 8, .largest = 9, .whole_from = x.starts_with("u") ? 0 : -3, .whole_to = 3});
    }
  check(unary_program("f32[A, B]", "reduce_log_sum_exp(%x) {keepdims = 0}"));
  check(unary_program("bool[A, B]", "reduce_max(%x, @a)", "const @a: i64[1] = {1}"), {.whole_to = 1});
  check(unary_program("i8[A, B]", "reduce_min(%x, @a)", "const @a: i64[1] = {1}"),
        {.whole_from = -128, .whole_to = 127});
  check(unary_program("f32[A, B]", "reduce_sum(%x, @a) {noop_with_empty_axes = 1}", "const @a: i64[0] = {}"));
}

TEST(CpuSizes, Normalisations) {
  check(
      "func @main(%x: f32[N, C, H, W], %s: f32[C], %b: f32[C]) -> (y: ?) { %y = instance_normalization(%x, %s, %b) "
      "return %y }",
      {.largest = 9});
  check(
      "func @main(%x: f32[N, 6, H, W], %s: f32[6], %b: f32[6]) -> (y: ?) { %y = group_normalization(%x, %s, %b) "
      "{num_groups = 3} return %y }",
      {.largest = 9});
  check(
      "func @main(%x: f32[N, C, L], %s: f32[2], %b: f32[C]) -> (y: ?) { %y = group_normalization(%x, %s, %b) "
      "{num_groups = 2} return %y }",
      {.largest = 9});
  for (int p : {1, 2})
    for (int axis : {0, 1})
      check(unary_program("f32[H, W]", fmt::format("lp_normalization(%x) {{axis = {}, p = {}}}", axis, p)));
  for (std::string_view axes : {"0, 2", "1", "0, 1, 2"})
    check(unary_program("f32[N, C, L]", fmt::format("mean_variance_normalization(%x) {{axes = [{}]}}", axes)),
          {.largest = 17});
  for (int size : {1, 2, 3, 5})
    check(unary_program("f32[N, C, L]", fmt::format("lrn(%x) {{size = {}, alpha = 0.5, bias = 2.0}}", size)),
          {.largest = 17});
  check(
      "func @main(%x: f32[B, S, W], %z: f32[S, W], %g: f32[W], %b: f32[W], %c: f32[W]) -> (y: ?, s: ?) { %y, %m, %v, "
      "%s = ms_skip_layer_normalization(%x, %z, %g, %b, %c) {epsilon = 0.01} return %y, %s }",
      {.largest = 17});
  check(
      "func @main(%x: f32[B, S, W], %g: f32[S, W]) -> (y: ?, m: ?, v: ?) { %y, %m, %v = ms_layer_normalization(%x, %g) "
      "{axis = 1, epsilon = 0.01} return %y, %m, %v }",
      {.largest = 17});
}

TEST(CpuSizes, Quantisation) {
  check("func @main(%x: f32[H, W], %s: f32[], %z: u8[]) -> (y: ?) { %y = quantize_linear(%x, %s, %z) return %y }");
  check("func @main(%x: f32[H, W], %s: f32[W], %z: i8[W]) -> (y: ?) { %y = quantize_linear(%x, %s, %z) return %y }");
  check(
      "func @main(%x: f32[H, 2*W], %s: f32[H, W]) -> (y: ?) { %y = quantize_linear(%x, %s) {block_size = 2, "
      "output_dtype = 4} return %y }");
  check(
      "func @main(%x: i8[H, W], %s: f32[H], %z: i8[H]) -> (y: ?) { %y = dequantize_linear(%x, %s, %z) {axis = 0} "
      "return %y }",
      {.whole_from = -128, .whole_to = 127});
  check("func @main(%x: i32[H, W], %s: f32[]) -> (y: ?) { %y = dequantize_linear(%x, %s) return %y }",
        {.whole_from = -2147483647, .whole_to = 2147483647});
  check(
      "func @main(%x: f32[H, W]) -> (y: ?, s: ?, z: ?) { %y, %s, %z = dynamic_quantize_linear(%x) return %y, %s, %z }",
      {.nans = true});
  Rules bytes{.largest = 17, .whole_from = 0, .whole_to = 255};
  check(
      "func @main(%x: u8[M, K], %w: u8[K, N], %a: u8[], %b: u8[N]) -> (y: ?) { %y = matmul_integer(%x, %w, %a, %b) "
      "return %y }",
      bytes);
  check(
      "func @main(%x: u8[B, M, K], %w: u8[K, N], %a: u8[M], %b: u8[]) -> (y: ?) { %y = matmul_integer(%x, %w, %a, "
      "%b) return %y }",
      bytes);
  for (std::string_view op : {"ms_qlinear_add", "ms_qlinear_mul"})
    check(fmt::format(
              "func @main(%x: u8[M, N], %s: f32[], %a: u8[], %w: u8[N], %t: f32[], %u: f32[], %c: u8[]) -> (y: ?) "
              "{{ %y = {}(%x, %s, %a, %w, %t, _, %u, %c) return %y }}",
              op),
          bytes);
  check(
      "func @main(%x: u8[M, K], %s: f32[], %a: u8[], %w: u8[K, N], %t: f32[N], %b: u8[N], %u: f32[], %c: u8[]) -> (y: "
      "?) { %y = qlinear_matmul(%x, %s, %a, %w, %t, %b, %u, %c) return %y }",
      bytes);
}

TEST(CpuSizes, Casts) {
  for (int to : {1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 16})
    for (std::string_view from : {"f32", "f64", "f16", "i32", "u8", "i64", "bool"})
      check(unary_program(fmt::format("{}[H, W]", from), fmt::format("cast(%x) {{to = {}}}", to)),
            {.runs = 6,
             .least_good = 6,
             .largest = 17,
             .whole_from = from == "bool" || from == "u8" ? 0 : -300,
             .nans = true});
  // Beyond the range of the integer.
  check(
      "const @big: f32[] = {3e19} func @main(%x: f32[H]) -> (y: ?, z: ?) { %b = mul(%x, @big) %y = cast(%b) {to = 6} "
      "%z = cast(%b) {to = 7} return %y, %z }",
      {.nans = true});
}

TEST(CpuSizes, Equations) {
  struct Product {
    std::string_view x, z, equation;
  };
  for (auto [x, z, equation] : {Product{"I, J", "J, K", "ij,jk->ik"}, Product{"I, J", "K, J", "ij,kj->ik"},
                                Product{"I, J", "I, J", "ij,ij->"}, Product{"I, J", "J, K", "ij,jk->kji"}})
    for (std::string_view dtype : {"f32", "i32"})
      check(
          fmt::format("func @main(%x: {0}[{1}], %z: {0}[{2}]) -> (y: ?) {{ %y = einsum(%x, %z) {{equation = \"{3}\"}} "
                      "return %y }}",
                      dtype, x, z, equation),
          {.largest = 17});
  check(unary_program("f32[N, N]", "einsum(%x) {equation = \"ii->i\"}"));
  check(unary_program("f32[B, H, W]", "einsum(%x) {equation = \"...ij->...ji\"}"), {.largest = 17});
}

TEST(CpuSizes, Rotations) {
  for (int interleaved : {0, 1}) {
    check(fmt::format("func @main(%x: f32[B, H, S, 8], %c: f32[5, 4], %s: f32[5, 4], %p: i64[B, S]) -> (y: ?) {{ %y = "
                      "rotary_embedding(%x, %c, %s, %p) {{interleaved = {}}} return %y }}",
                      interleaved),
          {.largest = 9, .whole_from = -5});
    check(fmt::format("func @main(%x: f32[B, S, 24], %c: f32[B, S, 3], %s: f32[B, S, 3]) -> (y: ?) {{ %y = "
                      "rotary_embedding(%x, %c, %s) {{interleaved = {}, num_heads = 3, rotary_embedding_dim = 6}} "
                      "return %y }}",
                      interleaved),
          {.largest = 9});
  }
}

TEST(CpuSizes, Activations) {
  check(
      "func @main(%x: f32[H, W], %b: f32[W]) -> (y: ?, z: ?) { %y = ms_bias_gelu(%x, %b) %z = ms_fast_gelu(%x, %b) "
      "return %y, %z }");
  check(unary_program("f16[H, W]", "ms_gelu(%x)"));
  for (std::string_view call : {"sinh(%x)", "cosh(%x)", "shrink(%x) {bias = 0.25, lambd = 1.0}"})
    for (std::string_view x : {"f32[H, W]", "f64[H, W]"}) check(unary_program(x, call), {.nans = true});
  // Away from the poles.
  check("const @h: f32[] = {0.5} func @main(%x: f32[H, W]) -> (y: ?) { %b = mul(%x, @h) %y = tan(%b) return %y }");
}

}  // namespace
}  // namespace selkie::tests
