// Few rows times packed panels of small floats, and their widening. Included by the instruction sets' units only,
// inside which SELKIE_ISA_LANES is set.
#pragma once

#include <cstring>

#include "kernels/half_table.h"
#include "kernels/isa/vector.h"

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace selkie::kernels {
namespace {

typedef uint16_t Halves __attribute__((vector_size(lanes * 2), aligned(2), may_alias));
typedef uint32_t Words __attribute__((vector_size(lanes * 4)));
typedef uint32_t UnalignedWords __attribute__((vector_size(lanes * 4), aligned(2), may_alias));
typedef int32_t Integers __attribute__((vector_size(lanes * 4)));

SELKIE_INLINE Vector load_f16(const uint16_t* from) {
#if SELKIE_ISA_LANES == 8 && defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif SELKIE_ISA_LANES == 16 && defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#else
  // Exponent and fraction are moved to their places and the bias of the exponent is multiplied away, which is exact for
  // subnormal numbers, too; infinity and NaN have an exponent that this does not reach.
  Words bits = __builtin_convertvector(*reinterpret_cast<const Halves*>(from), Words);
  Words magnitude = (bits & 0x7fffu) << 13;
  Vector scaled = reinterpret_cast<Vector>(magnitude) * 0x1p112f;
  Words special = reinterpret_cast<Words>(reinterpret_cast<Integers>(magnitude) >= 0x0f800000);
  Words value = reinterpret_cast<Words>(scaled) | (special & 0x7f800000u);
  return reinterpret_cast<Vector>(value | (bits & 0x8000u) << 16);
#endif
}

// The two vectors of a panel at one depth. Those of bf16 are the halves of the same words, so that no shuffle is
// needed.
template <HalfKind kind>
SELKIE_INLINE void load_pair(const uint16_t* from, Vector (&pair)[2]) {
  if constexpr (kind == HalfKind::bf16) {
    Words words = *reinterpret_cast<const UnalignedWords*>(from);
    pair[0] = reinterpret_cast<Vector>(words << 16);
    pair[1] = reinterpret_cast<Vector>(words & 0xffff0000u);
  } else {
    pair[0] = load_f16(from);
    pair[1] = load_f16(from + lanes);
  }
}

// As many panels at a time as there are registers for: side by side they are read faster than one after the other.
constexpr int panels_of(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

// Three rows leave registers for a second sum, which fills the pipeline.
constexpr int sums_of(int rows) { return rows == 3 ? 2 : 1; }

template <HalfKind kind, int rows, int panels>
SELKIE_INLINE void half_step(Vector (&sum)[rows][panels * 2], const HalfRowsArguments& t, const uint16_t* b,
                             int64_t depth) {
  Vector column[panels][2];
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) load_pair<kind>(b + (p * t.depth + depth) * 2 * lanes, column[p]);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    Vector scalar = broadcast(t.rows[r * t.row_stride + depth]);
#pragma GCC unroll 8
    for (int v = 0; v < panels * 2; ++v) multiply_add(sum[r][v], scalar, column[v / 2][v % 2]);
  }
}

template <HalfKind kind, int rows, int panels>
SELKIE_INLINE void multiply_half_panels(const HalfRowsArguments& t, int64_t first, const float* bias, float* c,
                                        int64_t c_stride) {
  constexpr int sums = sums_of(rows);
  const uint16_t* b = t.panels + first * t.depth * 2 * lanes;
  Vector sum[sums][rows][panels * 2] = {};
#pragma GCC unroll 8
  for (int v = 0; v < panels * 2; ++v) {
    Vector begin = bias ? load(bias + v * lanes) : Vector{};
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[0][r][v] = begin;
  }
  int64_t d = 0;
  for (; d + sums <= t.depth; d += sums) {
#pragma GCC unroll 2
    for (int s = 0; s < sums; ++s) half_step<kind, rows, panels>(sum[s], t, b, d + s);
  }
  for (; d < t.depth; ++d) half_step<kind, rows, panels>(sum[0], t, b, d);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < panels * 2; ++v) {
      if constexpr (sums == 2) sum[0][r][v] += sum[1][r][v];
      store(c + r * c_stride + v * lanes, sum[0][r][v]);
    }
}

template <HalfKind kind, int rows>
void multiply_half_rows(const HalfRowsArguments& arguments) {
  const HalfRowsArguments t = arguments;
  constexpr int64_t width = 2 * lanes;
  constexpr int most = panels_of(rows);
  const int64_t count = t.columns / width;
  int64_t panel = 0;
  auto bias = [&] { return t.bias ? t.bias + panel * width : nullptr; };
  for (; panel + most <= count; panel += most)
    multiply_half_panels<kind, rows, most>(t, panel, bias(), t.c + panel * width, t.c_stride);
  for (; panel < count; ++panel) multiply_half_panels<kind, rows, 1>(t, panel, bias(), t.c + panel * width, t.c_stride);
  const int64_t rest = t.columns - count * width;
  if (rest == 0) return;
  alignas(64) float edge_bias[width] = {};
  alignas(64) float edge[rows * width];
  auto bytes = static_cast<size_t>(rest) * sizeof(float);
  if (t.bias) std::memcpy(edge_bias, bias(), bytes);
  multiply_half_panels<kind, rows, 1>(t, panel, edge_bias, edge, width);
  for (int r = 0; r < rows; ++r) std::memcpy(t.c + r * t.c_stride + panel * width, edge + r * width, bytes);
}

template <HalfKind kind>
void widen_halves(const uint16_t* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += 2 * lanes) {
    Vector pair[2];
    load_pair<kind>(from + i, pair);
    store(to + i, pair[0]);
    store(to + i + lanes, pair[1]);
  }
}

template <HalfKind kind, int rows = 1>
constexpr void set_half_rows(HalfTable& table) {
  table.multiply_rows[static_cast<int>(kind)][rows - 1] = multiply_half_rows<kind, rows>;
  if constexpr (rows < most_half_rows) set_half_rows<kind, rows + 1>(table);
}

constexpr HalfTable make_half_table(const char* name) {
  HalfTable made{
      .name = name, .multiply_rows = {}, .widen = {widen_halves<HalfKind::f16>, widen_halves<HalfKind::bf16>}};
  set_half_rows<HalfKind::f16>(made);
  set_half_rows<HalfKind::bf16>(made);
  return made;
}

}  // namespace
}  // namespace selkie::kernels
