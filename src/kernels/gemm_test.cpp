// Matrix products against a plain loop in double, for every number of rows, odd sizes, every form of the operands and
// every way of cutting into tasks.
#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/block.h"
#include "kernels/processor.h"
#include "kernels/test_support.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr float untouched = 12345.0f;

struct Case {
  int64_t m, n, k;
  bool a_transposed = false;
  bool b_transposed = false;
  bool packed = true;
  bool bias = true;
  int threads = 1;
  int64_t c_gap = 0;  // columns of c beyond n, which must stay as they are
  Guarded::Side side = Guarded::Side::end;
};

void compare(const Case& t, const Gemm& gemm, const Guarded& c, double added) {
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = 0; j < t.n + t.c_gap; ++j) {
      if (j >= t.n && i + 1 == t.m) break;
      float got = c[i * (t.n + t.c_gap) + j];
      if (j >= t.n) {
        ASSERT_EQ(got, untouched) << "beyond the columns at " << i << ", " << j;
        continue;
      }
      double want = (gemm.bias ? gemm.bias[j] : 0) + added;
      double size = 1;
      for (int64_t d = 0; d < t.k; ++d) {
        double product = static_cast<double>(gemm.a[i * gemm.a_row_stride + d * gemm.a_column_stride]) *
                         (t.b_transposed ? gemm.b[j * t.k + d] : gemm.b[d * t.n + j]);
        want += product;
        size += std::abs(product);
      }
      ASSERT_NEAR(got, want, 1e-6 * size) << "at " << i << ", " << j;
    }
  }
}

void check(const KernelTable& table, const Case& t, Random& random) {
  SCOPED_TRACE(fmt::format("{} {}x{}x{} a^T {} b^T {} packed {} threads {}", table.name, t.m, t.n, t.k, t.a_transposed,
                           t.b_transposed, t.packed, t.threads));
  Guarded a(t.m * t.k, random, t.side);
  Guarded b(t.k * t.n, random, t.side);
  Guarded bias(t.n, random, t.side);
  int64_t c_stride = t.n + t.c_gap;
  Guarded c(t.m > 0 ? (t.m - 1) * c_stride + t.n : 0, t.side);
  c.fill(untouched);
  Guarded packed(static_cast<int64_t>(packed_b_elements(table, t.k, t.n)), t.side);
  void* buffers[] = {c.data()};
  int64_t sizes[] = {c_stride};
  Gemm gemm{.m = t.m,
            .n = t.n,
            .k = t.k,
            .a = a.data(),
            .a_row_stride = t.a_transposed ? 1 : t.k,
            .a_column_stride = t.a_transposed ? t.m : 1,
            .b = b.data(),
            .b_row_stride = t.b_transposed ? 1 : t.n,
            .b_column_stride = t.b_transposed ? t.k : 1,
            .c = c.data(),
            .c_row_stride = c_stride,
            .bias = t.bias ? bias.data() : nullptr,
            .epilogue = {.function = t.threads > 1 ? add_one : nullptr, .buffers = buffers, .sizes = sizes}};
  if (t.packed) {
    pack_b(table, b.data(), gemm.b_row_stride, gemm.b_column_stride, t.k, t.n, packed.data());
    gemm.packed_b = packed.data();
  }
  GemmPlan plan = plan_gemm(table, gemm, t.threads);
  // Backwards and one at a time: tasks may not depend on each other.
  for (int64_t task = plan.tasks(); task-- > 0;) {
    TestScratch scratch(plan.scratch_bytes);
    run_gemm(table, gemm, plan, task, task + 1, scratch.data());
  }
  compare(t, gemm, c, t.threads > 1 ? 1 : 0);
}

TEST(Gemm, EveryNumberOfRows) {
  Random random(1);
  for (const KernelTable* table : tested_tables())
    for (int64_t m = 0; m <= 40; ++m)
      for (int64_t n : {0, 1, 7, 8, 9, 16, 17, 31, 33, 64, 71})
        for (int64_t k : {0, 1, 2, 3, 5, 16, 37}) check(*table, {.m = m, .n = n, .k = k, .c_gap = m % 2}, random);
}

TEST(Gemm, FewRowsBesideManyPanels) {
  Random random(7);
  for (const KernelTable* table : tested_tables()) {
    int64_t width = table->tile_columns;
    for (int64_t m = 1; m <= 7; ++m)
      for (int64_t n : {4 * width - 1, 4 * width, 4 * width + 1, 5 * width + 3, 7 * width, 9 * width - 1})
        for (int64_t k : {0, 1, 2, 37})
          for (int threads : {1, 3})
            check(*table, {.m = m, .n = n, .k = k, .bias = k != 2, .threads = threads, .c_gap = m % 2}, random);
  }
}

TEST(Gemm, BeyondOneBlock) {
  Random random(2);
  for (const KernelTable* table : tested_tables()) {
    int64_t rows = table->tile_rows * 16;
    for (int64_t m : {rows - 1, rows, rows + 1, 2 * rows + 5}) check(*table, {.m = m, .n = 70, .k = 41}, random);
    // Deep enough to be taken in parts.
    check(*table, {.m = 7, .n = 33, .k = cache_sizes().l2 / (4 * table->tile_columns) + 3}, random);
    check(*table, {.m = 7, .n = 2 * table->tile_columns, .k = cache_sizes().l2 / (8 * table->tile_columns) + 1},
          random);
  }
}

TEST(Gemm, OperandForms) {
  Random random(3);
  for (const KernelTable* table : tested_tables())
    for (int form = 0; form < 16; ++form)
      for (int64_t m : {1, 2, 5, 13, 29, 64})
        for (int64_t n : {1, 8, 15, 16, 17, 40, 64})
          for (int64_t k : {0, 1, 3, 17, 64})
            check(*table,
                  {.m = m,
                   .n = n,
                   .k = k,
                   .a_transposed = (form & 1) != 0,
                   .b_transposed = (form & 2) != 0,
                   .packed = (form & 4) != 0,
                   .bias = (form & 8) != 0,
                   .side = k % 2 ? Guarded::Side::begin : Guarded::Side::end},
                  random);
}

TEST(Gemm, OneColumnIsSummedAlongRows) {
  Random random(5);
  for (const KernelTable* table : tested_tables())
    for (int64_t m : {1, 15, 16, 17, 100})
      for (int64_t k : {1, 7, 8, 15, 16, 17, 33, 200})
        for (int threads : {1, 3})
          check(*table, {.m = m, .n = 1, .k = k, .packed = false, .bias = false, .threads = threads}, random);
  Gemm gemm{.m = 10, .n = 1, .k = 16, .a_row_stride = 16, .b_row_stride = 1, .c_row_stride = 1};
  EXPECT_TRUE(multiplies_column(gemm));
  gemm.k = 15;
  EXPECT_FALSE(multiplies_column(gemm));
  gemm.k = 16;
  gemm.c_row_stride = 2;
  EXPECT_FALSE(multiplies_column(gemm));
  gemm.c_row_stride = 1;
  gemm.finish.low = 0;
  EXPECT_FALSE(multiplies_column(gemm));
}

// Classifiers of equal weights must give equal scores, wherever a class stands.
TEST(Gemm, EqualColumnsGiveEqualResults) {
  for (Isa isa : usable_isas()) {
    const KernelTable& kernels = table(isa);
    for (int64_t m : {1, 2, 3, 5, 6, 7})
      for (int threads : {1, 3}) {
        int64_t n = 1000;
        int64_t k = 777;
        Random random(3);
        Guarded a(m * k, random);
        Guarded column(k, random);
        std::vector<float> b(static_cast<size_t>(k * n));
        for (int64_t d = 0; d < k; ++d) std::fill_n(b.begin() + static_cast<std::ptrdiff_t>(d * n), n, column[d]);
        std::vector<float> packed(packed_b_elements(kernels, k, n));
        pack_b(kernels, b.data(), n, 1, k, n, packed.data());
        std::vector<float> c(static_cast<size_t>(m * n));
        Gemm gemm{.m = m,
                  .n = n,
                  .k = k,
                  .a = &a[0],
                  .a_row_stride = k,
                  .packed_b = packed.data(),
                  .c = c.data(),
                  .c_row_stride = n,
                  .epilogue = {}};
        GemmPlan plan = plan_gemm(kernels, gemm, threads);
        std::vector<float> scratch(plan.scratch_bytes / sizeof(float) + 32);
        void* aligned = scratch.data();
        size_t room = scratch.size() * sizeof(float);
        std::align(64, plan.scratch_bytes, aligned, room);
        run_gemm(kernels, gemm, plan, 0, plan.tasks(), aligned);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 1; j < n; ++j)
            ASSERT_EQ(c[static_cast<size_t>(i * n + j)], c[static_cast<size_t>(i * n)]) << kernels.name << " " << j;
      }
  }
}

TEST(Gemm, TasksCoverTheOutputOnce) {
  Random random(4);
  for (const KernelTable* table : tested_tables()) {
    for (int i = 0; i < 60; ++i)
      check(*table,
            {.m = pick(random, 1, 150),
             .n = pick(random, 1, 400),
             .k = pick(random, 0, 120),
             .b_transposed = pick(random, 0, 1) == 1,
             .packed = pick(random, 0, 1) == 1,
             .threads = static_cast<int>(pick(random, 2, 9))},
            random);
  }
}

TEST(Gemm, LargeProductsAreCutForThreads) {
  const KernelTable& kernels = table(best_isa());
  for (int64_t m : {1, 6, 64, 512}) {
    Gemm gemm{.m = m, .n = 3072, .k = 768, .packed_b = reinterpret_cast<const float*>(64)};
    EXPECT_GE(plan_gemm(kernels, gemm, 4).tasks(), 4) << m;
    EXPECT_EQ(plan_gemm(kernels, gemm, 1).column_tasks, 1) << m;
  }
  Gemm tiny{.m = 4, .n = 64, .k = 16, .packed_b = reinterpret_cast<const float*>(64)};
  EXPECT_EQ(plan_gemm(kernels, tiny, 8).tasks(), 1);
}

// Only rows of which a set of the cache cannot hold a tile's lines.
TEST(Gemm, RowsThatShareASetAreCopied) {
  const FirstCache& cache = first_cache();
  constexpr int64_t line_floats = 16;
  for (const KernelTable* table : tested_tables()) {
    CopyQuestion rows{.rows = table->tile_rows, .columns = 4 * table->tile_columns, .stride = cache.way_bytes / 4};
    EXPECT_EQ(copies_rows(*table, rows), table->tile_rows > cache.ways);
    rows.stride += line_floats;
    EXPECT_FALSE(copies_rows(*table, rows));
    rows.stride = 0;
    rows.rows = 2 * table->tile_rows;
    EXPECT_TRUE(copies_rows(*table, rows));
  }
}

}  // namespace
}  // namespace selkie::kernels
