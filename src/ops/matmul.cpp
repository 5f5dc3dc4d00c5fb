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
  c.facts().add_equal(a.back(), b[b.size() - 2], "matmul: the inner dims are equal");
  std::optional<SymDims> dims = broadcast(c, SymDims(a.begin(), a.end() - 2), SymDims(b.begin(), b.end() - 2));
  if (!vector_a) dims->push_back(a[a.size() - 2]);
  if (!vector_b) dims->push_back(b.back());
  return {Type::tensor(c.dtype(0), dims)};
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
      .backward = later::rdp,
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
