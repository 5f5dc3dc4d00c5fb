#include "runtime/products.h"

namespace selkie::runtime {

Products::Products() : table_(kernels::table(kernels::best_isa())) {}

std::byte* Products::scratch(size_t bytes) {
  constexpr size_t alignment = 64;
  if (scratch_.size() < bytes + alignment) scratch_.resize(bytes + alignment);
  auto address = reinterpret_cast<uintptr_t>(scratch_.data());
  return scratch_.data() + (alignment - address % alignment) % alignment;
}

void Products::run_one(const Product& p, const float* a, const float* b, float* c) {
  kernels::Gemm gemm{.m = p.m,
                     .n = p.n,
                     .k = p.k,
                     .a = a,
                     .a_row_stride = p.k,
                     .packed_b = p.packed ? b : nullptr,
                     .b = p.packed ? nullptr : b,
                     .b_row_stride = p.transposed_b ? 1 : p.n,
                     .b_column_stride = p.transposed_b ? p.k : 1,
                     .c = c,
                     .c_row_stride = p.n,
                     .bias = p.bias,
                     .epilogue = {}};
  kernels::GemmPlan plan = kernels::plan_gemm(table_, gemm, 1);
  kernels::run_gemm(table_, gemm, plan, 0, plan.tasks(), scratch(plan.scratch_bytes));
}

void Products::run(const Product& p) {
  std::vector<int64_t> index(p.batch.size());
  int64_t count = 1;
  for (int64_t extent : p.batch) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    int64_t a = 0;
    int64_t b = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      a += index[axis] * p.a_strides[axis];
      b += index[axis] * p.b_strides[axis];
    }
    run_one(p, p.a + a * p.m * p.k, p.b + b * p.k * p.n, p.c + i * p.m * p.n);
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < p.batch[axis]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace selkie::runtime
