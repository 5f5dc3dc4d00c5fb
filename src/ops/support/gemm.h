// Matrix products for reference code: float operands accumulate in double, integers in 64 bits.
#pragma once

#include <cstdint>

#include "base/tensor.h"

namespace selkie::ops {

// c[m, n] = a[m, k] · b[k, n], all row-major and dense.
void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);
void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k);
void gemm(const int64_t* a, const int64_t* b, int64_t* c, int64_t m, int64_t n, int64_t k);
void gemm(const uint64_t* a, const uint64_t* b, uint64_t* c, int64_t m, int64_t n, int64_t k);

// numpy's matmul: rank 1 operands are extended, leading dims broadcast. Both operands have one dtype; the result has it
// too.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace selkie::ops
