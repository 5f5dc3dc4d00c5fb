// A row's running softmax, and sums over the lanes of a vector.
#pragma once

#include <utility>

#include "kernels/isa/math.h"
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
  score *= t.scale;
  if (t.added) score += load(t.added + column);
  if (t.allowed) {
    ByteVector bytes = *reinterpret_cast<const UnalignedByteVector*>(t.allowed + column);
    score = __builtin_convertvector(bytes, IntVector) != 0 ? score : broadcast(t.refused);
  }
  return score;
}

// The last columns, fewer than a vector: what lies beyond them is made -inf.
SELKIE_INLINE Vector masked_part(const SoftmaxRowArguments& t, int64_t column, int64_t count) {
  alignas(64) float part[lanes];
  for (int64_t i = 0; i < lanes; ++i) {
    part[i] = -infinity;
    if (i >= count) continue;
    bool counts = !t.allowed || t.allowed[column + i];
    part[i] = counts ? t.scores[column + i] * t.scale + (t.added ? t.added[column + i] : 0.0f) : t.refused;
  }
  return load(part);
}

// Scales and applies the masks; gives the largest score.
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
      Vector first = load(t.scores + column) * t.scale;
      Vector second = load(t.scores + column + lanes) * t.scale;
      store(t.scores + column, first);
      store(t.scores + column + lanes, second);
      most = larger(first, most);
      other = larger(second, other);
    }
    most = larger(other, most);
    for (; column + lanes <= t.columns; column += lanes) {
      Vector score = load(t.scores + column) * t.scale;
      store(t.scores + column, score);
      most = larger(score, most);
    }
  }
  if (column == t.columns) return most;
  Vector score = masked_part(t, column, t.columns - column);
  store(t.scores + column, score);
  return larger(score, most);
}

void softmax_row(const SoftmaxRowArguments& arguments) {
  const SoftmaxRowArguments t = arguments;
  const float before = t.complete ? -infinity : *t.maximum;
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
  if (t.complete) {
    Vector factor = 1.0f / total(sum[0] + sum[1]);
    for (column = 0; column < t.columns; column += lanes) store(t.scores + column, load(t.scores + column) * factor);
    // Not before, since the last vector reaches into them and its factor may be NaN.
    for (column = t.columns; column < t.width; ++column) t.scores[column] = 0;
    return;
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

}  // namespace
}  // namespace selkie::kernels
