// Strassen's algorithm against the plain product, run by turns, on the products of transformers and 1x1 convolutions.
#include <tuple>

#include "kernels/bench_support.h"
#include "kernels/strassen.h"

namespace selkie::kernels::bench {
namespace {

void compare(const Bench& bench, int64_t m, int64_t n, int64_t k) {
  Aligned a(random_floats(m * k, 1));
  std::vector<float> b = random_floats(k * n, 2);
  Aligned c(static_cast<size_t>(m * n));
  Aligned packed(packed_b_elements(bench.table, k, n));
  pack_b(bench.table, b.data(), n, 1, k, n, packed.data());
  Gemm problem{.m = m,
               .n = n,
               .k = k,
               .a = a.data(),
               .a_row_stride = k,
               .packed_b = packed.data(),
               .c = c.data(),
               .c_row_stride = n};
  GemmPlan plain = plan_gemm(bench.table, problem, 1);
  StrassenPlan plan = plan_strassen(bench.table, problem, 1);
  Aligned scratch(std::max(plain.scratch_bytes, plan.scratch_bytes) / 4);
  Aligned memory(plan.memory_bytes / 4);
  auto by_strassen = [&](int64_t) {
    for (int64_t step = 0; step < plan.steps(); ++step) {
      run_strassen_sums(bench.table, problem, plan, step, 0, plan.sum_tasks(), memory.data());
      run_strassen_products(bench.table, problem, plan, step, 0, plan.product_tasks(bench.table, problem),
                            memory.data(), scratch.data());
    }
  };
  auto [seconds, plain_seconds] = best_of_turns(
      1, by_strassen, [&](int64_t) { run_gemm(bench.table, problem, plain, 0, plain.tasks(), scratch.data()); });
  std::string name = fmt::format("{} x {} x {}: {:.3f} of plain{}", m, n, k, seconds / plain_seconds,
                                 strassen_wins(bench.table, problem) ? " *" : "");
  bench.report(name, 2.0 * static_cast<double>(m * n * k), 4.0 * static_cast<double>(m * k + k * n + m * n), seconds);
}

}  // namespace

void strassens(const Bench& bench) {
  fmt::print("by Strassen's algorithm; * where it is chosen\n");
  using Sizes = std::tuple<int64_t, int64_t, int64_t>;
  for (auto [m, n, k] :
       {Sizes{1024, 768, 768}, {1024, 3072, 768}, {1024, 768, 3072}, {384, 768, 768},  {384, 3072, 768},
        {384, 768, 3072},      {128, 768, 768},   {128, 3072, 768},  {128, 768, 3072}, {3136, 256, 64},
        {3136, 64, 256},       {784, 512, 128},   {784, 128, 512},   {196, 1024, 256}, {196, 256, 1024},
        {49, 2048, 512},       {49, 512, 2048},   {3136, 256, 1024}, {784, 1024, 256}, {256, 2048, 1024},
        {64, 2048, 1024},      {64, 1024, 2048},  {512, 1024, 512},  {512, 512, 256}})
    compare(bench, m, n, k);
}

}  // namespace selkie::kernels::bench
