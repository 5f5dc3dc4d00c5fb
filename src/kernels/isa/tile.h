// The register tile of GEMM and convolution, for every number of rows and one or two vectors of columns.
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

// Rows of a anywhere: a pointer for each, in every tap.
template <int rows>
struct ScatteredRows {
  static constexpr bool has_taps = true;
  const float* const* pointers;
  const float* at[rows];
  int64_t depth;

  SELKIE_INLINE ScatteredRows(const TileArguments& t, int64_t tile) : pointers(t.rows + tile * t.row_step) {}
  SELKIE_INLINE void begin_tap(const TileArguments& t) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) at[r] = pointers[r] + t.a_offset;
    pointers += rows;
    depth = 0;
  }
  SELKIE_INLINE float value(int row, int step) const { return at[row][depth + step]; }
  SELKIE_INLINE void advance(int steps) { depth += steps; }
};

// Rows the same distance apart. Pointers to all of them would not leave a register for anything else; the two rows
// after each third one are addressed from there.
template <int rows>
struct EvenRows {
  static constexpr bool has_taps = false;  // but one
  const float* at[(rows + 2) / 3];
  int64_t stride;

  SELKIE_INLINE EvenRows(const TileArguments& t, int64_t tile) : stride(t.a_stride) {
    const float* first = t.a + tile * rows * stride;
#pragma GCC unroll 16
    for (int i = 0; i < (rows + 2) / 3; ++i) at[i] = first + 3 * i * stride;
  }
  SELKIE_INLINE void begin_tap(const TileArguments&) {}
  SELKIE_INLINE float value(int row, int step) const { return at[row / 3][row % 3 * stride + step]; }
  SELKIE_INLINE void advance(int steps) {
#pragma GCC unroll 16
    for (int i = 0; i < (rows + 2) / 3; ++i) at[i] += steps;
  }
};

template <int rows, int vectors, class Rows>
SELKIE_INLINE void one_step(Vector (&sum)[rows][vectors], const Rows& a, int step, const float* b) {
  Vector column[vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) column[v] = load(b + v * lanes);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    Vector scalar = broadcast(a.value(r, step));
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) multiply_add(sum[r][v], scalar, column[v]);
  }
}

// Where a vector of a tile's columns is read from or written to: the last one may exist in part.
template <class Lanes>
struct Columns {
  Lanes last;

  SELKIE_INLINE Vector load_at(const float* from, bool is_last) const { return is_last ? last.load(from) : load(from); }
  SELKIE_INLINE void store_at(float* to, Vector value, bool is_last) const {
    is_last ? last.store(to, value) : store(to, value);
  }
};

// What the sums begin with: c itself, or bias and addend.
template <int rows, int vectors, class Lanes>
SELKIE_INLINE void begin_sums(Vector (&sum)[rows][vectors], const TileArguments& t, int64_t offset,
                              Columns<Lanes> part) {
  const float* from = t.accumulate ? t.c : t.addend;
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    Vector bias = t.bias ? part.load_at(t.bias + v * lanes, v + 1 == vectors) : Vector{};
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r][v] = bias;
  }
  if (!from) return;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      sum[r][v] += part.load_at(from + offset + r * t.c_stride + v * lanes, v + 1 == vectors);
}

template <int rows, int vectors, class Lanes>
SELKIE_INLINE void store_sums(Vector (&sum)[rows][vectors], const TileArguments& t, int64_t offset,
                              Columns<Lanes> part) {
  if (t.clamps) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[r][v] = clamp(sum[r][v], t.low, t.high);
  }
  float* c = t.c + offset;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) part.store_at(c + r * t.c_stride + v * lanes, sum[r][v], v + 1 == vectors);
}

// One tile, whose part of c begins at `offset`.
template <int rows, int vectors, int locality, class Rows, class Lanes>
SELKIE_INLINE void one_tile(const TileArguments& t, int64_t offset, Rows a, const char* ahead, Columns<Lanes> part) {
  constexpr int sums = tile_sums(rows * 2);
  constexpr int steps = sums > 1 ? sums : 2;
  Vector sum[sums][rows][vectors];
  begin_sums(sum[0], t, offset, part);
#pragma GCC unroll 4
  for (int s = 1; s < sums; ++s)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[s][r][v] = Vector{};
  const float* b = t.b;
  const int64_t b_stride = t.b_stride;
  const int64_t ahead_step = t.ahead_step;
  const int64_t taps = Rows::has_taps ? t.taps : 1;
  for (int64_t tap = 0; tap < taps; ++tap) {
    a.begin_tap(t);
    int64_t left = t.depth;
    for (; left >= steps; left -= steps) {
#pragma GCC unroll 4
      for (int s = 0; s < steps; ++s) {
        if (locality == 2 || s % 2 == 0) {
          __builtin_prefetch(ahead, 0, locality);
          ahead += locality == 2 ? ahead_step : 2 * ahead_step;
        }
        one_step(sum[s % sums], a, s, b);
        b += b_stride;
      }
      a.advance(steps);
    }
    for (; left > 0; --left, b += b_stride) {
      one_step(sum[0], a, 0, b);
      a.advance(1);
    }
  }
#pragma GCC unroll 4
  for (int s = 1; s < sums; ++s)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[0][r][v] += sum[s][r][v];
  store_sums(sum[0], t, offset, part);
}

// The next tile's part of c and of what is added to it is fetched while this one is multiplied.
template <int rows, int vectors>
SELKIE_INLINE void fetch_tile(const TileArguments& t, int64_t offset) {
  constexpr int line = 16;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int i = 0; i < vectors * lanes; i += line) __builtin_prefetch(t.c + offset + r * t.c_stride + i, 0, 2);
  if (!t.addend) return;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int i = 0; i < vectors * lanes; i += line) __builtin_prefetch(t.addend + offset + r * t.c_stride + i, 0, 2);
}

template <int rows, int vectors, int locality, class Rows, class Lanes>
SELKIE_INLINE void some_tiles(const TileArguments& t, Columns<Lanes> part) {
  const char* ahead = t.ahead;
  const int64_t ahead_of_tile = t.ahead_step * t.taps * t.depth;
  // Tiles of few products are stored so often that memory is busy anyway.
  const bool fetches = t.taps * t.depth >= 48;
  int64_t offset = 0;
  for (int64_t i = 0; i < t.tiles; ++i, offset += rows * t.c_stride, ahead += ahead_of_tile) {
    if (fetches && i + 1 < t.tiles) fetch_tile<rows, vectors>(t, offset + rows * t.c_stride);
    one_tile<rows, vectors, locality>(t, offset, Rows(t, i), ahead, part);
  }
}

// What it fetches goes into caches by `locality`: 3 into all, 2 into the second level.
template <int rows, int vectors, int locality, class Rows>
void tile(const TileArguments& arguments) {
  const TileArguments t = arguments;  // a copy, since stores to c might change the original
  int64_t in_last = t.columns - (vectors - 1) * lanes;
  in_last >= lanes ? some_tiles<rows, vectors, locality, Rows>(t, Columns{AllLanes{}})
                   : some_tiles<rows, vectors, locality, Rows>(t, Columns{FirstLanes(in_last)});
}

}  // namespace
}  // namespace selkie::kernels
