// Matrix products c = a b + bias in f32, for every number of rows: weights packed once, or b as it comes.
// Nothing here allocates; a call is cut into tasks that any threads may run, each thread with its own scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/epilogue.h"
#include "kernels/table.h"

namespace selkie::kernels {

// Strides are in floats. Of packed_b and b one is set. Sizes may be 0; c is then untouched, or with k = 0 holds the
// bias.
struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const float* a = nullptr;  // [m, k]
  int64_t a_row_stride = 0;
  int64_t a_column_stride = 1;
  const float* packed_b = nullptr;  // from pack_b of the same table
  const float* b = nullptr;         // [k, n]
  int64_t b_row_stride = 0;
  int64_t b_column_stride = 1;
  float* c = nullptr;  // [m, n]
  int64_t c_row_stride = 0;
  const float* bias = nullptr;  // [n], or null
  Finish finish;
  Epilogue epilogue;
  bool exact = false;  // not by an algorithm whose error is larger: Strassen's
};

// How a product is cut and where b is read from; a function of the sizes, strides and threads only.
struct GemmPlan {
  int64_t rows_of_task;
  int64_t columns_of_task;
  int64_t rows_of_block;
  int64_t packed_columns;  // of b, packed at one time into scratch; 0: b is packed already or read where it is
  int64_t row_tasks;
  int64_t column_tasks;
  size_t scratch_bytes;  // for each thread, aligned to 64

  int64_t tasks() const { return row_tasks * column_tasks; }
};

size_t packed_b_elements(const KernelTable& table, int64_t k, int64_t n);
// Panels of tile_columns columns, each [k][tile_columns], zeros beyond n.
void pack_b(const KernelTable& table, const float* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n,
            float* packed);

// Whether b is one column that is not short, whose products with the rows of a are sums along these.
bool multiplies_column(const Gemm& gemm);

GemmPlan plan_gemm(const KernelTable& table, const Gemm& gemm, int threads);
void run_gemm(const KernelTable& table, const Gemm& gemm, const GemmPlan& plan, int64_t task_begin, int64_t task_end,
              void* scratch);

}  // namespace selkie::kernels
