// OneHot: a new axis that is `on` at an index and `off` elsewhere.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& indices = e.tensor(0);
  const Tensor& values = e.tensor(2);
  if (values.rank() != 1 || values.count() != 2)
    fail("values must be [off, on], but their shape is {}", to_string(values.dims()));
  int64_t depth = int_of(e.tensor(1));
  if (depth < 0) fail("depth {} is negative", depth);
  int64_t axis = normalize_axis(e.attr_int("axis"), indices.rank() + 1);
  Dims dims = indices.dims();
  dims.insert(dims.begin() + axis, depth);
  Tensor out = filled(slice_axis(values, 0, 0, 1), dims);
  int64_t inner = product(indices.dims(), axis, indices.rank());
  std::vector<int64_t> picks = widen<int64_t>(indices);
  dispatch_storage(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < indices.count(); ++i) {
      int64_t pick = picks[static_cast<size_t>(i)];
      if (pick < 0) pick += depth;
      if (pick < 0 || pick >= depth) continue;  // an index outside is all off
      out.mutable_data<T>()[(i / inner * depth + pick) * inner + i % inner] = values.data<T>()[1];
    }
  });
  e.set(0, std::move(out));
}

// A depth that is no integer counts without its fraction; null where it is not known.
sym::Expr depth_of(const ForwardContext& c) {
  if (!is_float(c.dtype(1))) {
    std::optional<ir::SymElements> depth = c.elements(1);
    return depth && depth->size() == 1 ? depth->at(0) : sym::Expr();
  }
  const ir::Contents* real = c.rationals(1);
  if (real == nullptr || real->elements.size() != 1) return {};
  sym::Expr numerator = real->elements[0];
  if (auto number = numerator.constant()) return c.constant(*number / real->denominator);
  return is_natural(c, numerator) ? sym::floordiv(numerator, real->denominator) : sym::Expr();
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(c.dtype(2))};
  SymDims dims = *c.dims(0);
  int64_t axis = normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims.size()) + 1);
  sym::Expr depth = depth_of(c);
  dims.insert(dims.begin() + axis, depth ? depth : c.unknown(0, static_cast<size_t>(axis)));
  return {Type::tensor(c.dtype(2), dims)};
}

void backward(BackwardContext& c) {
  std::optional<ir::SymElements> depth = c.contents(1);
  if (depth && depth->size() == 1) c.less_equal(c.constant(0), depth->at(0));
  c.set_dims(2, SymDims{c.constant(2)});
  if (!c.result_dims(0) || c.result_dims(0)->empty()) return;
  SymDims dims = *c.result_dims(0);
  dims.erase(dims.begin() + normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims.size())));
  c.set_dims(0, dims);
}

void lower(LowerContext& c) {
  if (is_float(c.dtype(0))) c.refuse("indices that are no integers");
  if (c.rank(2) != 1) c.refuse("values are not [off, on]");
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), std::ssize(*c.dims(0)) + 1));
  c.define(0, [&c, axis](const Index& at) {
    Index from = at;
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(axis));
    kir::Value index = counted_from_start(c, c.operand(0, from), c.result_dims()[axis]);
    kir::Value off = c.operand(2, {c.builder().integer(0)});
    return select(index == at[axis], c.operand(2, {c.builder().integer(1)}), off);
  });
}

}  // namespace

OpDef one_hot_op() {
  return {
      .name = "one_hot",
      .onnx = {"", "OneHot", {9, 11}},
      .doc = "a new axis that holds `on` at the index and `off` elsewhere",
      .operands = {{"indices", {"T1", dtypes::numeric}},
                   {"depth", {"T2", dtypes::numeric}},
                   {"values", {"T3", dtypes::all}}},
      .results = {{"output", {"T3", dtypes::all}}},
      .attrs = {int_attr("axis", -1)},
      .dynamism = isvdos({"depth"}),
      .mapping = Mapping::one_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("shape arithmetic has no one-hot vectors"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(i64[2]{0, -1}, i64[]{3}, i32[2]{0, 5})", "i32[2, 3]{5, 0, 0, 0, 0, 5}"},
                  {"$(i64[2, 2], i64[]{3}, f32[2]) {axis = 0}", "f32[3, 2, 2]"},
                  {"$(i64[2], i64[]{0}, f32[2])", "f32[2, 0]"},
                  {"$(i32[], f32[1]{3}, f32[2])", "f32[3]"},
                  {"$(f32[0, 1], f64[]{2.5}, f32[2]) {axis = 1}", "f32[0, 2, 1]"},
                  {"$(i64[2], i64[]{-1}, f32[2])", "error: depth -1 is negative"},
                  {"$(i64[2], i64[]{3}, f32[3])", "error: values must be [off, on]"}},
  };
}

}  // namespace selkie::ops
