// Gather: slices along one axis, picked by indices.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  const Tensor& indices = e.tensor(1);
  if (data.rank() == 0) fail("the data is a scalar");
  int64_t axis = normalize_axis(e.attr_int("axis"), data.rank());
  int64_t extent = data.dim(axis);
  std::vector<int64_t> picks = ints_of(indices);
  for (int64_t& pick : picks) {
    if (pick < -extent || pick >= extent)
      fail("index {} is outside -{}..{} of axis {}", pick, extent, extent - 1, axis);
    if (pick < 0) pick += extent;
  }
  Dims dims(data.dims().begin(), data.dims().begin() + axis);
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), data.dims().begin() + axis + 1, data.dims().end());
  Tensor out(data.dtype(), std::move(dims));
  if (out.count() == 0) {  // the outer dims may be as large as they like then
    e.set(0, std::move(out));
    return;
  }
  int64_t outer = product(data.dims(), 0, axis);
  int64_t inner = product(data.dims(), axis + 1, data.rank());
  dispatch_storage(data.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = data.data<T>();
    T* to = out.mutable_data<T>();
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t pick : picks) to = std::copy_n(from + (i * extent + pick) * inner, inner, to);
  });
  e.set(0, std::move(out));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0) || !c.dims(1)) return {Type::tensor(c.dtype(0))};
  SymDims dims = *c.dims(0);
  auto axis = normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims.size()));
  auto at = dims.erase(dims.begin() + axis);
  dims.insert(at, c.dims(1)->begin(), c.dims(1)->end());
  return {Type::tensor(c.dtype(0), dims)};
}

// Outside the axis, the data has the result's dims, if it is known how many belong to the indices.
void backward(BackwardContext& c) {
  if (!c.result_dims(0) || c.dims(0) || !c.dims(1)) return;
  const SymDims& out = *c.result_dims(0);
  if (out.size() + 1 < c.rank(1) + 1) return;
  size_t rank = out.size() + 1 - c.rank(1);
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(rank)));
  SymDims dims(rank);
  for (size_t i = 0; i < rank; ++i)
    if (i != axis) dims[i] = out[i < axis ? i : i + c.rank(1) - 1];
  c.set_dims(0, dims);
}

void lower(LowerContext& c) {
  if (c.rank(0) == 0) c.refuse("the data is a scalar");
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  sym::Expr extent = (*c.dims(0))[axis];
  c.require_indices(1, extent);
  c.define(0, [&c, axis, extent](const Index& at) {
    auto after = at.begin() + static_cast<std::ptrdiff_t>(axis + c.rank(1));
    Index pick(at.begin() + static_cast<std::ptrdiff_t>(axis), after);
    Index from(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(axis));
    from.push_back(counted_from_start(c, c.operand(1, pick), extent));
    from.insert(from.end(), after, at.end());
    return c.operand(0, from);
  });
}

}  // namespace

OpDef gather_op() {
  return {
      .name = "gather",
      .onnx = {"", "Gather", {1, 11, 13}},
      .doc = "slices along one axis, picked by indices",
      .operands = {{"data", any_tensor}, {"indices", index_tensor}},
      .results = {{"output", any_tensor}},
      .attrs = {int_attr("axis", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::shuffle,
      .forward = forward,
      .backward = backward,
      .value = value_by_moving,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(f32[4, 3], i64[2, 2]{0, 1, 2, -1})", "f32[2, 2, 3]"},
                  {"$(i64[3]{5, 6, 7}, i64[]{-1})", "i64[]{7}"},
                  {"$(f32[2, 3], i32[0]) {axis = 1}", "f32[2, 0]"},
                  {"$(f32[2, 3], i64[1]{2})", "error: index 2 is outside"},
                  {"$(f32[2, 3], i64[1]{0}) {axis = 2}", "error: axis 2 is outside"}},
  };
}

}  // namespace selkie::ops
