// A vector of `lanes` floats in the compiler's vector extension. Included by the instruction sets' units only, inside
// which SELKIE_ISA_LANES is set; all of isa/ has internal linkage, so that no function of one set is linked into
// another.
#pragma once

#include <cstdint>

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
#if (SELKIE_ISA_LANES == 16 && defined(__AVX512F__)) || (SELKIE_ISA_LANES == 8 && defined(__FMA__))
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
  sum += a * b;
#endif
}

}  // namespace
}  // namespace selkie::kernels
