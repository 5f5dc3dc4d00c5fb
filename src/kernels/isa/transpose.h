// Transposition of a matrix in blocks of lanes x lanes, by which transposed operands are packed.
#pragma once

#include <utility>

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// Of two vectors `step` rows apart, the blocks of `step` lanes that lie across change places.
template <int step, int... lane>
SELKIE_INLINE void exchange_pair(Vector& first, Vector& second, std::integer_sequence<int, lane...>) {
  Vector low = __builtin_shufflevector(first, second, ((lane & step) ? lanes + lane - step : lane)...);
  second = __builtin_shufflevector(first, second, ((lane & step) ? lanes + lane : lane + step)...);
  first = low;
}

// One round of the butterfly; after the rounds for step = 1, 2, 4, … the block is transposed.
template <int step>
SELKIE_INLINE void exchange(Vector (&block)[lanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if (i & step) continue;
    exchange_pair<step>(block[i], block[i + step], std::make_integer_sequence<int, lanes>());
  }
  if constexpr (step * 2 < lanes) exchange<step * 2>(block);
}

SELKIE_INLINE void transpose_block(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Vector block[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) block[i] = load(from + i * from_stride);
  exchange<1>(block);
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) store(to + i * to_stride, block[i]);
}

void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to, int64_t to_stride) {
  int64_t row = 0;
  for (; row + lanes <= rows; row += lanes) {
    int64_t column = 0;
    for (; column + lanes <= columns; column += lanes)
      transpose_block(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride);
    for (; column < columns; ++column)
      for (int64_t r = row; r < row + lanes; ++r) to[column * to_stride + r] = from[r * from_stride + column];
  }
  for (; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      to[column * to_stride + row] = from[row * from_stride + column];
}

}  // namespace
}  // namespace selkie::kernels
