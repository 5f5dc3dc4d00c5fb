// The register tile of integer products for every number of rows, and the table of one instruction set. The unit that
// includes this sets SELKIE_INTEGER_LANES (i32 of a vector), SELKIE_INTEGER_TILE_ROWS and SELKIE_INTEGER_STEP: with 2,
// products of 16 bits, into which bytes are widened; with 4, of unsigned by signed bytes as VNNI has them.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/integer_table.h"

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

#define SELKIE_INLINE inline __attribute__((always_inline))

namespace selkie::kernels {
namespace {

constexpr int integer_lanes = SELKIE_INTEGER_LANES;
constexpr int step_products = SELKIE_INTEGER_STEP;
constexpr int integer_columns = 2 * integer_lanes;

// Sums wrap, so they are unsigned; in `Signed`, nothing overflows.
typedef uint32_t Sums __attribute__((vector_size(integer_lanes * 4)));
typedef uint32_t UnalignedSums __attribute__((vector_size(integer_lanes * 4), aligned(4), may_alias));
typedef int32_t Signed __attribute__((vector_size(integer_lanes * 4)));

SELKIE_INLINE Sums load_sums(const int32_t* from) { return *reinterpret_cast<const UnalignedSums*>(from); }
SELKIE_INLINE void store_sums(int32_t* to, Sums value) { *reinterpret_cast<UnalignedSums*>(to) = value; }
SELKIE_INLINE Sums broadcast_step(const uint8_t* from) {
  uint32_t step;
  std::memcpy(&step, from, sizeof step);
  return Sums{} + step;
}

// sum += the products of pairs of 16 bits.
SELKIE_INLINE void add_pairs(Sums& sum, Sums a, Sums b) {
#if SELKIE_INTEGER_LANES == 16 && defined(__AVX512BW__)
  sum += reinterpret_cast<Sums>(_mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif SELKIE_INTEGER_LANES == 8 && defined(__AVX2__)
  sum += reinterpret_cast<Sums>(_mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif SELKIE_INTEGER_LANES == 4 && defined(__SSE2__)
  sum += reinterpret_cast<Sums>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  auto low = [](Sums x) { return reinterpret_cast<Signed>(x << 16) >> 16; };
  auto high = [](Sums x) { return reinterpret_cast<Signed>(x) >> 16; };
  sum += reinterpret_cast<Sums>(low(a) * low(b) + high(a) * high(b));
#endif
}

#if SELKIE_INTEGER_STEP == 2

using Element = int16_t;
constexpr bool subtracts_zeros = true;

// Signed bytes as pairs of 16 bits.
SELKIE_INLINE Sums load_columns(const int8_t* b) {
#if SELKIE_INTEGER_LANES == 8 && defined(__AVX2__)
  return reinterpret_cast<Sums>(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b))));
#else
  typedef int8_t Bytes __attribute__((vector_size(integer_lanes * 2), aligned(1), may_alias));
  typedef int16_t Words __attribute__((vector_size(integer_lanes * 4)));
  return reinterpret_cast<Sums>(__builtin_convertvector(*reinterpret_cast<const Bytes*>(b), Words));
#endif
}

SELKIE_INLINE void add_products(Sums& sum, Sums a, Sums b) { add_pairs(sum, a, b); }

#else

using Element = uint8_t;
constexpr bool subtracts_zeros = false;

SELKIE_INLINE Sums load_columns(const int8_t* b) { return load_sums(reinterpret_cast<const int32_t*>(b)); }

SELKIE_INLINE void add_products(Sums& sum, Sums a, Sums b) {
#if SELKIE_INTEGER_LANES == 16 && defined(__AVX512VNNI__)
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    Signed left = reinterpret_cast<Signed>(a >> (8 * i) & 255u);
    Signed right = reinterpret_cast<Signed>(b << (24 - 8 * i)) >> 24;
    sum += reinterpret_cast<Sums>(left * right);
  }
#endif
}

#endif

// sums −= factors of rows · those of columns.
template <int rows>
SELKIE_INLINE void subtract_outer(Sums (&sum)[rows][2], const int32_t* of_rows, const int32_t* of_columns) {
  if (of_rows == nullptr) return;
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    Sums columns = load_sums(of_columns + v * integer_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r][v] -= columns * static_cast<uint32_t>(of_rows[r]);
  }
}

template <int rows>
SELKIE_INLINE void store_tile(const Sums (&sum)[rows][2], int32_t* c, int64_t c_stride, int64_t columns) {
  if (columns == integer_columns) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) store_sums(c + r * c_stride + v * integer_lanes, sum[r][v]);
    return;
  }
  alignas(64) int32_t edge[rows][integer_columns];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) store_sums(&edge[r][v * integer_lanes], sum[r][v]);
  for (int r = 0; r < rows; ++r) std::memcpy(c + r * c_stride, edge[r], static_cast<size_t>(columns) * sizeof(int32_t));
}

template <int rows>
void integer_tile(const IntegerTileArguments& t) {
  Sums sum[rows][2] = {};
  const int8_t* b = t.b;
  const uint8_t* const* pointers = t.rows;
  for (int64_t tap = 0; tap < t.taps; ++tap, pointers += rows) {
    const uint8_t* a[rows];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) a[r] = pointers[r];
    for (int64_t step = 0; step < t.steps; ++step, b += integer_columns * step_products) {
      Sums first = load_columns(b);
      Sums second = load_columns(b + integer_lanes * step_products);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        Sums scalar = broadcast_step(a[r] + 4 * step);
        add_products(sum[r][0], scalar, first);
        add_products(sum[r][1], scalar, second);
      }
    }
  }
  subtract_outer(sum, t.row_zeros, t.column_sums);
  subtract_outer(sum, t.row_sums, t.column_zeros);
  store_tile(sum, t.c, t.c_stride, t.columns);
}

void center_words(const uint8_t* from, bool is_signed, int32_t zero, int64_t count, uint8_t* bytes) {
  auto* to = reinterpret_cast<int16_t*>(bytes);
  if (is_signed) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(static_cast<int8_t>(from[i]) - zero);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
  }
}

// Bytes that are signed and are to be unsigned have their first bit turned, which adds 128.
void center(const uint8_t* from, bool is_signed, int32_t zero, int64_t count, uint8_t* bytes) {
  auto* to = reinterpret_cast<Element*>(bytes);
  if constexpr (subtracts_zeros) {
    center_words(from, is_signed, zero, count, bytes);
  } else {
    uint8_t turned = is_signed ? 0x80 : 0;
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Element>(from[i] ^ turned);
  }
  for (int64_t i = count; i % step_products != 0; ++i) to[i] = 0;
}

int32_t sum_elements(const uint8_t* row, int64_t count) {
  const auto* elements = reinterpret_cast<const Element*>(row);
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(static_cast<int32_t>(elements[i]));
  return static_cast<int32_t>(sum);
}

// A channel is a lane: its 16 bits and 16 more that are zero make a pair.
void integer_depthwise(const IntegerDepthwiseArguments& t) {
  typedef uint16_t Words __attribute__((vector_size(integer_lanes * 2), aligned(2), may_alias));
  const int64_t padded = (t.channels + integer_columns - 1) / integer_columns * integer_columns;
  for (int64_t channel = 0; channel < t.channels; channel += integer_columns) {
    Sums sum[1][2] = {};
    for (int64_t tap = 0; tap < t.taps; ++tap) {
      const auto* row = reinterpret_cast<const uint16_t*>(t.rows[tap]) + channel;
      const uint32_t* weights = t.weights + tap * padded + channel;
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        add_pairs(sum[0][v], __builtin_convertvector(*reinterpret_cast<const Words*>(row + v * integer_lanes), Sums),
                  load_sums(reinterpret_cast<const int32_t*>(weights + v * integer_lanes)));
    }
    int64_t columns = t.channels - channel < integer_columns ? t.channels - channel : integer_columns;
    store_tile<1>(sum, t.c + channel, 0, columns);
  }
}

template <int rows>
constexpr void set_integer_tile(IntegerTable& table) {
  if constexpr (rows <= SELKIE_INTEGER_TILE_ROWS) {
    table.tiles[rows - 1] = integer_tile<rows>;
    set_integer_tile<rows + 1>(table);
  }
}

constexpr IntegerTable make_integer_table(IntegerIsa isa, const char* name) {
  IntegerTable made{.isa = isa,
                    .name = name,
                    .tile_rows = SELKIE_INTEGER_TILE_ROWS,
                    .tile_columns = integer_columns,
                    .step = step_products,
                    .centered = subtracts_zeros,
                    .tiles = {},
                    .center = center,
                    .center_words = center_words,
                    .depthwise = integer_depthwise,
                    .sum = sum_elements};
  set_integer_tile<1>(made);
  return made;
}

}  // namespace
}  // namespace selkie::kernels
