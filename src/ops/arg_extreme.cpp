// ArgMax and ArgMin: where along one axis the extreme element is.
#include <cmath>

#include "ops/support/dims.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(bool largest, EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() == 0) fail("the data is a scalar");
  int64_t axis = normalize_axis(e.attr_int("axis"), x.rank());
  bool last = e.attr_int("select_last_index") != 0;
  int64_t extent = x.dim(axis);
  int64_t outer = product(x.dims(), 0, axis);
  int64_t inner = product(x.dims(), axis + 1, x.rank());
  if (extent == 0 && outer * inner > 0) fail("axis {} has no elements", axis);
  std::vector<int64_t> found(static_cast<size_t>(outer * inner), 0);
  dispatch_number(x.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    std::vector<W> values = widen<W>(x);
    auto better = [&](W a, W b) {
      if constexpr (std::is_same_v<W, double>) {
        if (std::isnan(b)) return last && std::isnan(a);
        if (std::isnan(a)) return true;
      }
      return (largest ? a > b : a < b) || (last && a == b);
    };
    for (int64_t o = 0; o < outer && inner > 0; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        auto at = [&](int64_t k) { return values[static_cast<size_t>((o * extent + k) * inner + i)]; };
        int64_t best = 0;
        for (int64_t k = 1; k < extent; ++k)
          if (better(at(k), at(best))) best = k;
        found[static_cast<size_t>(o * inner + i)] = best;
      }
  });
  Dims dims = x.dims();
  if (e.attr_int("keepdims") != 0)
    dims[static_cast<size_t>(axis)] = 1;
  else
    dims.erase(dims.begin() + axis);
  e.set(0, narrow<int64_t>(found, DType::i64, dims));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(DType::i64)};
  SymDims dims = *c.dims(0);
  int64_t axis = normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims.size()));
  if (c.attr_int("keepdims") != 0)
    dims[static_cast<size_t>(axis)] = c.constant(1);
  else
    dims.erase(dims.begin() + axis);
  return {Type::tensor(DType::i64, dims)};
}

void backward(BackwardContext& c) {
  if (!c.dims(0) && c.result_dims(0)) {
    SymDims dims = *c.result_dims(0);
    bool keep = c.attr_int("keepdims") != 0;
    int64_t axis = normalize_axis(c.attr_int("axis"), std::ssize(dims) + (keep ? 0 : 1));
    if (keep) dims.erase(dims.begin() + axis);
    dims.insert(dims.begin() + axis, sym::Expr());
    c.set_dims(0, dims);
  }
  if (!c.dims(0)) return;
  SymDims dims = *c.dims(0);
  auto at = dims.begin() + normalize_axis(c.attr_int("axis"), std::ssize(dims));
  const sym::Expr extent = *at;
  dims.erase(at);
  // Of nothing there is no extreme, unless nothing is asked for.
  c.less_equal(sym::min(product(c, dims), 1), extent);
}

// The extreme element, which is NaN if there is one, and then the first or last index where it is.
void lower(bool largest, LowerContext& c) {
  if (c.rank(0) == 0) c.refuse("the data is a scalar");
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  sym::Expr extent = (*c.dims(0))[axis];
  c.define(0, [&c, largest, axis, extent](const Index& at) {
    kir::Builder& b = c.builder();
    DType dtype = compute_dtype(c.dtype(0));
    auto element = [&](kir::Value k) {
      Index from = at;
      if (c.attr_int("keepdims") != 0)
        from[axis] = k;
      else
        from.insert(from.begin() + static_cast<std::ptrdiff_t>(axis), k);
      return cast(c.operand(0, from), dtype);
    };
    kir::Value best = b.reduce(largest ? kir::Op::max : kir::Op::min, extreme_of(b, dtype, !largest), {{extent}},
                               [&](const Index& k) { return element(k[0]); });
    bool last = c.attr_int("select_last_index") != 0;
    kir::Value start = last ? b.integer(-1) : c.size(extent);
    return b.reduce(last ? kir::Op::max : kir::Op::min, start, {{extent}}, [&](const Index& k) {
      kir::Value x = element(k[0]);
      return select((x == best) | (is_nan(x) & is_nan(best)), k[0], start);
    });
  });
}

OpDef record(bool largest) {
  return {
      .name = largest ? "arg_max" : "arg_min",
      .onnx = {"", largest ? "ArgMax" : "ArgMin", {1, 11, 12, 13}},
      .doc = largest ? "the index of the largest element along one axis"
                     : "the index of the smallest element along one axis",
      .operands = {{"data", numeric_tensor}},
      .results = {{"reduced", i64_tensor}},
      .attrs = {int_attr("axis", 0), int_attr("keepdims", 1), int_attr("select_last_index", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("shape arithmetic has no search"),
      .eval = [largest](EvalContext& e) { eval(largest, e); },
      .lower = [largest](LowerContext& c) { lower(largest, c); },
      .grad = absent("the result is an integer"),
      .samples = {{"$(f32[2, 3]) {axis = 1}", "i64[2, 1]"},
                  {"$(i32[3]{2, 2, 2}) {select_last_index = 1, keepdims = 0}", "i64[]{2}"},
                  {"$(f32[0, 3]) {axis = 1, keepdims = 0}", "i64[0]"},
                  {"$(f32[2, 0]) {axis = 1}", "error: axis 1 has no elements"},
                  {"$(f32[2, 3]) {axis = 2}", "error: axis 2 is outside"}},
  };
}

}  // namespace

std::vector<OpDef> arg_extreme_family() { return {record(true), record(false)}; }

}  // namespace selkie::ops
