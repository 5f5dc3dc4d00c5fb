// Conv: weighted sums under a sliding window, any number of spatial axes.
#include "ops/support/conv.h"

#include "ops/support/conv_lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void lower(LowerContext& c) {
  ir::ConvolutionForm form = convolution_form(c, 1);
  if (c.dtype(0) == DType::f32 && c.rank(0) <= 5) c.set_convolution(form);
  DType dtype = compute_dtype(c.dtype(0));
  c.define(0, [&c, form, dtype](const Index& at) {
    kir::Value sum = convolved_element(c, 1, form, at, dtype, [](kir::Value x, kir::Value w) { return x * w; });
    if (c.has(2)) sum = sum + cast(c.operand(2, {at[1]}), dtype);
    return cast(sum, c.result_dtype());
  });
}

}  // namespace

OpDef conv_op() {
  return {
      .name = "conv",
      .onnx = {"", "Conv", {1, 11, 22}},
      .doc = "weighted sums of the elements under a sliding window, per output channel",
      .operands = {{"x", float_tensor}, {"w", float_tensor}, {"b", float_tensor, optional}},
      .results = {{"y", float_tensor}},
      .attrs = conv_attrs(),
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward =
          [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(0), conv_forward(c, 1))}; },
      .backward = [](BackwardContext& c) { conv_backward(c, 1, 2); },
      .value = absent("convolutions do not occur in shape arithmetic"),
      .eval = [](EvalContext& e) { e.set(0, convolve_operands(e)); },
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(f32[1, 1, 4]{1, 2, 3, 4}, f32[1, 1, 2]{1, 10}, f32[1]{100})", "f32[1, 1, 3]{121, 132, 143}"},
                  {"$(f32[1, 1, 3]{1, 2, 3}, f32[1, 1, 2]{1, 10}) {pads = [1, 0], dilations = [2]}",
                   "f32[1, 1, 2]{20, 31}"},
                  {"$(f32[2, 4, 7, 8], f32[6, 2, 3, 2]) {group = 2, strides = [2, 3], auto_pad = \"SAME_LOWER\"}",
                   "f32[2, 6, 4, 3]"},
                  {"$(f32[1, 2, 3, 4, 5], f32[3, 2, 1, 1, 1]) {kernel_shape = [1, 1, 1]}", "f32[1, 3, 3, 4, 5]"},
                  {"$(f32[0, 1, 4], f32[1, 1, 2])", "f32[0, 1, 3]"},
                  {"$(f32[1, 1, 0], f32[1, 1, 3]) {pads = [1, 1]}", "f32[1, 1, 0]"},
                  {"$(f32[1, 3, 4], f32[1, 2, 2])", "error: do not fit weights"},
                  {"$(f32[1, 1, 2], f32[1, 1, 3])", "error: does not fit"},
                  {"$(f32[1, 1, 4], f32[2, 1, 3], f32[1])", "error: the bias has shape [1]"}},
  };
}

}  // namespace selkie::ops
