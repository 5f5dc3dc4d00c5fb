// Large matrix products by one level of Strassen's algorithm: seven products of quarters instead of eight, so an eighth
// less arithmetic, for some sums of quarters before and after. The quarters are upper and lower rows of a, the halves
// of a piece of the depth, and neighbouring panels of b, so that sums of b and products stay in cache.
//
// Rounding errors are relative to the largest elements of the two rows that are paired, not to those of each: about
// three times those of the plain sum. Where a or b have an infinity, a NaN or huge numbers, which sums would spread to
// other rows, the plain product is made instead, block by block.
#pragma once

#include "kernels/gemm.h"

namespace selkie::kernels {

// Whether it can make this product, and is expected to be faster than run_gemm.
bool strassen_wins(const KernelTable& table, const Gemm& gemm);

// A product is made in steps: a block of rows times a piece of the depth. Each step has two stages, the sums of a and
// the products; all tasks of one must be done before the next.
struct StrassenPlan {
  int64_t blocks;
  int64_t rows_of_block;  // of the upper part; the lower one has as many, and may share a row with it
  int64_t pieces;
  int64_t depth_of_piece;  // even
  int64_t rows_of_sums;    // of a task of the first stage
  int64_t rows_at_once;    // of what is in cache at a time in the second
  size_t memory_bytes;     // that all threads share, aligned to 64
  size_t scratch_bytes;    // for each thread, aligned to 64

  int64_t steps() const { return blocks * pieces; }
  int64_t sum_tasks() const;
  int64_t product_tasks(const KernelTable& table, const Gemm& gemm) const;
};
StrassenPlan plan_strassen(const KernelTable& table, const Gemm& gemm, int threads);
void run_strassen_sums(const KernelTable& table, const Gemm& gemm, const StrassenPlan& plan, int64_t step,
                       int64_t task_begin, int64_t task_end, void* memory);
void run_strassen_products(const KernelTable& table, const Gemm& gemm, const StrassenPlan& plan, int64_t step,
                           int64_t task_begin, int64_t task_end, const void* memory, void* scratch);

}  // namespace selkie::kernels
