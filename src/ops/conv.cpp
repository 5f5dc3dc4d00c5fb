// Conv: weighted sums under a sliding window, any number of spatial axes.
#include "ops/support/conv.h"

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// Zeros before the first element of each spatial axis.
SymDims pads_before(const LowerContext& c, const WindowAttrs& attrs, std::span<const sym::Expr> kernel) {
  SymDims pads;
  for (size_t i = 0; i < kernel.size(); ++i) {
    pads.push_back(c.constant(attrs.pads[i]));
    if (attrs.auto_pad != "SAME_UPPER" && attrs.auto_pad != "SAME_LOWER") continue;
    sym::Expr reach = (c.result_dims()[i + 2] - 1) * attrs.strides[i] + (kernel[i] - 1) * attrs.dilations[i] + 1;
    sym::Expr total = sym::max(reach - (*c.dims(0))[i + 2], 0);
    pads.back() = attrs.auto_pad == "SAME_UPPER" ? sym::floordiv(total, 2) : total - sym::floordiv(total, 2);
  }
  return pads;
}

void lower(LowerContext& c) {
  if (c.rank(0) < 3 || c.rank(1) != c.rank(0)) c.refuse("of such ranks");
  SymDims kernel(c.dims(1)->begin() + 2, c.dims(1)->end());
  WindowAttrs attrs = window_attrs(c, kernel.size());
  ir::ConvolutionForm form{.groups = c.attr_int("group"),
                           .strides = attrs.strides,
                           .dilations = attrs.dilations,
                           .pads = pads_before(c, attrs, kernel)};
  if (c.dtype(0) == DType::f32 && c.rank(0) <= 5) c.set_convolution(form);
  DType dtype = compute_dtype(c.dtype(0));
  c.define(0, [&c, form, dtype](const Index& at) {
    kir::Builder& b = c.builder();
    const SymDims& weights = *c.dims(1);
    SymDims extents(weights.begin() + 1, weights.end());
    kir::Value group = floordiv(at[1], b.integer(sym::floordiv(weights[0], form.groups)));
    kir::Value sum = b.reduce(kir::Op::add, b.number(dtype, 0), extents, [&](const Index& tap) {
      Index from{at[0], group * b.integer(weights[1]) + tap[0]};
      Index weight{at[1], tap[0]};
      kir::Value inside;
      for (size_t i = 0; i < form.strides.size(); ++i) {
        kir::Value place = at[i + 2] * b.integer(form.strides[i]) + tap[i + 1] * b.integer(form.dilations[i]) -
                           b.integer(form.pads[i]);
        kir::Value here = (b.integer(0) <= place) & (place < b.integer((*c.dims(0))[i + 2]));
        inside = inside ? inside & here : here;
        from.push_back(place);
        weight.push_back(tap[i + 1]);
      }
      kir::Value product = cast(c.operand_if(inside, 0, from), dtype) * cast(c.operand(1, weight), dtype);
      return select(inside, product, b.number(dtype, 0));
    });
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
