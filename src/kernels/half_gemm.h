// Matrix products in f32 whose weights are packed in f16 or bf16, which halves what is read of them. A few rows widen
// them while they multiply; many share panels that are widened once.
#pragma once

#include <optional>
#include <span>

#include "kernels/gemm.h"
#include "kernels/half_table.h"

namespace selkie::kernels {

struct HalfGemm {
  Gemm matrices;  // but for b
  const uint16_t* packed = nullptr;
  HalfKind kind = HalfKind::f16;
};

// The kind in which weights are worth packing: they are so many that caches do not hold them in f32, and exact in it.
// Nothing if there is none, or no kernel for it.
std::optional<HalfKind> half_kind(const KernelTable& table, std::span<const float> weights);

// Panels as pack_b has them; of bf16, columns of the two vectors of a panel take turns. The weights are exact in the
// kind.
void pack_half(const KernelTable& table, HalfKind kind, const float* b, int64_t row_stride, int64_t column_stride,
               int64_t k, int64_t n, uint16_t* packed);

struct HalfPlan {
  int64_t rows_of_block;
  int64_t columns_of_task;
  int64_t widened_columns;  // at one time; 0: rows are multiplied by panels as they are
  int64_t tasks;
  size_t scratch_bytes;  // for each thread, aligned to 64
};
HalfPlan plan_half_gemm(const KernelTable& table, const HalfGemm& gemm, int threads);
void run_half_gemm(const KernelTable& table, const HalfGemm& gemm, const HalfPlan& plan, int64_t task_begin,
                   int64_t task_end, void* scratch);

}  // namespace selkie::kernels
