// MatMul: matrix product with broadcast leading dims.
#include "ops/support/gemm.h"
#include "ops/support/matmul_dims.h"
#include "ops/support/matmul_lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", dtypes::floats | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}};

void lower(LowerContext& c) {
  if (c.rank(0) == 0 || c.rank(1) == 0) c.refuse("of scalars");
  if (c.dtype(0) == DType::f32) c.set_product(product_form(c));
  DType dtype = compute_dtype(c.dtype(0));
  c.define(0, [&c, dtype](const Index& at) {
    kir::Value sum = product_element(c, 0, 1, at, dtype, [](kir::Value x, kir::Value y) { return x * y; });
    return cast(sum, c.result_dtype());
  });
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
      .forward =
          [](const ForwardContext& c) {
            return std::vector<Type>{Type::tensor(c.dtype(0), matmul_dims(c, c.dims(0), c.dims(1)))};
          },
      .backward = [](BackwardContext& c) { matmul_backward(c, 0, 1); },
      .value = absent("products of matrices do not occur in shape arithmetic"),
      .eval = [](EvalContext& e) { e.set(0, matmul(e.tensor(0), e.tensor(1))); },
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(f32[2, 3], f32[3, 4])", "f32[2, 4]"},
                  {"$(f32[5, 1, 2, 3], f32[6, 3, 4])", "f32[5, 6, 2, 4]"},
                  {"$(f32[3], f32[3])", "f32[]"},
                  {"$(f32[3], f32[2, 3, 1])", "f32[2, 1]"},
                  {"$(f32[2, 0], f32[0, 2])", "f32[2, 2]{0, 0, 0, 0}"},
                  {"$(i32[2, 2]{1, 2, 3, 4}, i32[2]{1, -1})", "i32[2]{-1, -1}"},
                  {"$(f32[2, 3], f32[4, 5])", "error: do not multiply"},
                  {"$(f32[], f32[4, 5])", "error: scalars"}},
  };
}

}  // namespace selkie::ops
