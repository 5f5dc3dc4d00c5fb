// Compress: slices along one axis where a condition holds.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& condition = e.tensor(1);
  if (condition.rank() != 1) fail("the condition must have rank 1, but its shape is {}", to_string(condition.dims()));
  bool flat = !e.has_attr("axis");
  Tensor x = flat ? e.tensor(0).reshaped({e.tensor(0).count()}) : e.tensor(0);
  int64_t axis = flat ? 0 : normalize_axis(e.attr_int("axis"), x.rank());
  if (condition.count() > x.dim(axis))
    fail("the condition has {} elements, but axis {} only {}", condition.count(), axis, x.dim(axis));
  std::vector<Tensor> parts{slice_axis(x, axis, 0, 0)};
  for (int64_t i = 0; i < condition.count(); ++i)
    if (condition.data<bool>()[i]) parts.push_back(slice_axis(x, axis, i, 1));
  e.set(0, concat(parts, axis));
}

std::vector<Type> forward(const ForwardContext& c) {
  const ir::Attribute* axis = c.find_attr("axis");
  if (axis == nullptr) {
    ir::Bounds bounds;
    if (c.dims(0)) {
      bounds.most = c.constant(1);
      for (sym::Expr d : *c.dims(0)) bounds.most = bounds.most * d;
    }
    return {Type::tensor(c.dtype(0), SymDims{c.unknown(0, 0, bounds)})};
  }
  if (!c.dims(0)) return {Type::tensor(c.dtype(0))};
  SymDims dims = *c.dims(0);
  auto at = static_cast<size_t>(normalize_axis(std::get<int64_t>(*axis), static_cast<int64_t>(dims.size())));
  dims[at] = c.unknown(0, at, {.least = {}, .most = dims[at]});
  return {Type::tensor(c.dtype(0), dims)};
}

}  // namespace

OpDef compress_op() {
  return {
      .name = "compress",
      .onnx = {"", "Compress", {9, 11}},
      .doc = "slices along one axis (or elements, without an axis) where a condition holds",
      .operands = {{"input", any_tensor}, {"condition", bool_tensor}},
      .results = {{"output", any_tensor}},
      .attrs = {optional_attr("axis", AttrKind::integer)},
      .dynamism = edo({"condition"}),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = absent("which slices stay is not known"),
      .value = value_by_moving,
      .eval = eval,
      .lower = absent("how many results there are shows only while they are found"),
      .grad = later::training,
      .samples = {{"$(i32[2, 3]{1, 2, 3, 4, 5, 6}, bool[3]{true, false, true}) {axis = 1}", "i32[2, 2]{1, 3, 4, 6}"},
                  {"$(i32[4]{1, 2, 3, 4}, bool[2]{false, true})", "i32[1]{2}"},
                  {"$(f32[2, 3], bool[0]) {axis = 0}", "f32[0, 3]"},
                  {"$(f32[2], bool[3])", "error: the condition has 3 elements"},
                  {"$(f32[2], bool[1, 1])", "error: must have rank 1"}},
  };
}

}  // namespace selkie::ops
