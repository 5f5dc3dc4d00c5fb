// MatMul: matrix product with broadcast leading dims.
#include "ops/support/gemm.h"
#include "ops/support/matmul_dims.h"
#include "ops/support/matmul_lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", dtypes::floats | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}};

// The leading axes of an operand that broadcasts to `batch`.
void set_batch(const LowerContext& c, const SymDims& dims, const SymDims& batch, ir::ProductForm::Matrix& matrix) {
  size_t own = std::min(dims.size() > 2 ? dims.size() - 2 : 0, batch.size());
  matrix.batch.assign(batch.size() - own, {std::nullopt, c.constant(0)});
  for (size_t i = 0; i < own; ++i) {
    bool same = c.proves_equal(dims[i], batch[batch.size() - own + i]);
    // Else 1 or as large as the result: the run tells which.
    matrix.batch.emplace_back(i, same ? c.constant(1) : sym::min(sym::max(dims[i] - 1, 0), 1));
  }
}

void lower_product(LowerContext& c) {
  const SymDims& a = *c.dims(0);
  const SymDims& b = *c.dims(1);
  const SymDims& y = c.result_dims();
  ir::ProductForm form{.m = a.size() > 1 ? a[a.size() - 2] : c.constant(1),
                       .n = b.size() > 1 ? b.back() : c.constant(1),
                       .k = a.back(),
                       .a = {.rows = {}, .columns = {a.size() - 1}},
                       .b = {.rows = {b.size() > 1 ? b.size() - 2 : 0}, .columns = {}},
                       .c = {.rows = {}, .columns = {}}};
  if (a.size() > 1) form.a.rows = {a.size() - 2};
  if (b.size() > 1) {
    form.b.columns = {b.size() - 1};
    form.c.columns = {y.size() - 1};
  }
  size_t batch = y.size() - form.c.columns.size() - form.a.rows.size();
  if (a.size() > 1) form.c.rows = {batch};
  form.batch.assign(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(batch));
  if (b.size() <= 2) {  // one matrix for all: more rows instead of a batch
    for (size_t i = batch; i-- > 0;) {
      form.m = form.m * form.batch[i];
      form.a.rows.insert(form.a.rows.begin(), i);
      form.c.rows.insert(form.c.rows.begin(), i);
    }
    form.batch.clear();
  }
  set_batch(c, a, form.batch, form.a);
  set_batch(c, b, form.batch, form.b);
  for (size_t i = 0; i < form.batch.size(); ++i) form.c.batch.emplace_back(i, c.constant(1));
  c.set_product(std::move(form));
}

void lower(LowerContext& c) {
  if (c.rank(0) == 0 || c.rank(1) == 0) c.refuse("of scalars");
  if (c.dtype(0) == DType::f32) lower_product(c);
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
