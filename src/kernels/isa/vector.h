// A vector of `lanes` floats in the compiler's vector extension. Included by the instruction sets' units only, inside
// which SELKIE_ISA_LANES is set; all of isa/ has internal linkage, so that no function of one set is linked into
// another.
#pragma once

#include <cstdint>

#if (SELKIE_ISA_LANES == 16 && defined(__AVX512F__)) || (SELKIE_ISA_LANES == 8 && defined(__FMA__))
#include <immintrin.h>
#define SELKIE_ISA_NATIVE
#endif

#define SELKIE_INLINE inline __attribute__((always_inline))

namespace selkie::kernels {
namespace {

constexpr int lanes = SELKIE_ISA_LANES;
typedef float Vector __attribute__((vector_size(lanes * 4)));
typedef float UnalignedVector __attribute__((vector_size(lanes * 4), aligned(4), may_alias));

SELKIE_INLINE Vector load(const float* from) { return *reinterpret_cast<const UnalignedVector*>(from); }
SELKIE_INLINE void store(float* to, Vector value) { *reinterpret_cast<UnalignedVector*>(to) = value; }

// Minus zero is the one zero that compilers may drop.
SELKIE_INLINE Vector broadcast(float value) { return value - Vector{}; }

// sum += a * b. Left to itself, GCC 12 moves the sums of an unrolled loop from register to register and runs out of
// them.
SELKIE_INLINE void multiply_add(Vector& sum, Vector a, Vector b) {
#if defined(SELKIE_ISA_NATIVE)
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
  sum += a * b;
#endif
}

// NaN stays NaN.
SELKIE_INLINE Vector clamp(Vector x, float low, float high) {
#if defined(SELKIE_ISA_NATIVE) && SELKIE_ISA_LANES == 16
  return Vector(_mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), __m512(x))));
#elif defined(SELKIE_ISA_NATIVE)
  return Vector(_mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), __m256(x))));
#else
  Vector least = broadcast(low);
  Vector most = broadcast(high);
  x = x < least ? least : x;
  return x > most ? most : x;
#endif
}

struct AllLanes {
  SELKIE_INLINE Vector load(const float* from) const { return kernels::load(from); }
  SELKIE_INLINE void store(float* to, Vector value) const { kernels::store(to, value); }
};

// The first `count` lanes of a vector, 1 … lanes; the other ones are neither read nor written, and are 0 once loaded.
struct FirstLanes {
#if defined(SELKIE_ISA_NATIVE) && SELKIE_ISA_LANES == 16
  __mmask16 mask;
  SELKIE_INLINE explicit FirstLanes(int64_t count) : mask(static_cast<__mmask16>((1u << count) - 1)) {}
  SELKIE_INLINE Vector load(const float* from) const { return Vector(_mm512_maskz_loadu_ps(mask, from)); }
  SELKIE_INLINE void store(float* to, Vector value) const { _mm512_mask_storeu_ps(to, mask, __m512(value)); }
#elif defined(SELKIE_ISA_NATIVE)
  __m256i mask;
  SELKIE_INLINE explicit FirstLanes(int64_t count)
      : mask(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                                _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}
  SELKIE_INLINE Vector load(const float* from) const { return Vector(_mm256_maskload_ps(from, mask)); }
  SELKIE_INLINE void store(float* to, Vector value) const { _mm256_maskstore_ps(to, mask, __m256(value)); }
#else
  int64_t count;
  SELKIE_INLINE explicit FirstLanes(int64_t lanes_present) : count(lanes_present) {}
  SELKIE_INLINE Vector load(const float* from) const {
    Vector value{};
    for (int64_t i = 0; i < count; ++i) value[i] = from[i];
    return value;
  }
  SELKIE_INLINE void store(float* to, Vector value) const {
    for (int64_t i = 0; i < count; ++i) to[i] = value[i];
  }
#endif
};

}  // namespace
}  // namespace selkie::kernels
