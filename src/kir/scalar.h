// What the scalar operations of the kernel IR mean, on one value each: the definition that compiled code is tested by.
#pragma once

#include <span>

#include "kir/kernel.h"

namespace selkie::kir {

// A value of some dtype: floats in `real` (exactly a value of the dtype), all else in `whole`, extended to 64 bits by
// the dtype's sign.
union Scalar {
  int64_t whole;
  double real;
};

Scalar load_scalar(DType dtype, const void* data, int64_t index);
void store_scalar(DType dtype, void* data, int64_t index, Scalar value);

// Of `constant`, from the bits that the expression holds.
Scalar constant_scalar(DType dtype, int64_t bits);

// cast and bits.
Scalar cast_scalar(DType from, DType to, Scalar value);
Scalar bits_scalar(DType from, DType to, Scalar value);

// All operations from neg to fma; `dtype` is that of the operands (of the last one for select).
Scalar apply_scalar(Op op, DType dtype, std::span<const Scalar> operands);

}  // namespace selkie::kir
