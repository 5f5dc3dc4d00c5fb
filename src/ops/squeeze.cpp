// Squeeze and Unsqueeze: axes of 1 taken out or put in.
#include <algorithm>

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// Dims without the given axes, or without all that are `one` if none are given.
template <class D, class IsOne>
std::vector<D> squeezed(const std::vector<D>& dims, const std::optional<std::vector<int64_t>>& axes, IsOne is_one) {
  std::vector<int64_t> gone = normalize_axes(axes.value_or(std::vector<int64_t>{}), static_cast<int64_t>(dims.size()));
  std::vector<D> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    bool drop = axes ? std::binary_search(gone.begin(), gone.end(), static_cast<int64_t>(i)) : is_one(dims[i]);
    if (!drop)
      out.push_back(dims[i]);
    else if (axes && !is_one(dims[i]))
      fail("axis {} is not 1", i);
  }
  return out;
}

template <class D>
std::vector<D> unsqueezed(std::vector<D> dims, const std::vector<int64_t>& axes, D one) {
  for (int64_t axis : normalize_axes(axes, static_cast<int64_t>(dims.size() + axes.size())))
    dims.insert(dims.begin() + axis, one);
  return dims;
}

void eval_squeeze(EvalContext& e) {
  std::optional<std::vector<int64_t>> axes;
  if (e.has(1)) axes = ints_of(e.tensor(1));
  e.set(0, e.tensor(0).reshaped(squeezed(e.tensor(0).dims(), axes, [](int64_t d) { return d == 1; })));
}

std::vector<Type> forward_squeeze(const ForwardContext& c) {
  std::optional<std::vector<int64_t>> axes = c.numbers(1);
  // Without axes the rank depends on which dims are 1.
  bool decided = c.has(1) ? axes.has_value()
                          : c.dims(0) && std::all_of(c.dims(0)->begin(), c.dims(0)->end(),
                                                     [&](sym::Expr d) { return d.is_constant() || c.excludes(d, 1); });
  if (!c.dims(0) || !decided) return {Type::tensor(c.dtype(0))};
  return {Type::tensor(c.dtype(0), squeezed(*c.dims(0), axes, [&](sym::Expr d) { return !c.excludes(d, 1); }))};
}

std::vector<Type> forward_unsqueeze(const ForwardContext& c) {
  std::optional<std::vector<int64_t>> axes = c.numbers(1);
  if (!c.dims(0) || !axes) return {Type::tensor(c.dtype(0))};
  return {Type::tensor(c.dtype(0), unsqueezed(*c.dims(0), *axes, c.constant(1)))};
}

// The axes that are taken out are 1.
void backward_squeeze(BackwardContext& c) {
  std::optional<std::vector<int64_t>> axes = c.numbers(1);
  if (!axes) return;
  if (!c.dims(0) && c.result_dims(0)) c.set_rank(0, c.result_dims(0)->size() + axes->size());
  if (!c.dims(0)) return;
  const SymDims dims = *c.dims(0);
  std::vector<int64_t> taken = normalize_axes(*axes, static_cast<int64_t>(dims.size()));
  for (int64_t axis : taken) c.equal(dims[static_cast<size_t>(axis)], c.constant(1));
  if (!c.result_dims(0) || c.result_dims(0)->size() + taken.size() != dims.size()) return;
  size_t at = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    if (std::find(taken.begin(), taken.end(), static_cast<int64_t>(i)) == taken.end())
      c.equal(dims[i], (*c.result_dims(0))[at++]);
}

void backward_unsqueeze(BackwardContext& c) {
  std::optional<std::vector<int64_t>> axes = c.numbers(1);
  if (!axes || !c.result_dims(0)) return;
  SymDims dims = *c.result_dims(0);
  std::vector<int64_t> put = normalize_axes(*axes, static_cast<int64_t>(dims.size()));
  for (size_t i = put.size(); i-- > 0;) dims.erase(dims.begin() + put[i]);
  c.set_dims(0, dims);
}

OpDef record(bool squeeze) {
  return {
      .name = squeeze ? "squeeze" : "unsqueeze",
      .onnx = {"", squeeze ? "Squeeze" : "Unsqueeze", {1, 11, 13, 21, 23, 24, 25}},
      .doc = squeeze ? "axes of size 1 taken out: the given ones, or all" : "axes of size 1 put in",
      .operands = {{"data", any_tensor}, {"axes", i64_tensor, squeeze ? optional : required}},
      .results = {{squeeze ? "squeezed" : "expanded", any_tensor}},
      .dynamism = isvdos({"axes"}),
      .mapping = Mapping::reorganize,
      .forward = squeeze ? forward_squeeze : forward_unsqueeze,
      .backward = squeeze ? backward_squeeze : backward_unsqueeze,
      .value = value_by_moving,
      .eval = squeeze ? eval_squeeze : [](EvalContext& e) { e.set(0, e.tensor(0).reshaped(unsqueezed(e.tensor(0).dims(), ints_of(e.tensor(1)), int64_t{1}))); },
      .lower = lower_reorganized,
      .grad = later::training,
      .upgrades = {{13, attr_to_operand("axes", 1)}},
      .samples = squeeze ? std::vector<ir::Sample>{{"$(f32[1, 3, 1], i64[1]{0})", "f32[3, 1]"},
                                                   {"$(f32[1, 3, 1])", "f32[3]"},
                                                   {"$(f32[0, 1], i64[1]{-1})", "f32[0]"},
                                                   {"$(f32[2, 3], i64[1]{0})", "error: axis 0 is not 1"}}
                         : std::vector<ir::Sample>{{"$(f32[3, 4], i64[2]{0, -1})", "f32[1, 3, 4, 1]"},
                                                   {"$(f32[], i64[1]{0})", "f32[1]"},
                                                   {"$(f32[3], i64[2]{0, 0})", "error: given twice"},
                                                   {"$(f32[3], i64[1]{2})", "error: axis 2 is outside"}},
  };
}

}  // namespace

std::vector<OpDef> squeeze_family() { return {record(true), record(false)}; }

}  // namespace selkie::ops
