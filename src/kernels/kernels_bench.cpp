// How near the kernels come to the roofs of one core, on the shapes of transformers and image networks.
// Pin it to a core: taskset -c 1 kernels_bench [roofs|gemm|matmul]… ; without a name everything is run.
#include <fmt/core.h>

#include <string_view>

#include "kernels/bench_support.h"
#include "kernels/gemm.h"

namespace selkie::kernels::bench {
namespace {

struct Bench {
  const KernelTable& table;
  double roof;

  void report(const std::string& name, double flops, double bytes, double seconds) const {
    double rate = flops / seconds * 1e-9;
    fmt::print("{:36} {:10.1f} us {:8.1f} GFLOP/s {:5.1f} % of FMA roof {:7.1f} GB/s\n", name, seconds * 1e6, rate,
               100 * rate / roof, bytes / seconds * 1e-9);
    std::fflush(stdout);
  }
};

void roofs(const Bench& bench) {
  fmt::print("{}: FMA {:.1f} GFLOP/s; caches {} KB, {} KB\n", bench.table.name, bench.roof, cache_sizes().l1 >> 10,
             cache_sizes().l2 >> 10);
  for (int64_t kilobytes : {16, 256, 1024, 4096, 16384, 262144})
    fmt::print("read {:7} KB {:8.1f} GB/s\n", kilobytes, read_roof(bench.table.isa, kilobytes << 10));
}

void gemm(const Bench& bench, int64_t m, int64_t n, int64_t k) {
  std::vector<float> a = random_floats(m * k, 1);
  std::vector<float> b = random_floats(k * n, 2);
  std::vector<float> bias = random_floats(n, 3);
  std::vector<float> c(static_cast<size_t>(m * n));
  std::vector<float> packed(packed_b_elements(bench.table, k, n) + 16);
  float* aligned = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64) / 4 % 16;
  pack_b(bench.table, b.data(), n, 1, k, n, aligned);
  Gemm problem{.m = m,
               .n = n,
               .k = k,
               .a = a.data(),
               .a_row_stride = k,
               .packed_b = aligned,
               .c = c.data(),
               .c_row_stride = n,
               .bias = bias.data()};
  GemmPlan plan = plan_gemm(bench.table, problem, 1);
  std::vector<std::byte> scratch(plan.scratch_bytes + 64);
  void* memory = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
  double seconds =
      best_of_tasks(plan.tasks(), [&](int64_t task) { run_gemm(bench.table, problem, plan, task, task + 1, memory); });
  bench.report(fmt::format("gemm {} x {} x {}", m, n, k), 2.0 * static_cast<double>(m * n * k),
               4.0 * static_cast<double>(m * k + k * n + m * n), seconds);
}

void gemms(const Bench& bench) {
  std::vector<int64_t> rows;
  for (int64_t m = 1; m <= 64; ++m) rows.push_back(m);
  rows.insert(rows.end(), {96, 128, 512});
  for (auto [n, k] : {std::pair<int64_t, int64_t>{768, 768}, {3072, 768}, {768, 3072}})
    for (int64_t m : rows) gemm(bench, m, n, k);
}

struct Section {
  std::string_view name;
  void (*function)(const Bench&);
};
constexpr Section sections[] = {{"roofs", roofs}, {"gemm", gemms}};

int run(int count, char** names) {
  Isa isa = best_isa();
  Bench bench{.table = table(isa), .roof = fma_roof(isa)};
  for (const Section& section : sections) {
    bool chosen = count == 0;
    for (int i = 0; i < count; ++i) chosen |= section.name == names[i];
    if (chosen) section.function(bench);
  }
  return 0;
}

}  // namespace
}  // namespace selkie::kernels::bench

int main(int count, char** arguments) { return selkie::kernels::bench::run(count - 1, arguments + 1); }
