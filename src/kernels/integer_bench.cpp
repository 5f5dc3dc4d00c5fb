// Products of bytes beside those of floats of the same size, in the same run.
#include <cstring>

#include "kernels/bench_support.h"
#include "kernels/gemm.h"
#include "kernels/integer_gemm.h"

namespace selkie::kernels::bench {
namespace {

std::vector<uint8_t> some_bytes(int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 % 251);
  return bytes;
}

void product(const Bench& bench, int64_t m, int64_t n, int64_t k) {
  const IntegerTable& table = best_integer_table();
  std::vector<uint8_t> a = some_bytes(m * k);
  std::vector<uint8_t> b = some_bytes(k * n);
  std::vector<int32_t> c(static_cast<size_t>(m * n));
  uint8_t zero = 117;
  IntegerProduct integers{.shape = product_shape(m, n, k), .input = {.data = a.data(), .zeros = &zero}};
  Aligned packed(packed_integer_bytes(table, integers.shape) / 4);
  auto* bytes = reinterpret_cast<std::byte*>(packed.data());
  pack_integer(
      table, integers.shape,
      {.bytes = {.data = b.data(), .is_signed = true}, .column_stride = 1, .channel_stride = n, .tap_stride = 0},
      bytes);
  integers.packed = bytes;
  integers.output = c.data();
  IntegerPlan plan = plan_integer(table, integers, 1);
  Aligned memory(plan.memory_bytes / 4);
  Aligned scratch(plan.scratch_bytes / 4);

  std::vector<float> fa = random_floats(m * k, 1);
  std::vector<float> fb = random_floats(k * n, 2);
  std::vector<float> fc(static_cast<size_t>(m * n));
  Aligned packed_floats(packed_b_elements(bench.table, k, n));
  pack_b(bench.table, fb.data(), n, 1, k, n, packed_floats.data());
  Gemm floats{.m = m,
              .n = n,
              .k = k,
              .a = fa.data(),
              .a_row_stride = k,
              .packed_b = packed_floats.data(),
              .c = fc.data(),
              .c_row_stride = n};
  GemmPlan float_plan = plan_gemm(bench.table, floats, 1);
  Aligned float_scratch(float_plan.scratch_bytes / 4);
  auto [seconds, of_floats] = best_of_turns(
      1,
      [&](int64_t) {
        for (int64_t stage = 0; stage < IntegerPlan::stages; ++stage)
          run_integer_stage(table, integers, plan, stage, 0, plan.tasks(stage), memory.data(), scratch.data());
      },
      [&](int64_t) { run_gemm(bench.table, floats, float_plan, 0, float_plan.tasks(), float_scratch.data()); });
  double operations = 2.0 * static_cast<double>(m * n * k);
  fmt::print("{} bytes {:4} x {} x {}: {:9.1f} us {:7.1f} GOP/s; f32 {:7.1f} GFLOP/s, {:.2f} times as long\n",
             table.name, m, n, k, seconds * 1e6, operations / seconds * 1e-9, operations / of_floats * 1e-9,
             of_floats / seconds);
}

}  // namespace

void integers(const Bench& bench) {
  for (auto [n, k] : {std::pair<int64_t, int64_t>{768, 768}, {3072, 768}, {768, 3072}})
    for (int64_t m : {1, 2, 4, 7, 16, 64, 128, 512}) product(bench, m, n, k);
}

}  // namespace selkie::kernels::bench
