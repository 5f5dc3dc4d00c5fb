// Clip: elements limited to a range.
#include <algorithm>
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  dispatch_number(x.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    auto bound = [&](size_t i) -> std::optional<W> {
      if (!e.has(i)) return std::nullopt;
      if (e.tensor(i).count() != 1)
        fail("a bound must have one element, but its shape is {}", to_string(e.tensor(i).dims()));
      return widen<W>(e.tensor(i))[0];
    };
    std::optional<W> low = bound(1);
    std::optional<W> high = bound(2);
    e.set(0, map_elements<W>(x, x.dtype(), [&](W v) {
            if (low) v = v < *low ? *low : v;
            if (high) v = v > *high ? *high : v;  // where min is above max, max wins
            return v;
          }));
  });
}

void lower(LowerContext& c) {
  for (size_t i : {size_t{1}, size_t{2}})
    if (c.has(i) && !has_one_element(c, i)) c.refuse("a bound may have more than one element");
  DType dtype = compute_dtype(c.dtype(0));
  c.define(0, [&c, dtype](const Index& at) {
    auto bound = [&](size_t i) { return only_element(c, i, dtype); };
    kir::Value x = cast(c.operand(0, at), dtype);
    if (c.has(1)) x = select(x < bound(1), bound(1), x);
    if (c.has(2)) x = select(bound(2) < x, bound(2), x);
    return cast(x, c.result_dtype());
  });
}

void value(ValueContext& c) {
  // A bound has one element, but may be of any rank: it does not broadcast like an operand.
  sym::Expr bounds[2];
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (!c.has(i + 1)) continue;
    const ir::Contents* known = c.partial(i + 1);
    if (known == nullptr || known->elements.size() != 1 || known->denominator != 1 || known->rounded) return;
    bounds[i] = known->elements[0];
    if (!bounds[i]) return;
  }
  value_elementwise_with(c, {0}, [&](std::span<const sym::Expr> x) {
    sym::Expr y = x[0];
    if (bounds[0]) y = sym::max(y, bounds[0]);
    return bounds[1] ? sym::min(y, bounds[1]) : y;
  });
}

// Before opset 11 the bounds were attributes; they take the operand's dtype only at run time, which f32 stood for.
void bounds_to_operands(UpgradeContext& c) {
  drop_attrs({"consumed_inputs"})(c);
  for (auto [name, index] : {std::pair("min", size_t{1}), std::pair("max", size_t{2})}) {
    if (c.node().attrs.find(name) == nullptr) continue;
    attr_to_operand(name, index)(c);
    c.set_operand(index, c.emit("cast_like", {c.node().operands[index], c.node().operands[0]}));
  }
}

}  // namespace

OpDef clip_op() {
  return {
      .name = "clip",
      .onnx = {"", "Clip", {1, 6, 11, 12, 13}},
      .doc = "elements limited to [min, max]",
      .operands = {{"input", numeric_tensor}, {"min", numeric_tensor, optional}, {"max", numeric_tensor, optional}},
      .results = {{"output", numeric_tensor}},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = same_as_first,
      .backward = backward_same,
      .value = value,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .upgrades = {{11, bounds_to_operands}},
      .samples = {{"$(f32[3]{-1, 0.5, 2}, f32[]{0}, f32[]{1})", "f32[3]{0, 0.5, 1}"},
                  {"$(i32[2]{-5, 5}, _, i32[]{3})", "i32[2]{-5, 3}"},
                  {"$(i64[]{-5}, i64[1]{-2}, i64[1, 1]{3})", "i64[]{-2}"},
                  {"$(f32[0])", "f32[0]"},
                  {"$(f32[1]{0}, f32[]{2}, f32[]{1})", "f32[1]{1}"},
                  {"$(f32[2], f32[2])", "error: one element"}},
  };
}

}  // namespace selkie::ops
