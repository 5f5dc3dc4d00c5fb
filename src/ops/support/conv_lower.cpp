#include "ops/support/conv_lower.h"

#include "ops/support/window.h"

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

}  // namespace

ir::ConvolutionForm convolution_form(const LowerContext& c, size_t w) {
  if (c.rank(0) < 3 || c.rank(w) != c.rank(0)) c.refuse("of such ranks");
  SymDims kernel(c.dims(w)->begin() + 2, c.dims(w)->end());
  WindowAttrs attrs = window_attrs(c, kernel.size());
  return {.groups = c.attr_int("group"),
          .strides = attrs.strides,
          .dilations = attrs.dilations,
          .pads = pads_before(c, attrs, kernel)};
}

kir::Value convolved_element(const LowerContext& c, size_t w, const ir::ConvolutionForm& form, const Index& at,
                             DType dtype, const std::function<kir::Value(kir::Value, kir::Value)>& multiply) {
  kir::Builder& b = c.builder();
  const SymDims& weights = *c.dims(w);
  SymDims extents(weights.begin() + 1, weights.end());
  kir::Value group = floordiv(at[1], b.integer(sym::floordiv(weights[0], form.groups)));
  return b.reduce(kir::Op::add, b.number(dtype, 0), extents, [&](const Index& tap) {
    Index from{at[0], group * b.integer(weights[1]) + tap[0]};
    Index weight{at[1], tap[0]};
    kir::Value inside;
    for (size_t i = 0; i < form.strides.size(); ++i) {
      kir::Value place =
          at[i + 2] * b.integer(form.strides[i]) + tap[i + 1] * b.integer(form.dilations[i]) - b.integer(form.pads[i]);
      kir::Value here = (b.integer(0) <= place) & (place < b.integer((*c.dims(0))[i + 2]));
      inside = inside ? inside & here : here;
      from.push_back(place);
      weight.push_back(tap[i + 1]);
    }
    kir::Value product = multiply(cast(c.operand_if(inside, 0, from), dtype), cast(c.operand(w, weight), dtype));
    return select(inside, product, b.number(dtype, 0));
  });
}

}  // namespace selkie::ops
