// Strassen's algorithm against a plain loop in double: odd rows and panels, several blocks and pieces, everything that
// is done as elements are stored, and numbers that must not reach other rows.
#include "kernels/strassen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/processor.h"
#include "kernels/test_support.h"
#include "kernels/versions.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr float untouched = 12345.0f;

struct Case {
  int64_t m, n, k;
  bool bias = true;
  bool addend = false;  // which is c itself
  bool clamps = false;
  bool epilogue = false;
  int64_t gap = 0;  // floats between rows of a and of c
  int threads = 1;
};

// Backwards and one at a time: tasks of a stage may not depend on each other.
void run(const KernelTable& table, const Gemm& gemm, int threads) {
  StrassenPlan plan = plan_strassen(table, gemm, threads);
  TestScratch memory(plan.memory_bytes);
  for (int64_t step = 0; step < plan.steps(); ++step) {
    for (int64_t task = plan.sum_tasks(); task-- > 0;)
      run_strassen_sums(table, gemm, plan, step, task, task + 1, memory.data());
    for (int64_t task = plan.product_tasks(table, gemm); task-- > 0;) {
      TestScratch scratch(plan.scratch_bytes);
      run_strassen_products(table, gemm, plan, step, task, task + 1, memory.data(), scratch.data());
    }
  }
}

struct Factors {
  Guarded a, b, packed;

  Factors(const KernelTable& table, const Case& t, Random& random)
      : a((t.m - 1) * (t.k + t.gap) + t.k, random),
        b(t.k * t.n, random),
        packed(static_cast<int64_t>(packed_b_elements(table, t.k, t.n))) {}
  Gemm gemm(const KernelTable& table, const Case& t, float* c) {
    pack_b(table, b.data(), t.n, 1, t.k, t.n, packed.data());
    return {.m = t.m,
            .n = t.n,
            .k = t.k,
            .a = a.data(),
            .a_row_stride = t.k + t.gap,
            .packed_b = packed.data(),
            .c = c,
            .c_row_stride = t.n + t.gap};
  }
};

double reference(const Factors& f, const Case& t, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t d = 0; d < t.k; ++d)
    sum += static_cast<double>(f.a[row * (t.k + t.gap) + d]) * static_cast<double>(f.b[d * t.n + column]);
  return sum;
}

void check(const KernelTable& table, const Case& t, Random& random) {
  SCOPED_TRACE(fmt::format("{} {}x{}x{} bias {} addend {} clamps {} epilogue {}", table.name, t.m, t.n, t.k, t.bias,
                           t.addend, t.clamps, t.epilogue));
  Factors factors(table, t, random);
  Guarded bias(t.n, random);
  int64_t stride = t.n + t.gap;
  Guarded c((t.m - 1) * stride + t.n, random);
  std::vector<float> before(c.data(), c.data() + (t.m - 1) * stride + t.n);
  void* buffers[] = {c.data()};
  Gemm gemm = factors.gemm(table, t, c.data());
  if (t.bias) gemm.bias = bias.data();
  if (t.addend) gemm.finish.addend = c.data();
  if (t.clamps) gemm.finish.low = -0.5F;
  if (t.epilogue) gemm.epilogue = {.function = add_one, .buffers = buffers, .sizes = &stride};
  run(table, gemm, t.threads);
  double tolerance = 2e-6 * static_cast<double>(t.k + 1);
  int64_t row_step = std::max<int64_t>(1, t.m / 200);
  for (int64_t i = 0; i < t.m; i += i + row_step < t.m ? row_step : 1) {
    for (int64_t j = 0; j < stride && i * stride + j < static_cast<int64_t>(before.size()); ++j) {
      float was = before[static_cast<size_t>(i * stride + j)];
      if (j >= t.n) {
        ASSERT_EQ(c[i * stride + j], was) << "beyond the columns at " << i << ", " << j;
        continue;
      }
      double want = reference(factors, t, i, j) + (t.bias ? bias[j] : 0) + (t.addend ? was : 0);
      if (t.clamps) want = std::max(want, -0.5);
      ASSERT_NEAR(c[i * stride + j], want + (t.epilogue ? 1 : 0), tolerance) << "at " << i << ", " << j;
    }
  }
}

TEST(Strassen, OddRowsAndPanels) {
  Random random(1);
  for (const KernelTable* table : tested_tables())
    for (int64_t m : {1, 2, 3, 23, 24, 25, 50, 193, 199})
      for (int64_t n : {1, table->tile_columns, table->tile_columns + 1, 2 * table->tile_columns - 1,
                        2 * table->tile_columns, 2 * table->tile_columns + 5, 5 * table->tile_columns})
        for (int64_t k : {2, 6, 34, 64})
          check(*table, {.m = m, .n = n, .k = k, .gap = m % 3, .threads = 1 + static_cast<int>(m % 4)}, random);
}

TEST(Strassen, SeveralBlocksAndPieces) {
  Random random(2);
  for (const KernelTable* table : tested_tables()) {
    Case pieces{.m = 41,
                .n = 2 * table->tile_columns + 3,
                .k = 2050,
                .addend = true,
                .clamps = true,
                .epilogue = true,
                .threads = 2};
    Case blocks{.m = 2500, .n = 70, .k = 520, .addend = true, .epilogue = true};
    for (const Case& t : {pieces, blocks}) check(*table, t, random);
    EXPECT_EQ(plan_strassen(*table, {.m = pieces.m, .n = pieces.n, .k = pieces.k}, 1).pieces, 3);
    EXPECT_GT(plan_strassen(*table, {.m = blocks.m, .n = blocks.n, .k = blocks.k}, 1).blocks, 1);
  }
}

TEST(Strassen, AllThatIsDoneOnStoring) {
  Random random(3);
  for (const KernelTable* table : tested_tables())
    for (int form = 0; form < 16; ++form)
      check(*table,
            {.m = 51,
             .n = 3 * table->tile_columns + 1,
             .k = 40,
             .bias = (form & 1) != 0,
             .addend = (form & 2) != 0,
             .clamps = (form & 4) != 0,
             .epilogue = (form & 8) != 0},
            random);
}

// A row's infinity, NaN or huge number stays in that row, and a column's in that column.
TEST(Strassen, WhatIsNotFiniteStaysWhereItIs) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Random random(4);
  for (const KernelTable* table : tested_tables()) {
    for (float odd : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 3e37F}) {
      for (bool in_a : {true, false}) {
        Case t{.m = 201, .n = 4 * table->tile_columns, .k = 1500};
        Factors factors(*table, t, random);
        constexpr int64_t row = 17;
        const int64_t column = table->tile_columns + 3;
        constexpr int64_t depth = 800;
        if (in_a)
          factors.a[row * t.k + depth] = odd;
        else
          factors.b[depth * t.n + column] = odd;
        std::vector<float> c(static_cast<size_t>(t.m * t.n), untouched);
        run(*table, factors.gemm(*table, t, c.data()), in_a ? 2 : 1);
        for (int64_t i = 0; i < t.m; ++i) {
          for (int64_t j = 0; j < t.n; ++j) {
            bool is_odd = in_a ? i == row : j == column;
            double want = reference(factors, t, i, j);
            float got = c[static_cast<size_t>(i * t.n + j)];
            if (!is_odd)
              ASSERT_NEAR(got, want, 3e-3) << odd << (in_a ? " in a" : " in b") << " at " << i << ", " << j;
            else if (std::isnan(want) || std::isinf(odd))
              ASSERT_EQ(std::isnan(got) ? infinity : std::abs(got), infinity) << i << ", " << j;
            else
              ASSERT_NEAR(got, want, std::abs(want) * 1e-5 + 1e32) << i << ", " << j;
          }
        }
      }
    }
  }
}

// What a thread waits for before products begin is made by all of them.
TEST(Strassen, SumsAreSharedByThreads) {
  const KernelTable& kernels = table(best_isa());
  Gemm gemm{.m = 128, .n = 768, .k = 768};
  EXPECT_EQ(plan_strassen(kernels, gemm, 1).sum_tasks(), 1);
  EXPECT_GE(plan_strassen(kernels, gemm, 2).sum_tasks(), 4);
}

TEST(Strassen, IsChosenForLargeProductsOnly) {
  const KernelTable& kernels = table(best_isa());
  static const float packed = 0;
  auto wins = [&](int64_t m, int64_t n, int64_t k) {
    return product_version(kernels, {.m = m, .n = n, .k = k, .packed_b = &packed}).strassen;
  };
  EXPECT_TRUE(wins(1024, 768, 768));
  EXPECT_TRUE(wins(384, 768, 3072));
  bool has_fast_products = kernels.lanes == 16 && wide_units() == WideUnits::zen5;
  EXPECT_EQ(wins(128, 768, 3072), !has_fast_products);
  EXPECT_TRUE(wins(784, 256, 1024));
  EXPECT_FALSE(wins(16, 768, 768));
  EXPECT_FALSE(wins(3136, 64, 256));
  EXPECT_FALSE(wins(3136, 256, 64));
  EXPECT_FALSE(wins(1024, 768, 767));
  EXPECT_FALSE(wins(0, 768, 768));
  EXPECT_FALSE(wins(1024, 0, 768));
  EXPECT_FALSE(product_version(kernels, {.m = 1024, .n = 768, .k = 768, .packed_b = &packed, .exact = true}).strassen);
  EXPECT_FALSE(product_version(kernels, {.m = 1024, .n = 768, .k = 768, .b = &packed}).strassen);
  ConvolutionShape pixels{.input_channels = 1024, .output_channels = 256, .input = {1, 28, 28}, .output = {1, 28, 28}};
  auto version = [&](const ConvolutionShape& shape, bool exact) {
    return convolution_version(kernels, shape,
                               {.depthwise = false,
                                .grouped = false,
                                .direct = true,
                                .winograd = false,
                                .wide_winograd = false,
                                .exact = exact});
  };
  EXPECT_EQ(version(pixels, false), ConvolutionVersion::strassen);
  EXPECT_EQ(version(pixels, true), ConvolutionVersion::direct);
  pixels.stride = {1, 2, 2};
  pixels.input = {1, 56, 56};
  EXPECT_EQ(version(pixels, false), ConvolutionVersion::direct);
}

}  // namespace
}  // namespace selkie::kernels
