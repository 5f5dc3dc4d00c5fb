// Products with weights in f16 and bf16 beside those with weights in f32, in the same run.
#include "kernels/bench_support.h"
#include "kernels/half_gemm.h"

namespace selkie::kernels::bench {
namespace {

void product(const Bench& bench, int64_t m, int64_t n, int64_t k) {
  std::vector<float> a = random_floats(m * k, 1);
  std::vector<float> b(static_cast<size_t>(k * n));
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 31) / 32;
  std::vector<float> c(static_cast<size_t>(m * n));
  Aligned packed(packed_b_elements(bench.table, k, n));
  pack_b(bench.table, b.data(), n, 1, k, n, packed.data());
  Gemm floats{.m = m,
              .n = n,
              .k = k,
              .a = a.data(),
              .a_row_stride = k,
              .packed_b = packed.data(),
              .c = c.data(),
              .c_row_stride = n};
  GemmPlan plan = plan_gemm(bench.table, floats, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  for (HalfKind kind : {HalfKind::f16, HalfKind::bf16}) {
    std::vector<uint16_t> halves(packed_b_elements(bench.table, k, n));
    pack_half(bench.table, kind, b.data(), n, 1, k, n, halves.data());
    HalfGemm half{.matrices = floats, .packed = halves.data(), .kind = kind};
    HalfPlan half_plan = plan_half_gemm(bench.table, half, 1);
    Aligned half_scratch(half_plan.scratch_bytes / 4);
    auto [seconds, of_floats] = best_of_turns(
        1, [&](int64_t) { run_half_gemm(bench.table, half, half_plan, 0, half_plan.tasks, half_scratch.data()); },
        [&](int64_t) { run_gemm(bench.table, floats, plan, 0, plan.tasks(), scratch.data()); }, 0.5);
    fmt::print("{:4} weights {:4} x {} x {}: {:9.1f} us; f32 {:9.1f} us, {:.2f} times as long\n",
               kind == HalfKind::f16 ? "f16" : "bf16", m, n, k, seconds * 1e6, of_floats * 1e6, of_floats / seconds);
  }
}

}  // namespace

void halves(const Bench& bench) {
  if (half_table(bench.table.isa) == nullptr) return;
  for (auto [n, k] : {std::pair<int64_t, int64_t>{768, 768}, {3072, 768}, {4096, 4096}})
    for (int64_t m : {1, 2, 3, 4, 8, 32, 128}) product(bench, m, n, k);
}

}  // namespace selkie::kernels::bench
