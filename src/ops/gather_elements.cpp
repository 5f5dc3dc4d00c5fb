// GatherElements: one element per index, along one axis.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  const Tensor& indices = e.tensor(1);
  if (data.rank() != indices.rank() || data.rank() == 0)
    fail("data {} and indices {} must have the same rank, at least 1", to_string(data.dims()),
         to_string(indices.dims()));
  int64_t axis = normalize_axis(e.attr_int("axis"), data.rank());
  for (int64_t i = 0; i < data.rank(); ++i)
    if (i != axis && indices.dim(i) > data.dim(i))
      fail("indices {} are larger than data {} at axis {}", to_string(indices.dims()), to_string(data.dims()), i);
  std::vector<int64_t> picks = ints_of(indices);
  int64_t extent = data.dim(axis);
  std::vector<int64_t> strides = strides_of(data.dims());
  int64_t step = std::exchange(strides[static_cast<size_t>(axis)], 0);
  Tensor out(data.dtype(), indices.dims());
  dispatch_storage(data.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    size_t i = 0;
    for (Walk<1> walk(indices.dims(), {strides}); !walk.done(); walk.next(), ++i) {
      int64_t pick = picks[i];
      if (pick < -extent || pick >= extent)
        fail("index {} is outside -{}..{} of axis {}", pick, extent, extent - 1, axis);
      out.mutable_data<T>()[i] = data.data<T>()[walk.offset(0) + (pick < 0 ? pick + extent : pick) * step];
    }
  });
  e.set(0, std::move(out));
}

// Outside the axis, indices have no more entries than there is data.
void backward(BackwardContext& c) {
  if (c.result_dims(0)) c.set_dims(1, SymDims(*c.result_dims(0)));
  if (!c.dims(0) || !c.dims(1) || c.rank(0) != c.rank(1)) return;
  const SymDims data = *c.dims(0);
  const SymDims indices = *c.dims(1);
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), std::ssize(data)));
  for (size_t i = 0; i < data.size(); ++i)
    if (i != axis) c.less_equal(indices[i], data[i]);
}

void lower(LowerContext& c) {
  if (c.rank(0) == 0 || c.rank(0) != c.rank(1)) c.refuse("data and indices differ in rank");
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  sym::Expr extent = (*c.dims(0))[axis];
  c.require_indices(1, extent);
  c.define(0, [&c, axis, extent](const Index& at) {
    Index from = at;
    from[axis] = counted_from_start(c, c.operand(1, at), extent);
    return c.operand(0, from);
  });
}

}  // namespace

OpDef gather_elements_op() {
  return {
      .name = "gather_elements",
      .onnx = {"", "GatherElements", {11, 13}},
      .doc = "one element per index, along one axis",
      .operands = {{"data", any_tensor}, {"indices", index_tensor}},
      .results = {{"output", any_tensor}},
      .attrs = {int_attr("axis", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::shuffle,
      .forward = [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(0), c.dims(1))}; },
      .backward = backward,
      .value = value_by_moving,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(i32[2, 2]{1, 2, 3, 4}, i64[2, 2]{0, 0, 1, 0}) {axis = 1}", "i32[2, 2]{1, 1, 4, 3}"},
                  {"$(f32[3], i32[0])", "f32[0]"},
                  {"$(f32[3], i64[1]{-1})", "f32[1]"},
                  {"$(f32[3], i64[1]{3})", "error: index 3 is outside"},
                  {"$(f32[3], i64[1, 1])", "error: same rank"}},
  };
}

}  // namespace selkie::ops
