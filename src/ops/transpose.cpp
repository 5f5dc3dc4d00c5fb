// Transpose: a permutation of the axes.
#include <algorithm>

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// The `perm` attribute, by default all axes reversed; fails unless it is a permutation of 0…rank−1.
std::vector<int64_t> permutation(const std::vector<int64_t>* perm, int64_t rank) {
  std::vector<int64_t> out;
  if (perm == nullptr) {
    for (int64_t i = rank; i-- > 0;) out.push_back(i);
    return out;
  }
  if (static_cast<int64_t>(perm->size()) != rank)
    fail("perm has {} axes, but the tensor has rank {}", perm->size(), rank);
  normalize_axes(*perm, rank);
  for (int64_t axis : *perm) out.push_back(normalize_axis(axis, rank));
  return out;
}

void eval(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  e.set(0, transpose(data, permutation(e.has_attr("perm") ? &e.attr_ints("perm") : nullptr, data.rank())));
}

std::vector<Type> forward(const ForwardContext& c) {
  const ir::Attribute* perm = c.find_attr("perm");
  if (!c.dims(0) && perm != nullptr)
    return {Type::tensor(c.dtype(0), c.unknown_dims(0, std::get<std::vector<int64_t>>(*perm).size()))};
  if (!c.dims(0)) return {c.type(0)};
  SymDims dims;
  for (int64_t axis :
       permutation(perm ? &std::get<std::vector<int64_t>>(*perm) : nullptr, static_cast<int64_t>(c.dims(0)->size())))
    dims.push_back((*c.dims(0))[static_cast<size_t>(axis)]);
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c) {
  const ir::Attribute* perm = c.find_attr("perm");
  if (perm != nullptr) c.set_rank(0, std::get<std::vector<int64_t>>(*perm).size());
  if (!c.result_dims(0)) return;
  const SymDims& out = *c.result_dims(0);
  std::vector<int64_t> axes =
      permutation(perm ? &std::get<std::vector<int64_t>>(*perm) : nullptr, static_cast<int64_t>(out.size()));
  SymDims dims(out.size());
  for (size_t i = 0; i < out.size(); ++i) dims[static_cast<size_t>(axes[i])] = out[i];
  c.set_dims(0, dims);
}

void lower(LowerContext& c) {
  const ir::Attribute* perm = c.find_attr("perm");
  std::vector<int64_t> axes =
      permutation(perm ? &std::get<std::vector<int64_t>>(*perm) : nullptr, static_cast<int64_t>(c.rank(0)));
  c.set_permutation(axes);
  c.define(0, [&c, axes](const Index& at) {
    Index from(at.size());
    for (size_t i = 0; i < at.size(); ++i) from[static_cast<size_t>(axes[i])] = at[i];
    return c.operand(0, from);
  });
}

}  // namespace

OpDef transpose_op() {
  return {
      .name = "transpose",
      .onnx = {"", "Transpose", {1, 13, 21, 23, 24, 25}},
      .doc = "a permutation of the axes, by default their reversal",
      .operands = {{"data", any_tensor}},
      .results = {{"transposed", any_tensor}},
      .attrs = {optional_attr("perm", AttrKind::integers)},
      .dynamism = isdos(),
      .mapping = Mapping::shuffle,
      .forward = forward,
      .backward = backward,
      .value = value_by_moving,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(i32[2, 3]{1, 2, 3, 4, 5, 6})", "i32[3, 2]{1, 4, 2, 5, 3, 6}"},
                  {"$(f32[2, 3, 4]) {perm = [1, 0, 2]}", "f32[3, 2, 4]"},
                  {"$(f32[0, 3])", "f32[3, 0]"},
                  {"$(f32[2, 3]) {perm = [0, 0]}", "error: given twice"},
                  {"$(f32[2, 3]) {perm = [0]}", "error: perm has 1 axes"}},
  };
}

}  // namespace selkie::ops
