#include "ops/support/matmul_lower.h"

namespace selkie::ops {

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
