// Matrix products in kernels, as sums of products of elements.
#pragma once

#include "ops/support/lower.h"

namespace selkie::ops {

// The row of the first and the column of the second operand that an element of a product belongs to; null for vectors.
struct RowAndColumn {
  kir::Value row;
  kir::Value column;
};
RowAndColumn row_and_column(const LowerContext& c, size_t a, size_t b, const Index& at);

// The product of operands 0 and 1, neither a scalar, whose leading dims broadcast.
ir::ProductForm product_form(const LowerContext& c);

// Σ multiply(element of operand a, element of operand b) at an index of their product, whose dims result 0 has.
using Multiply = std::function<kir::Value(kir::Value, kir::Value)>;
kir::Value product_element(const LowerContext& c, size_t a, size_t b, const Index& at, DType dtype,
                           const Multiply& multiply);

}  // namespace selkie::ops
