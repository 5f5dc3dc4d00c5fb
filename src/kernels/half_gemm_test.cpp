// Products with weights in f16 and bf16 against a plain loop in double over the widened weights.
#include "kernels/half_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/float_formats.h"
#include "kernels/test_support.h"

namespace selkie::kernels {
namespace {

using namespace testing;

float value_of(HalfKind kind, uint16_t bits) {
  return static_cast<float>(decode_float(kind == HalfKind::f16 ? DType::f16 : DType::bf16, bits));
}

struct Case {
  int64_t m, n, k;
  HalfKind kind;
  int threads = 1;
  bool a_transposed = false;
};

void check(const KernelTable& table, const Case& t, Random& random) {
  SCOPED_TRACE(
      fmt::format("{} {}x{}x{} kind {} threads {}", table.name, t.m, t.n, t.k, static_cast<int>(t.kind), t.threads));
  Guarded a(t.m * t.k, random);
  Guarded bias(t.n, random);
  Guarded c(t.m * t.n);
  std::vector<float> b(static_cast<size_t>(t.k * t.n));
  // Numbers between 2⁻⁴ and 2, subnormal ones and zeros.
  for (float& number : b) {
    uint16_t exponent = t.kind == HalfKind::f16 ? 0x2c00 : 0x3d80;
    uint16_t range = t.kind == HalfKind::f16 ? 0x0fff : 0x01ff;
    auto drawn = static_cast<uint16_t>(random());
    auto magnitude = static_cast<uint16_t>(drawn % 5 == 0 ? drawn & 7 : exponent + (drawn & range));
    number = value_of(t.kind, static_cast<uint16_t>((drawn & 0x8000) | magnitude));
  }
  std::vector<uint16_t> packed(packed_b_elements(table, t.k, t.n));
  pack_half(table, t.kind, b.data(), t.n, 1, t.k, t.n, packed.data());
  void* buffers[] = {c.data()};
  int64_t sizes[] = {t.n};
  HalfGemm gemm{.matrices = {.m = t.m,
                             .n = t.n,
                             .k = t.k,
                             .a = a.data(),
                             .a_row_stride = t.a_transposed ? 1 : t.k,
                             .a_column_stride = t.a_transposed ? t.m : 1,
                             .c = c.data(),
                             .c_row_stride = t.n,
                             .bias = bias.data(),
                             .epilogue = {.function = add_one, .buffers = buffers, .sizes = sizes}},
                .packed = packed.data(),
                .kind = t.kind};
  HalfPlan plan = plan_half_gemm(table, gemm, t.threads);
  for (int64_t task = plan.tasks; task-- > 0;) {
    TestScratch scratch(plan.scratch_bytes);
    run_half_gemm(table, gemm, plan, task, task + 1, scratch.data());
  }
  const Gemm& g = gemm.matrices;
  for (int64_t i = 0; i < t.m; ++i)
    for (int64_t j = 0; j < t.n; ++j) {
      double want = bias[j] + 1.0;
      double size = 1;
      for (int64_t d = 0; d < t.k; ++d) {
        double product = double{g.a[i * g.a_row_stride + d * g.a_column_stride]} * b[static_cast<size_t>(d * t.n + j)];
        want += product;
        size += std::abs(product);
      }
      ASSERT_NEAR(c[i * t.n + j], want, 1e-6 * size) << "at " << i << ", " << j;
    }
}

TEST(HalfGemm, AllSizes) {
  Random random(1);
  for (Isa isa : usable_isas()) {
    if (half_table(isa) == nullptr) continue;
    const KernelTable& t = table(isa);
    for (HalfKind kind : {HalfKind::f16, HalfKind::bf16})
      for (int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 23, 40})
        for (int64_t n : {0, 1, 7, t.tile_columns, 5 * t.tile_columns + 3})
          for (int64_t k : {0, 1, 13, 64}) check(t, {.m = m, .n = n, .k = k, .kind = kind}, random);
  }
}

TEST(HalfGemm, ManyTasksAndTransposedRows) {
  Random random(2);
  for (Isa isa : usable_isas()) {
    if (half_table(isa) == nullptr) continue;
    for (HalfKind kind : {HalfKind::f16, HalfKind::bf16})
      for (int64_t m : {1, 97})
        for (bool transposed : {false, true})
          check(table(isa), {.m = m, .n = 413, .k = 329, .kind = kind, .threads = 4, .a_transposed = transposed},
                random);
  }
}

// Every finite number there is, also where conversions are made of integers.
TEST(HalfGemm, EveryNumberIsPackedAndWidenedExactly) {
  for (Isa isa : usable_isas()) {
    if (half_table(isa) == nullptr) continue;
    for (HalfKind kind : {HalfKind::f16, HalfKind::bf16}) {
      std::vector<float> all(1 << 16);
      for (size_t i = 0; i < all.size(); ++i) {
        float number = value_of(kind, static_cast<uint16_t>(i));
        all[i] = std::isfinite(number) ? number : 0;
      }
      std::vector<uint16_t> packed(all.size());
      std::vector<float> wide(all.size());
      int64_t panel = table(isa).tile_columns;
      auto depth = static_cast<int64_t>(all.size()) / panel;
      pack_half(table(isa), kind, all.data(), panel, 1, depth, panel, packed.data());
      half_table(isa)->widen[static_cast<int>(kind)](packed.data(), depth * panel, wide.data());
      for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(std::memcmp(&wide[i], &all[i], 4), 0) << i << " " << wide[i];
    }
  }
}

TEST(HalfGemm, KindsAreThoseThatHoldTheWeights) {
  const KernelTable& t = table(best_isa());
  if (half_table(t.isa) == nullptr) GTEST_SKIP() << "this processor converts no f16";
  std::vector<float> weights(static_cast<size_t>(cache_sizes().l2 / 8 + 1), 0.5f);
  EXPECT_EQ(half_kind(t, weights), HalfKind::f16);
  EXPECT_EQ(half_kind(t, std::span(weights).first(100)), std::nullopt);  // caches hold them
  weights.back() = 0x1p-30f;
  EXPECT_EQ(half_kind(t, weights), HalfKind::bf16);
  weights.back() = 70000.0f;
  EXPECT_EQ(half_kind(t, weights), std::nullopt);
  weights.back() = 1 + 0x1p-11f;
  EXPECT_EQ(half_kind(t, weights), std::nullopt);
  weights.back() = 1 + 0x1p-10f;
  EXPECT_EQ(half_kind(t, weights), HalfKind::f16);
  weights.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(half_kind(t, weights), HalfKind::f16);
}

}  // namespace
}  // namespace selkie::kernels
