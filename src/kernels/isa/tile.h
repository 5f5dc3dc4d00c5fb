// The register tile of GEMM and indirect convolution, for every number of rows and one or two vectors of columns.
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// Few rows leave most of the FMA pipeline empty, so their depth is split over several sums: as many as registers allow.
// A narrow tile takes as many as a wide one, so that its columns are summed in the same order.
constexpr int tile_sums(int accumulators) {
  constexpr int registers = SELKIE_ISA_TILE_ROWS * 2;
  int sums = registers / accumulators;
  return sums < 4 ? sums : 4;
}

template <int rows, int vectors>
SELKIE_INLINE void one_step(Vector (&sum)[rows][vectors], const float* const (&a)[rows], int64_t depth,
                            const float* b) {
  Vector column[vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) column[v] = load(b + v * lanes);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    Vector scalar = broadcast(a[r][depth]);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) multiply_add(sum[r][v], scalar, column[v]);
  }
}

// What the sums begin with: c itself, the bias or zero. Columns that do not exist are left to store_edge.
template <int rows, int vectors>
SELKIE_INLINE void begin_sums(Vector (&sum)[rows][vectors], const TileArguments& t, const float* c, bool full) {
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    Vector bias = full && t.bias ? load(t.bias + v * lanes) : Vector{};
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r][v] = bias;
  }
  if (!full || !t.accumulate) return;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sum[r][v] = load(c + r * t.c_stride + v * lanes);
}

template <int rows, int vectors>
SELKIE_INLINE void store_edge(const Vector (&sum)[rows][vectors], const TileArguments& t, float* c) {
  alignas(64) float edge[rows][vectors * lanes];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) store(&edge[r][v * lanes], sum[r][v]);
  for (int r = 0; r < rows; ++r, c += t.c_stride) {
    for (int64_t j = 0; j < t.columns; ++j) {
      float begin = t.accumulate ? c[j] : t.bias ? t.bias[j] : 0.0f;
      c[j] = begin + edge[r][j];
    }
  }
}

template <int rows, int vectors>
SELKIE_INLINE void store_sums(const Vector (&sum)[rows][vectors], const TileArguments& t, float* c) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) store(c + r * t.c_stride + v * lanes, sum[r][v]);
}

// One tile; the last pointer says where its rows' pointers are.
template <int rows, int vectors>
SELKIE_INLINE void one_tile(const TileArguments& t, float* c, const float* const* pointers, const char* ahead) {
  constexpr int sums = tile_sums(rows * 2);
  constexpr int steps = sums > 1 ? sums : 2;
  const bool full = t.columns >= vectors * lanes;
  Vector sum[sums][rows][vectors];
  begin_sums(sum[0], t, c, full);
#pragma GCC unroll 4
  for (int s = 1; s < sums; ++s)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[s][r][v] = Vector{};
  const float* b = t.b;
  const int64_t b_stride = t.b_stride;
  const int64_t depth = t.depth;
  const int64_t ahead_step = t.ahead_step;
  for (int64_t tap = 0; tap < t.taps; ++tap, pointers += rows) {
    const float* a[rows];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) a[r] = pointers[r] + t.a_offset;
    int64_t d = 0;
    for (; d + steps <= depth; d += steps) {
#pragma GCC unroll 4
      for (int s = 0; s < steps; ++s) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += ahead_step;
        one_step(sum[s % sums], a, d + s, b);
        b += b_stride;
      }
    }
    for (; d < depth; ++d, b += b_stride) one_step(sum[0], a, d, b);
  }
#pragma GCC unroll 4
  for (int s = 1; s < sums; ++s)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[0][r][v] += sum[s][r][v];
  full ? store_sums(sum[0], t, c) : store_edge(sum[0], t, c);
}

template <int rows, int vectors>
void tile(const TileArguments& t) {
  float* c = t.c;
  const float* const* pointers = t.rows;
  const char* ahead = t.ahead;
  const int64_t ahead_of_tile = t.ahead_step * t.taps * t.depth;
  for (int64_t i = 0; i < t.tiles; ++i, c += rows * t.c_stride, pointers += t.row_step, ahead += ahead_of_tile) {
    // The next tile's part of c is fetched while this one is multiplied.
    if (i + 1 < t.tiles) {
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) __builtin_prefetch(c + (rows + r) * t.c_stride, 1);
    }
    one_tile<rows, vectors>(t, c, pointers, ahead);
  }
}

}  // namespace
}  // namespace selkie::kernels
