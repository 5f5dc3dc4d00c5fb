// MatMul: matrix product with broadcast leading dims.
#include "ops/support/gemm.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", dtypes::floats | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}};

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0) || !c.dims(1) || c.dims(0)->empty() || c.dims(1)->empty()) return {Type::tensor(c.dtype(0))};
  SymDims a = *c.dims(0);
  SymDims b = *c.dims(1);
  bool vector_a = a.size() == 1;
  bool vector_b = b.size() == 1;
  if (vector_a) a.insert(a.begin(), c.constant(1));
  if (vector_b) b.push_back(c.constant(1));
  std::optional<SymDims> dims = broadcast(c, SymDims(a.begin(), a.end() - 2), SymDims(b.begin(), b.end() - 2));
  if (!vector_a) dims->push_back(a[a.size() - 2]);
  if (!vector_b) dims->push_back(b.back());
  return {Type::tensor(c.dtype(0), dims)};
}

// The inner dims are equal. With both ranks known, the result's dims are those of the operands.
void backward(BackwardContext& c) {
  const std::optional<SymDims>& out = c.result_dims(0);
  // A result of rank 2 or more whose one operand is a matrix: without batch dims there, the other one has them all.
  for (size_t i = 0; i < 2; ++i) {
    if (c.dims(i) || !c.dims(1 - i) || !out || out->size() < 2) continue;
    if (c.rank(1 - i) == 2 || c.rank(1 - i) < out->size()) c.set_rank(i, out->size());
  }
  if (!c.dims(0) || !c.dims(1) || c.dims(0)->empty() || c.dims(1)->empty()) return;
  const SymDims a = *c.dims(0);
  const SymDims b = *c.dims(1);
  c.equal(a.back(), b.size() == 1 ? b[0] : b[b.size() - 2]);
  if (!out || a.size() < 2 || b.size() < 2 || out->size() < 2) return;
  c.equal(a[a.size() - 2], (*out)[out->size() - 2]);
  c.equal(b.back(), out->back());
}

}  // namespace

OpDef matmul_op() {
  return {
      .name = "matmul",
      .onnx = {"", "MatMul", {1, 9, 13}},
      .doc = "matrix product; leading dims broadcast, vectors are extended",
      .operands = {{"a", type}, {"b", type}},
      .results = {{"y", type}},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("products of matrices do not occur in shape arithmetic"),
      .eval = [](EvalContext& e) { e.set(0, matmul(e.tensor(0), e.tensor(1))); },
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(f32[2, 3], f32[3, 4])", "f32[2, 4]"},
                  {"$(f32[5, 1, 2, 3], f32[6, 3, 4])", "f32[5, 6, 2, 4]"},
                  {"$(f32[3], f32[3])", "f32[]"},
                  {"$(f32[2, 0], f32[0, 2])", "f32[2, 2]{0, 0, 0, 0}"},
                  {"$(i32[2, 2]{1, 2, 3, 4}, i32[2]{1, -1})", "i32[2]{-1, -1}"},
                  {"$(f32[2, 3], f32[4, 5])", "error: do not multiply"},
                  {"$(f32[], f32[4, 5])", "error: scalars"}},
  };
}

}  // namespace selkie::ops
