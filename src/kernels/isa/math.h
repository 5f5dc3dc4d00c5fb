// Exponential, sigmoid and hyperbolic tangent of vectors, within 4 units in the last place. Coefficients are those of
// Cephes (expf, tanhf).
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

typedef int32_t IntVector __attribute__((vector_size(lanes * 4)));

SELKIE_INLINE Vector as_floats(IntVector bits) { return reinterpret_cast<Vector>(bits); }
SELKIE_INLINE IntVector as_bits(Vector value) { return reinterpret_cast<IntVector>(value); }
SELKIE_INLINE Vector absolute(Vector x) { return as_floats(as_bits(x) & 0x7fffffff); }

// exp(x) for x <= 0 or NaN. Results below 2^-126.5 are 0.
SELKIE_INLINE Vector exp_of_negative(Vector x) {
  // The sum's last bits are the rounded quotient by ln 2 plus the exponent's bias, ready to be shifted into place. At
  // the least x they are 0, and so is the power.
  constexpr float rounder = 12582912.0f + 127.0f;
  const Vector least = broadcast(-88.0f);
  Vector inside = least > x ? least : x;
  Vector rounded = inside * 1.44269504088896341f + rounder;
  Vector quotient = rounded - rounder;
  // ln 2 in two parts, of which the first times the quotient is exact.
  Vector r = inside - quotient * 0.693359375f;
  r = r - quotient * -2.12194440e-4f;
  // The polynomial in pairs of terms: Horner's chain would be longer than the pipeline can look ahead.
  Vector square = r * r;
  Vector low = r * 1.6666665459e-1f + 5.0000001201e-1f;
  Vector middle = r * 8.3334519073e-3f + 4.1665795894e-2f;
  Vector high = r * 1.9875691500e-4f + 1.3981999507e-3f;
  Vector p = (high * square + middle) * square + low;
  Vector power = as_floats(as_bits(rounded) << 23);
  return (p * square + (r + 1.0f)) * power;
}

SELKIE_INLINE Vector sigmoid(Vector x) {
  Vector e = exp_of_negative(-absolute(x));
  Vector one = broadcast(1.0f);
  return (x < Vector{} ? e : one) / (one + e);
}

SELKIE_INLINE Vector hyperbolic_tangent(Vector x) {
  Vector size = absolute(x);
  Vector square = x * x;
  Vector p = square * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * square + -5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square + -3.33332819422e-1f;
  Vector near_zero = p * square * x + x;
  // tanh |x| = (1 - e) / (1 + e) with e = exp(-2 |x|), which loses digits near 0 only.
  Vector e = exp_of_negative(size * -2.0f);
  Vector one = broadcast(1.0f);
  Vector far = as_floats(as_bits((one - e) / (one + e)) | (as_bits(x) & static_cast<int32_t>(0x80000000)));
  return size < broadcast(0.625f) ? near_zero : far;
}

SELKIE_INLINE Vector apply(Function function, Vector x) {
  switch (function) {
    case Function::exp_of_negative:
      return exp_of_negative(x);
    case Function::sigmoid:
      return sigmoid(x);
    case Function::tanh:
      return hyperbolic_tangent(x);
    case Function::relu:
      break;
  }
  return x < Vector{} ? Vector{} : x;
}

SELKIE_INLINE Vector load_part(const float* from, int64_t count) {
  alignas(64) float part[lanes] = {};
  for (int64_t i = 0; i < count; ++i) part[i] = from[i];
  return load(part);
}

SELKIE_INLINE void store_part(float* to, Vector value, int64_t count) {
  alignas(64) float part[lanes];
  store(part, value);
  for (int64_t i = 0; i < count; ++i) to[i] = part[i];
}

void map(Function function, const float* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(to + i, apply(function, load(from + i)));
  if (i < count) store_part(to + i, apply(function, load_part(from + i, count - i)), count - i);
}

}  // namespace
}  // namespace selkie::kernels
