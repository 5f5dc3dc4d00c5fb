// The products of attention with a single query, which read keys and values where they are, and copies into and out of
// blocks.
#pragma once

#include <utility>

#include "kernels/isa/softmax.h"
#include "kernels/isa/transpose.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// The sums of `lanes` vectors, as one vector.
template <int step = 1>
SELKIE_INLINE Vector sums_of(Vector (&block)[lanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; i += 2 * step) {
    exchange_pair<step>(block[i], block[i + step], std::make_integer_sequence<int, lanes>());
    block[i] += block[i + step];
  }
  if constexpr (step * 2 < lanes) return sums_of<step * 2>(block);
  return block[0];
}

// What is left of a key beyond whole vectors. The lanes that belong to the vector before are cleared.
SELKIE_INLINE Vector key_end(const float* key, int64_t depth, IntVector kept) {
  if (depth < lanes) return load_part(key, depth);
  return as_floats(as_bits(load(key + depth - lanes)) & kept);
}

// One cache line of every key at a time.
template <int keys>
SELKIE_INLINE void dot_keys(const DotRowsArguments& t, const float* key, Vector (&sum)[lanes]) {
  constexpr int line = 16;
  const float* row[keys];
#pragma GCC unroll 16
  for (int i = 0; i < keys; ++i) row[i] = key + i * t.key_stride;
  int64_t d = 0;
  for (; d + line <= t.depth; d += line) {
#pragma GCC unroll 4
    for (int v = 0; v < line; v += lanes) {
      Vector query = load(t.query + d + v);
#pragma GCC unroll 16
      for (int i = 0; i < keys; ++i) multiply_add(sum[i], query, load(row[i] + d + v));
    }
  }
  for (; d + lanes <= t.depth; d += lanes) {
#pragma GCC unroll 16
    for (int i = 0; i < keys; ++i) multiply_add(sum[i], load(t.query + d), load(row[i] + d));
  }
  if (d == t.depth) return;
  Vector query = t.depth < lanes ? load(t.query) : load(t.query + t.depth - lanes);
  IntVector kept = ~first_lanes(lanes - (t.depth - d));
#pragma GCC unroll 16
  for (int i = 0; i < keys; ++i) sum[i] += query * key_end(row[i], t.depth, kept);
}

void dot_rows(const DotRowsArguments& arguments) {
  const DotRowsArguments t = arguments;
  int64_t key = 0;
  for (; key + lanes <= t.keys; key += lanes) {
    Vector sum[lanes] = {};
    dot_keys<lanes>(t, t.key + key * t.key_stride, sum);
    store(t.scores + key, sums_of(sum));
  }
  for (; key < t.keys; ++key) {
    Vector sum[lanes] = {};
    dot_keys<1>(t, t.key + key * t.key_stride, sum);
    t.scores[key] = total(sum[0])[0];
  }
}

// `vectors` neighbouring columns of the weighted sum. Few of them leave the pipeline empty, so that neighbouring rows
// get sums of their own.
template <int vectors>
SELKIE_INLINE void weigh_columns(const WeightedRowsArguments& t, int64_t column) {
  constexpr int sums = vectors < 8 ? 2 : 1;
  Vector sum[sums][vectors] = {};
  const float* row = t.values + column;
  int64_t i = 0;
  for (; i + sums <= t.rows; i += sums) {
#pragma GCC unroll 2
    for (int s = 0; s < sums; ++s, row += t.value_stride) {
      Vector weight = broadcast(t.weights[i + s]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) multiply_add(sum[s][v], weight, load(row + v * lanes));
    }
  }
  for (; i < t.rows; ++i, row += t.value_stride) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) multiply_add(sum[0][v], broadcast(t.weights[i]), load(row + v * lanes));
  }
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) {
    float* output = t.output + column + v * lanes;
    Vector all = sums > 1 ? sum[0][v] + sum[sums - 1][v] : sum[0][v];
    store(output, t.accumulate ? load(output) + all : all);
  }
}

void weighted_rows(const WeightedRowsArguments& arguments) {
  const WeightedRowsArguments t = arguments;
  int64_t column = 0;
  for (; column + 8 * lanes <= t.columns; column += 8 * lanes) weigh_columns<8>(t, column);
  for (; column + 4 * lanes <= t.columns; column += 4 * lanes) weigh_columns<4>(t, column);
  for (; column + lanes <= t.columns; column += lanes) weigh_columns<1>(t, column);
  for (; column < t.columns; ++column) {
    float sum = t.accumulate ? t.output[column] : 0.0f;
    for (int64_t i = 0; i < t.rows; ++i) sum += t.weights[i] * t.values[i * t.value_stride + column];
    t.output[column] = sum;
  }
}

void scale_row(const float* from, int64_t count, float factor, float* to) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(to + i, load(from + i) * factor);
  for (; i < count; ++i) to[i] = from[i] * factor;
}

void pack_rows(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  if (columns < 2 * lanes) {
    for (int64_t row = 0; row < rows; ++row, from += stride, to += 2 * lanes)
      for (int64_t column = 0; column < 2 * lanes; ++column) to[column] = column < columns ? from[column] : 0.0f;
    return;
  }
  for (int64_t row = 0; row < rows; ++row, from += stride, to += 2 * lanes) {
    Vector first = load(from);
    Vector second = load(from + lanes);
    store(to, first);
    store(to + lanes, second);
  }
}

}  // namespace
}  // namespace selkie::kernels
