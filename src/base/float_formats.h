// Conversions between double and the storage formats narrower than f32: f16, bf16, float8 and float4.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace selkie {

// What a narrow float does with a value above its largest finite one.
enum class Overflow : uint8_t {
  saturate,  // becomes the largest finite value
  special,   // becomes infinity, or NaN where the format has no infinity
};

enum class Rounding : uint8_t { nearest_even, up, down };

// The value that `code` stands for in a float dtype of at most 16 bits.
double decode_float(DType dtype, uint16_t code);

// The code nearest to `value` in a float dtype of at most 16 bits. f16 and bf16 overflow to infinity always.
uint16_t encode_float(DType dtype, double value, Overflow overflow = Overflow::saturate);

// f8e8m0 holds only powers of two; `rounding` says which of the two neighbours a value goes to.
uint8_t encode_e8m0(double value, Overflow overflow, Rounding rounding);

}  // namespace selkie
