// The register tile of one and a half vectors of columns, for rows that are the same distance apart: three quarters
// of the work of two whole ones.
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

// The halves of all rows, each a vector of half the lanes.
template <int rows>
struct SplitHalves {
  Half sum[rows];

  SELKIE_INLINE void begin(Half value) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r] = value;
  }
  // Of rows r and r + 1, if there is one.
  SELKIE_INLINE void multiply(int r, Vector scalar, Vector next, const float* b) {
    Half column = load_half(b);
    multiply_add(sum[r], lower_half(scalar), column);
    if (r + 1 < rows) multiply_add(sum[r + 1], lower_half(next), column);
  }
  SELKIE_INLINE void add(const SplitHalves& other) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r] += other.sum[r];
  }
  SELKIE_INLINE Half get(int r) const { return sum[r]; }
  SELKIE_INLINE void add(int r, Half value) { sum[r] += value; }
};

#if defined(SELKIE_ISA_NATIVE) && SELKIE_ISA_LANES == 16
// Two of them in one vector, for processors that take as long for half a vector as for a whole one.
template <int rows>
struct PairedHalves {
  Vector sum[(rows + 1) / 2];

  SELKIE_INLINE static Vector twice(Half value) {
    __m512 lower = _mm512_castps256_ps512(__m256(value));
    return Vector(_mm512_shuffle_f32x4(lower, lower, 0x44));
  }
  SELKIE_INLINE void begin(Half value) {
#pragma GCC unroll 8
    for (int i = 0; i < (rows + 1) / 2; ++i) sum[i] = twice(value);
  }
  SELKIE_INLINE void multiply(int r, Vector scalar, Vector next, const float* b) {
    auto column = Vector(_mm512_castpd_ps(_mm512_broadcast_f64x4(_mm256_loadu_pd(reinterpret_cast<const double*>(b)))));
    if (r + 1 < rows) scalar = Vector(_mm512_mask_blend_ps(0xff00, __m512(scalar), __m512(next)));
    multiply_add(sum[r / 2], scalar, column);
  }
  SELKIE_INLINE void add(const PairedHalves& other) {
#pragma GCC unroll 8
    for (int i = 0; i < (rows + 1) / 2; ++i) sum[i] += other.sum[i];
  }
  SELKIE_INLINE Half get(int r) const {
    __m512d pair = _mm512_castps_pd(__m512(sum[r / 2]));
    return Half(_mm256_castpd_ps(r % 2 == 0 ? _mm512_castpd512_pd256(pair) : _mm512_extractf64x4_pd(pair, 1)));
  }
  SELKIE_INLINE void add(int r, Half value) {
    __m512 wide = _mm512_castps256_ps512(__m256(value));
    sum[r / 2] += Vector(_mm512_maskz_shuffle_f32x4(r % 2 == 0 ? 0x00ff : 0xff00, wide, wide, 0x44));
  }
};
#else
template <int rows>
using PairedHalves = SplitHalves<rows>;
#endif

template <int rows, template <int> class Halves>
struct NarrowSums {
  Vector whole[rows];
  Halves<rows> half;

  SELKIE_INLINE void begin(Vector first, Half second) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) whole[r] = first;
    half.begin(second);
  }
  SELKIE_INLINE void step(const EvenRows<rows>& a, int step, const float* b) {
    Vector column = load(b);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r += 2) {
      Vector scalar = broadcast(a.value(r, step));
      Vector next = r + 1 < rows ? broadcast(a.value(r + 1, step)) : scalar;
      multiply_add(whole[r], scalar, column);
      if (r + 1 < rows) multiply_add(whole[r + 1], next, column);
      half.multiply(r, scalar, next, b + lanes);
    }
  }
  SELKIE_INLINE void add(const NarrowSums& other) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) whole[r] += other.whole[r];
    half.add(other.half);
  }
  SELKIE_INLINE void add(const float* from, int64_t stride, HalfLanes part) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      whole[r] += load(from + r * stride);
      half.add(r, part.load(from + r * stride + lanes));
    }
  }
  SELKIE_INLINE void store_to(const TileArguments& t, float* c, HalfLanes part) const {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      Vector first = t.clamps ? clamp(whole[r], t.low, t.high) : whole[r];
      Half second = t.clamps ? clamp(half.get(r), t.low, t.high) : half.get(r);
      store(c + r * t.c_stride, first);
      part.store(c + r * t.c_stride + lanes, second);
    }
  }
};

// Columns are more than the lanes of a vector, at most those of one and a half. Sums are split as those of a whole tile
// are, so that both give the same.
template <int rows, template <int> class Halves>
void narrow_tile(const TileArguments& arguments) {
  const TileArguments t = arguments;  // a copy, since stores to c might change the original
  constexpr int sums = tile_sums(rows * 2);
  constexpr int steps = sums > 1 ? sums : 2;
  HalfLanes part{t.columns - lanes};
  const char* ahead = t.ahead;
  int64_t offset = 0;
  for (int64_t i = 0; i < t.tiles; ++i, offset += rows * t.c_stride) {
    if (i + 1 < t.tiles) fetch_tile<rows, 2>(t, offset + rows * t.c_stride);
    NarrowSums<rows, Halves> sum[sums];
    sum[0].begin(t.bias ? load(t.bias) : Vector{}, t.bias ? part.load(t.bias + lanes) : Half{});
    const float* from = t.accumulate ? t.c : t.addend;
    if (from) sum[0].add(from + offset, t.c_stride, part);
#pragma GCC unroll 4
    for (int s = 1; s < sums; ++s) sum[s].begin(Vector{}, Half{});
    EvenRows<rows> a(t, i);
    const float* b = t.b;
    int64_t left = t.depth;
    for (; left >= steps; left -= steps) {
#pragma GCC unroll 4
      for (int s = 0; s < steps; ++s, b += t.b_stride) {
        __builtin_prefetch(ahead, 0, 3);
        ahead += t.ahead_step;
        sum[s % sums].step(a, s, b);
      }
      a.advance(steps);
    }
    for (; left > 0; --left, b += t.b_stride, ahead += t.ahead_step) {
      sum[0].step(a, 0, b);
      a.advance(1);
    }
#pragma GCC unroll 4
    for (int s = 1; s < sums; ++s) sum[0].add(sum[s]);
    sum[0].store_to(t, t.c + offset, part);
  }
}

}  // namespace
}  // namespace selkie::kernels
