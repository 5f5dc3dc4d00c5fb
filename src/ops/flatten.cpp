// Flatten: a matrix of all dims before an axis and all from it on.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// The axis may be the rank itself: then everything is before it.
int64_t split_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis > rank) fail("axis {} is outside -{}..{} of a tensor of rank {}", axis, rank, rank, rank);
  return axis < 0 ? axis + rank : axis;
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  int64_t axis = split_axis(e.attr_int("axis"), x.rank());
  e.set(0, x.reshaped({product(x.dims(), 0, axis), product(x.dims(), axis, x.rank())}));
}

std::vector<Type> forward(const ForwardContext& c) {
  sym::Expr outer = c.constant(1);
  sym::Expr inner = c.constant(1);
  if (!c.dims(0)) return {Type::tensor(c.dtype(0), c.unknown_dims(0, 2))};
  auto rank = static_cast<int64_t>(c.dims(0)->size());
  int64_t axis = split_axis(c.attr_int("axis"), rank);
  for (int64_t i = 0; i < rank; ++i)
    (i < axis ? outer : inner) = (i < axis ? outer : inner) * (*c.dims(0))[static_cast<size_t>(i)];
  return {Type::tensor(c.dtype(0), SymDims{outer, inner})};
}

}  // namespace

OpDef flatten_op() {
  return {
      .name = "flatten",
      .onnx = {"", "Flatten", {1, 9, 11, 13, 21, 23, 24, 25}},
      .doc = "a matrix: all dims before an axis, and all from it on",
      .operands = {{"input", any_tensor}},
      .results = {{"output", any_tensor}},
      .attrs = {int_attr("axis", 1)},
      .dynamism = isdos(),
      .mapping = Mapping::reorganize,
      .forward = forward,
      .backward = absent("the product of dims does not tell their number"),
      .value = value_by_moving,
      .eval = eval,
      .lower = lower_reorganized,
      .grad = later::training,
      .samples = {{"$(f32[2, 3, 4])", "f32[2, 12]"},
                  {"$(f32[2, 3, 4]) {axis = 3}", "f32[24, 1]"},
                  {"$(f32[2, 0, 4]) {axis = -1}", "f32[0, 4]"},
                  {"$(f32[2]) {axis = 2}", "error: axis 2 is outside"}},
  };
}

}  // namespace selkie::ops
