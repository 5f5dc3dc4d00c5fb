// The loops of attention around its two products: a row's running softmax, the dot products and the weighted sum of a
// single query, and copies into and out of blocks.
#pragma once

#include <utility>

#include "kernels/isa/math.h"
#include "kernels/isa/transpose.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

constexpr float infinity = __builtin_inff();

typedef uint8_t ByteVector __attribute__((vector_size(lanes)));
typedef uint8_t UnalignedByteVector __attribute__((vector_size(lanes), aligned(1), may_alias));

// NaN in `value` is passed over: the sum of exponentials tells of it.
SELKIE_INLINE Vector larger(Vector value, Vector than) { return value > than ? value : than; }

template <int step, int... lane>
SELKIE_INLINE Vector exchanged(Vector value, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(value, value, (lane ^ step)...);
}

template <int step = 1>
SELKIE_INLINE Vector largest(Vector value) {
  value = larger(value, exchanged<step>(value, std::make_integer_sequence<int, lanes>()));
  if constexpr (step * 2 < lanes) return largest<step * 2>(value);
  return value;
}

template <int step = 1>
SELKIE_INLINE Vector total(Vector value) {
  value = value + exchanged<step>(value, std::make_integer_sequence<int, lanes>());
  if constexpr (step * 2 < lanes) return total<step * 2>(value);
  return value;
}

template <int... lane>
SELKIE_INLINE IntVector lane_numbers(std::integer_sequence<int, lane...>) {
  return IntVector{lane...};
}

// All ones in the first `count` lanes.
SELKIE_INLINE IntVector first_lanes(int64_t count) {
  return lane_numbers(std::make_integer_sequence<int, lanes>()) < static_cast<int32_t>(count);
}

SELKIE_INLINE Vector masked(const SoftmaxRowArguments& t, int64_t column, Vector score) {
  if (t.added) score += load(t.added + column);
  if (t.allowed) {
    ByteVector bytes = *reinterpret_cast<const UnalignedByteVector*>(t.allowed + column);
    score = __builtin_convertvector(bytes, IntVector) != 0 ? score : broadcast(-infinity);
  }
  return score;
}

// The last columns, fewer than a vector: what lies beyond them is made -inf.
SELKIE_INLINE Vector masked_part(const SoftmaxRowArguments& t, int64_t column, int64_t count) {
  alignas(64) float part[lanes];
  for (int64_t i = 0; i < lanes; ++i) {
    bool there = i < count && (!t.allowed || t.allowed[column + i]);
    part[i] = there ? t.scores[column + i] + (t.added ? t.added[column + i] : 0.0f) : -infinity;
  }
  return load(part);
}

// Applies the masks; gives the largest score.
SELKIE_INLINE Vector mask_scores(const SoftmaxRowArguments& t) {
  Vector most = broadcast(-infinity);
  int64_t column = 0;
  if (t.added || t.allowed) {
    for (; column + lanes <= t.columns; column += lanes) {
      Vector score = masked(t, column, load(t.scores + column));
      store(t.scores + column, score);
      most = larger(score, most);
    }
  } else {
    Vector other = most;
    for (; column + 2 * lanes <= t.columns; column += 2 * lanes) {
      most = larger(load(t.scores + column), most);
      other = larger(load(t.scores + column + lanes), other);
    }
    most = larger(other, most);
    for (; column + lanes <= t.columns; column += lanes) most = larger(load(t.scores + column), most);
  }
  if (column == t.columns) return most;
  Vector score = masked_part(t, column, t.columns - column);
  store(t.scores + column, score);
  return larger(score, most);
}

void softmax_row(const SoftmaxRowArguments& arguments) {
  const SoftmaxRowArguments t = arguments;
  const float before = *t.maximum;
  Vector most = larger(largest(mask_scores(t)), broadcast(before));
  // While all scores are -inf there is nothing to subtract, and exponentials of -inf are 0.
  Vector subtracted = most == broadcast(-infinity) ? Vector{} : most;
  Vector sum[2] = {};
  int64_t column = 0;
  for (; column + lanes < t.columns; column += 2 * lanes) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      Vector e = exp_of_negative(load(t.scores + column + v * lanes) - subtracted);
      store(t.scores + column + v * lanes, e);
      sum[v] += e;
    }
  }
  if (column < t.columns) {
    Vector e = exp_of_negative(load(t.scores + column) - subtracted);
    store(t.scores + column, e);
    sum[0] += e;
  }
  for (column = t.columns; column < t.width; ++column) t.scores[column] = 0;
  float row_sum = total(sum[0] + sum[1])[0];
  float now = most[0];
  if (now > before && before > -infinity) {
    Vector factor = exp_of_negative(broadcast(before) - most);
    for (int64_t i = 0; i < t.output_columns; i += lanes) store(t.output + i, load(t.output + i) * factor);
    *t.sum *= factor[0];
  }
  *t.maximum = now;
  *t.sum += row_sum;
}

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
  for (; d + lanes <= t.depth; d += lanes)
#pragma GCC unroll 16
    for (int i = 0; i < keys; ++i) multiply_add(sum[i], load(t.query + d), load(row[i] + d));
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
  for (; i < t.rows; ++i, row += t.value_stride)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) multiply_add(sum[0][v], broadcast(t.weights[i]), load(row + v * lanes));
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
