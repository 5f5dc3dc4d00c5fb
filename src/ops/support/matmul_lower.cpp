#include "ops/support/matmul_lower.h"

namespace selkie::ops {
namespace {

// The leading axes of an operand that broadcasts to `batch`.
void set_batch(const LowerContext& c, const SymDims& dims, const SymDims& batch, ir::ProductForm::Matrix& matrix) {
  size_t own = std::min(dims.size() > 2 ? dims.size() - 2 : 0, batch.size());
  matrix.batch.assign(batch.size() - own, {std::nullopt, c.constant(0)});
  for (size_t i = 0; i < own; ++i) {
    sym::Expr to = batch[batch.size() - own + i];
    bool same = dims[i].constant() == 1 || c.proves_equal(dims[i], to);
    if (!same) c.services().require_equal(dims[i], broadcast_size(dims[i], to));
    // Else 1 or as large as the result: the run tells which.
    matrix.batch.emplace_back(i, dims[i].constant() == 1 ? c.constant(0)
                                 : same                  ? c.constant(1)
                                                         : sym::min(sym::max(dims[i] - 1, 0), 1));
  }
}

}  // namespace

ir::ProductForm product_form(const LowerContext& c) {
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
  return form;
}

// The result has the batch dims, then a row unless a is a vector, then a column unless b is one.
RowAndColumn row_and_column(const LowerContext& c, size_t a, size_t b, const Index& at) {
  RowAndColumn out;
  size_t columns = c.rank(b) > 1 ? 1 : 0;
  if (columns == 1) out.column = at.back();
  if (c.rank(a) > 1) out.row = at[at.size() - 1 - columns];
  return out;
}

kir::Value product_element(const LowerContext& c, size_t a, size_t b, const Index& at, DType dtype,
                           const Multiply& multiply) {
  auto [row, column] = row_and_column(c, a, b, at);
  size_t batches = at.size() - (row ? 1 : 0) - (column ? 1 : 0);
  Index batch(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(batches));
  SymDims batch_dims(c.result_dims().begin(), c.result_dims().begin() + static_cast<std::ptrdiff_t>(batches));
  auto leading = [&](const SymDims& dims) {
    size_t own = dims.size() > 2 ? dims.size() - 2 : 0;
    return broadcast_index(c, SymDims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(own)), batch_dims,
                           batch);
  };
  Index from_a = leading(*c.dims(a));
  Index from_b = leading(*c.dims(b));
  kir::Builder& builder = c.builder();
  return builder.reduce(kir::Op::add, builder.number(dtype, 0), {{c.dims(a)->back()}}, [&](const Index& k) {
    Index i = from_a;
    Index j = from_b;
    if (row) i.push_back(row);
    i.push_back(k[0]);
    j.push_back(k[0]);
    if (column) j.push_back(column);
    return multiply(cast(c.operand(a, i), dtype), cast(c.operand(b, j), dtype));
  });
}

}  // namespace selkie::ops
