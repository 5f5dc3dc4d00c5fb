// The sums of Strassen's algorithm: of quarters of a factor before the products, and of the products after them.
#pragma once

#include <algorithm>

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

SELKIE_INLINE Vector magnitude(Vector x) { return x < Vector{} ? -x : x; }

template <class Lanes>
SELKIE_INLINE void sum_quarters_at(const QuarterSumsArguments& q, int64_t from, float* to, Vector& magnitudes,
                                   Lanes part) {
  Vector a = part.load(q.quarters[0] + from);
  Vector b = part.load(q.quarters[1] + from);
  Vector c = part.load(q.quarters[2] + from);
  Vector d = part.load(q.quarters[3] + from);
  magnitudes += (magnitude(a) + magnitude(b)) + (magnitude(c) + magnitude(d));
  part.store(to, a + d);
  part.store(to + q.to_matrix, c + d);
  part.store(to + 2 * q.to_matrix, a + b);
  part.store(to + 3 * q.to_matrix, c - a);
  part.store(to + 4 * q.to_matrix, b - d);
  if (!q.copies) return;
  part.store(to + 5 * q.to_matrix, a);
  part.store(to + 6 * q.to_matrix, d);
}

float sum_quarters(const QuarterSumsArguments& arguments) {
  const QuarterSumsArguments q = arguments;
  Vector magnitudes{};
  for (int64_t row = 0; row < q.rows; ++row) {
    int64_t from = row * q.stride;
    float* to = q.to + row * q.to_stride;
    int64_t column = 0;
    for (; column + lanes <= q.columns; column += lanes) {
      // Rows are too short for the processor to see where they go on.
#pragma GCC unroll 4
      for (const float* quarter : q.quarters) __builtin_prefetch(quarter + from + column + q.stride, 0, 3);
      sum_quarters_at(q, from + column, to + column, magnitudes, AllLanes{});
    }
    if (column < q.columns) sum_quarters_at(q, from + column, to + column, magnitudes, FirstLanes(q.columns - column));
  }
  float total = 0;
  for (int i = 0; i < lanes; ++i) total += magnitudes[i];
  return total;
}

template <class Lanes>
SELKIE_INLINE void finish_quarter(const ProductSumsArguments& s, Vector sum, int64_t offset, const float* bias,
                                  Lanes part) {
  if (s.accumulate) sum += part.load(s.c + offset);
  if (bias) sum += part.load(bias);
  if (s.addend) sum += part.load(s.addend + offset);
  if (s.clamps) sum = clamp(sum, s.low, s.high);
  part.store(s.c + offset, sum);
}

// One vector of each quarter.
template <class Lanes>
SELKIE_INLINE void sum_products_at(const ProductSumsArguments& s, int64_t row, int64_t column, bool has_right,
                                   Lanes right) {
  Vector m[7];
#pragma GCC unroll 7
  for (int i = 0; i < 7; ++i) m[i] = load(s.products + i * s.matrix + row * 2 * lanes + column);
  const float* bias = s.bias ? s.bias + column : nullptr;
  int64_t upper = row * s.c_stride + column;
  int64_t lower = upper + s.lower;
  if (row < s.upper_rows) finish_quarter(s, (m[0] + m[3]) + (m[6] - m[4]), upper, bias, AllLanes{});
  finish_quarter(s, m[1] + m[3], lower, bias, AllLanes{});
  if (!has_right) return;
  const float* right_bias = bias ? bias + 2 * lanes : nullptr;
  if (row < s.upper_rows) finish_quarter(s, m[2] + m[4], upper + 2 * lanes, right_bias, right);
  finish_quarter(s, (m[0] - m[1]) + (m[2] + m[5]), lower + 2 * lanes, right_bias, right);
}

// Both panels of a row of c, and of what is added to it.
SELKIE_INLINE void fetch_row(const ProductSumsArguments& s, int64_t row) {
  constexpr int line = 16;
  int64_t upper = row * s.c_stride;
#pragma GCC unroll 4
  for (int i = 0; i < 4 * lanes; i += line) {
    __builtin_prefetch(s.c + upper + i, 1, 3);
    __builtin_prefetch(s.c + upper + s.lower + i, 1, 3);
    if (!s.addend) continue;
    __builtin_prefetch(s.addend + upper + i, 0, 3);
    __builtin_prefetch(s.addend + upper + s.lower + i, 0, 3);
  }
}

void sum_products(const ProductSumsArguments& arguments) {
  const ProductSumsArguments s = arguments;
  constexpr int64_t ahead = 8;
  for (int64_t row = 0; row < std::min(ahead, s.rows); ++row) fetch_row(s, row);
  for (int64_t row = 0; row < s.rows; ++row) {
    if (row + ahead < s.rows) fetch_row(s, row + ahead);
    for (int64_t column = 0; column < 2 * lanes; column += lanes) {
      int64_t there = s.right_columns - column;
      if (there >= lanes || there <= 0)
        sum_products_at(s, row, column, there > 0, AllLanes{});
      else
        sum_products_at(s, row, column, true, FirstLanes(there));
    }
  }
}

}  // namespace
}  // namespace selkie::kernels
