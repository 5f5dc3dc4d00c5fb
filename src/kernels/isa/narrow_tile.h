// The register tile of one and a half vectors of columns, for rows that are the same distance apart. Processors that
// make wide vectors of halves take three quarters of the time of two whole ones.
#pragma once

#include "kernels/isa/tile.h"

namespace selkie::kernels {
namespace {

constexpr int half_lanes = lanes / 2;
typedef float Half __attribute__((vector_size(half_lanes * 4)));
typedef float UnalignedHalf __attribute__((vector_size(half_lanes * 4), aligned(4), may_alias));

SELKIE_INLINE Half load_half(const float* from) { return *reinterpret_cast<const UnalignedHalf*>(from); }
SELKIE_INLINE Half broadcast_half(float value) { return value - Half{}; }

SELKIE_INLINE Half lower_half(Vector x) {
#if defined(SELKIE_ISA_NATIVE) && SELKIE_ISA_LANES == 16
  return Half(_mm512_castps512_ps256(__m512(x)));
#elif defined(SELKIE_ISA_NATIVE)
  return Half(_mm256_castps256_ps128(__m256(x)));
#else
  Half out{};
  for (int i = 0; i < half_lanes; ++i) out[i] = x[i];
  return out;
#endif
}

SELKIE_INLINE void multiply_add(Half& sum, Half a, Half b) {
#if defined(SELKIE_ISA_NATIVE)
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
  sum += a * b;
#endif
}

// NaN stays NaN.
SELKIE_INLINE Half clamp(Half x, float low, float high) {
#if defined(SELKIE_ISA_NATIVE) && SELKIE_ISA_LANES == 16
  return Half(_mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), __m256(x))));
#else
  Half least = broadcast_half(low);
  Half most = broadcast_half(high);
  x = x < least ? least : x;
  return x > most ? most : x;
#endif
}

// The first `count` lanes of a half, 1 … half_lanes.
struct HalfLanes {
  int64_t count;
  SELKIE_INLINE Half load(const float* from) const {
    if (count == half_lanes) return load_half(from);
    Half value{};
    for (int64_t i = 0; i < count; ++i) value[i] = from[i];
    return value;
  }
  SELKIE_INLINE void store(float* to, Half value) const {
    if (count == half_lanes)
      *reinterpret_cast<UnalignedHalf*>(to) = value;
    else
      for (int64_t i = 0; i < count; ++i) to[i] = value[i];
  }
};

template <int rows>
struct NarrowSums {
  Vector whole[rows];
  Half half[rows];
};

template <int rows>
SELKIE_INLINE void narrow_step(NarrowSums<rows>& sum, const EvenRows<rows>& a, int step, const float* b) {
  Vector whole = load(b);
  Half half = load_half(b + lanes);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    Vector scalar = broadcast(a.value(r, step));
    multiply_add(sum.whole[r], scalar, whole);
    multiply_add(sum.half[r], lower_half(scalar), half);
  }
}

template <int rows>
SELKIE_INLINE void begin_narrow_sums(NarrowSums<rows>& sum, const TileArguments& t, const float* from, HalfLanes part) {
  Vector whole = t.bias ? load(t.bias) : Vector{};
  Half half = t.bias ? part.load(t.bias + lanes) : Half{};
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    sum.whole[r] = whole;
    sum.half[r] = half;
  }
  if (!from) return;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    sum.whole[r] += load(from + r * t.c_stride);
    sum.half[r] += part.load(from + r * t.c_stride + lanes);
  }
}

template <int rows>
SELKIE_INLINE void store_narrow_sums(NarrowSums<rows>& sum, const TileArguments& t, float* c, HalfLanes part) {
  if (t.clamps) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      sum.whole[r] = clamp(sum.whole[r], t.low, t.high);
      sum.half[r] = clamp(sum.half[r], t.low, t.high);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    store(c + r * t.c_stride, sum.whole[r]);
    part.store(c + r * t.c_stride + lanes, sum.half[r]);
  }
}

// Columns are more than the lanes of a vector, at most those of one and a half. Sums are split as those of a whole tile
// are, so that both give the same.
template <int rows>
void narrow_tile(const TileArguments& arguments) {
  const TileArguments t = arguments;  // a copy, since stores to c might change the original
  constexpr int sums = tile_sums(rows * 2);
  constexpr int steps = sums > 1 ? sums : 2;
  HalfLanes part{t.columns - lanes};
  const char* ahead = t.ahead;
  int64_t offset = 0;
  for (int64_t i = 0; i < t.tiles; ++i, offset += rows * t.c_stride) {
    if (i + 1 < t.tiles) fetch_tile<rows, 2>(t, offset + rows * t.c_stride);
    NarrowSums<rows> sum[sums];
    const float* from = t.accumulate ? t.c : t.addend;
    begin_narrow_sums(sum[0], t, from ? from + offset : nullptr, part);
#pragma GCC unroll 4
    for (int s = 1; s < sums; ++s)
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        sum[s].whole[r] = Vector{};
        sum[s].half[r] = Half{};
      }
    EvenRows<rows> a(t, i);
    const float* b = t.b;
    int64_t left = t.depth;
    for (; left >= steps; left -= steps) {
#pragma GCC unroll 4
      for (int s = 0; s < steps; ++s, b += t.b_stride) {
        __builtin_prefetch(ahead, 0, 3);
        ahead += t.ahead_step;
        narrow_step(sum[s % sums], a, s, b);
      }
      a.advance(steps);
    }
    for (; left > 0; --left, b += t.b_stride, ahead += t.ahead_step) {
      narrow_step(sum[0], a, 0, b);
      a.advance(1);
    }
#pragma GCC unroll 4
    for (int s = 1; s < sums; ++s)
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        sum[0].whole[r] += sum[s].whole[r];
        sum[0].half[r] += sum[s].half[r];
      }
    store_narrow_sums(sum[0], t, t.c + offset, part);
  }
}

}  // namespace
}  // namespace selkie::kernels
