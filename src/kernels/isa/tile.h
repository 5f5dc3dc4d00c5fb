// The register tile of GEMM and indirect convolution, for every number of rows and one or two vectors of columns.
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// Few rows leave most of the FMA pipeline empty, so their depth is split over several sums: as many as registers allow.
constexpr int tile_sums(int accumulators) {
  constexpr int registers = SELKIE_ISA_TILE_ROWS * 2;
  int sums = registers / accumulators;
  return sums < 4 ? sums : 4;
}

// How far ahead b is fetched, in bytes: a panel is read in order, and from memory when there are few rows.
constexpr int64_t prefetch_distance = 1536;

template <int bytes>
SELKIE_INLINE void prefetch(const float* b) {
#pragma GCC unroll 2
  for (int line = 0; line < bytes; line += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(b) + prefetch_distance + line);
}

template <int rows, int vectors>
SELKIE_INLINE void multiply_add(Vector (&sum)[rows][vectors], const float* const (&a)[rows], int64_t depth,
                                const float* b) {
  Vector column[vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) column[v] = load(b + v * lanes);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    float scalar = a[r][depth];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sum[r][v] += scalar * column[v];
  }
}

template <int rows, int vectors>
SELKIE_INLINE void store_edge(const Vector (&sum)[rows][vectors], const TileArguments& t) {
  alignas(64) float edge[rows][vectors * lanes];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) store(&edge[r][v * lanes], sum[r][v]);
  for (int r = 0; r < rows; ++r) {
    float* c = t.c + r * t.c_stride;
    for (int64_t j = 0; j < t.columns; ++j) {
      float value = edge[r][j];
      if (t.bias) value += t.bias[j];
      c[j] = t.accumulate ? c[j] + value : value;
    }
  }
}

template <int rows, int vectors>
SELKIE_INLINE void store_tile(const Vector (&sum)[rows][vectors], const TileArguments& t) {
  if (t.columns < vectors * lanes) return store_edge(sum, t);
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    Vector bias = t.bias ? load(t.bias + v * lanes) : Vector{};
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      float* c = t.c + r * t.c_stride + v * lanes;
      Vector value = sum[r][v] + bias;
      store(c, t.accumulate ? value + load(c) : value);
    }
  }
}

template <int rows, int vectors>
void tile(const TileArguments& t) {
  constexpr int sums = tile_sums(rows * vectors);
  Vector sum[sums][rows][vectors];
#pragma GCC unroll 4
  for (int s = 0; s < sums; ++s)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[s][r][v] = Vector{};
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) __builtin_prefetch(t.c + r * t.c_stride, 1);
  const float* b = t.b;
  const int64_t b_stride = t.b_stride;
  const int64_t depth = t.depth;
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const float* a[rows];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) a[r] = t.rows[tap * rows + r] + t.a_offset;
    int64_t d = 0;
    for (; d + sums <= depth; d += sums) {
#pragma GCC unroll 4
      for (int s = 0; s < sums; ++s) {
        prefetch<vectors * lanes * 4>(b);
        multiply_add(sum[s], a, d + s, b);
        b += b_stride;
      }
    }
    for (; d < depth; ++d, b += b_stride) multiply_add(sum[0], a, d, b);
  }
#pragma GCC unroll 4
  for (int s = 1; s < sums; ++s)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[0][r][v] += sum[s][r][v];
  store_tile(sum[0], t);
}

}  // namespace
}  // namespace selkie::kernels
