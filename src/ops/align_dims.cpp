// align_dims: reshapes an operand of a broadcast of ONNX's first opsets so that numpy's rule aligns it the same way.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& reference = e.tensor(0);
  const Tensor& data = e.tensor(1);
  int64_t axis = normalize_axis(e.attr_int("axis"), std::max<int64_t>(reference.rank(), 1));
  if (axis + data.rank() > reference.rank())
    fail("shape {} does not fit into {} from axis {} on", to_string(data.dims()), to_string(reference.dims()), axis);
  Dims dims = data.dims();
  dims.resize(static_cast<size_t>(reference.rank() - axis), 1);
  e.set(0, data.reshaped(std::move(dims)));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(c.dtype(1))};
  auto rank = static_cast<int64_t>(c.rank(0));
  auto room = static_cast<size_t>(rank - normalize_axis(c.attr_int("axis"), std::max<int64_t>(rank, 1)));
  if (!c.dims(1)) return {Type::tensor(c.dtype(1), c.unknown_dims(0, room))};
  SymDims dims = *c.dims(1);
  if (dims.size() > room) fail("{} dims do not fit into {} from axis {} on", dims.size(), rank, c.attr_int("axis"));
  dims.resize(room, c.constant(1));
  return {Type::tensor(c.dtype(1), dims)};
}

void value(ValueContext& c) {
  const ir::Contents* data = c.partial(1);
  std::optional<Dims> dims = c.small_dims(0);
  if (data != nullptr && dims && element_count(*dims) == static_cast<int64_t>(data->elements.size())) c.set(0, *data);
}

}  // namespace

OpDef align_dims_op() {
  return {
      .name = "align_dims",
      .onnx = {},
      .doc = "appends dims of 1 to `data`, so that its dims stand below those of `reference` from `axis` on",
      .operands = {{"reference", {"R", dtypes::all}}, {"data", any_tensor}},
      .results = {{"aligned", any_tensor}},
      .attrs = {required_attr("axis", AttrKind::integer)},
      .dynamism = isdos(),
      .mapping = Mapping::reorganize,
      .forward = forward,
      .backward = absent("how many dims the data has of its own does not follow from the result"),
      .value = value,
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(f32[2, 3, 4], f32[3]) {axis = 1}", "f32[3, 1]"},
                  {"$(f32[2, 3], f32[3]) {axis = 1}", "f32[3]"},
                  {"$(f32[2, 0, 1], i64[0]) {axis = -2}", "i64[0, 1]"},
                  {"$(f32[], i64[]{5}) {axis = 0}", "i64[]{5}"},
                  {"$(f32[2, 3], f32[3, 4]) {axis = 1}", "error: does not fit"}},
  };
}

}  // namespace selkie::ops
