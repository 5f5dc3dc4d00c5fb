#include "base/float_formats.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace selkie {
namespace {

// How the codes beyond the finite numbers are used.
enum class Specials : uint8_t {
  ieee,      // the top exponent holds infinity and NaN
  nan_only,  // all-ones is NaN, no infinity (…fn)
  uz,        // the code of negative zero is NaN, no infinity (…fnuz)
  none,      // every code is a number
};

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {5, 10, 15, Specials::ieee};
    case DType::bf16:
      return {8, 7, 127, Specials::ieee};
    case DType::f8e4m3fn:
      return {4, 3, 7, Specials::nan_only};
    case DType::f8e4m3fnuz:
      return {4, 3, 8, Specials::uz};
    case DType::f8e5m2:
      return {5, 2, 15, Specials::ieee};
    case DType::f8e5m2fnuz:
      return {5, 2, 16, Specials::uz};
    case DType::f4e2m1:
      return {2, 1, 1, Specials::none};
    default:
      CHECK(false, "{} is not a narrow float", name(dtype));
      return {};
  }
}

// The largest finite code without the sign bit.
uint32_t max_code(const Format& f) {
  uint32_t top = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.specials == Specials::ieee) return top - (1u << f.mantissa_bits);
  return f.specials == Specials::nan_only ? top - 1 : top;
}

uint32_t sign_bit(const Format& f) { return 1u << (f.exponent_bits + f.mantissa_bits); }

uint32_t nan_code(const Format& f) {
  switch (f.specials) {
    case Specials::ieee:
      return max_code(f) + 1 + (1u << (f.mantissa_bits - 1));
    case Specials::nan_only:
      return max_code(f) + 1;
    case Specials::uz:
      return sign_bit(f);
    case Specials::none:
      return 0;
  }
  return 0;
}

double decode_e8m0(uint8_t code) {
  return code == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
}

}  // namespace

double decode_float(DType dtype, uint16_t code) {
  if (dtype == DType::f8e8m0) return decode_e8m0(static_cast<uint8_t>(code));
  if (dtype == DType::bf16) return std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
  Format f = format_of(dtype);
  bool negative = (code & sign_bit(f)) != 0;
  uint32_t magnitude = code & (sign_bit(f) - 1);
  if (f.specials == Specials::uz && code == sign_bit(f)) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude > max_code(f)) {
    bool infinite = f.specials == Specials::ieee && magnitude == max_code(f) + 1;
    double special = infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return negative ? -special : special;
  }
  int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  int mantissa = static_cast<int>(magnitude & ((1u << f.mantissa_bits) - 1));
  double value = exponent == 0 ? std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits)
                               : std::ldexp((1 << f.mantissa_bits) + mantissa, exponent - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

uint16_t encode_float(DType dtype, double value, Overflow overflow) {
  if (dtype == DType::f8e8m0) return encode_e8m0(value, overflow, Rounding::nearest_even);
  Format f = format_of(dtype);
  if (std::isnan(value)) return static_cast<uint16_t>(nan_code(f) | (std::signbit(value) ? sign_bit(f) : 0));
  uint32_t sign = std::signbit(value) ? sign_bit(f) : 0;
  double magnitude = std::fabs(value);

  // One unit in the last place at this magnitude; below the smallest normal it stays constant.
  int exponent = magnitude == 0 ? 1 - f.bias : std::max(std::ilogb(std::min(magnitude, 1e300)), 1 - f.bias);
  double units = std::isinf(magnitude) ? magnitude : std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  // Counting units continues through binades: 2^(m+1) units of one exponent are the first code of the next.
  double code = units + std::ldexp(static_cast<double>(exponent - 1 + f.bias), f.mantissa_bits);
  if (code > max_code(f)) {
    bool wide = dtype == DType::f16 || dtype == DType::bf16;
    if (!wide && (overflow == Overflow::saturate || f.specials == Specials::none))
      return static_cast<uint16_t>(sign | max_code(f));
    if (f.specials == Specials::ieee) return static_cast<uint16_t>(sign | (max_code(f) + 1));
    return static_cast<uint16_t>(f.specials == Specials::uz ? nan_code(f) : (sign | nan_code(f)));
  }
  uint32_t bits = static_cast<uint32_t>(code);
  if (bits == 0 && f.specials == Specials::uz) return 0;
  return static_cast<uint16_t>(sign | bits);
}

uint8_t encode_e8m0(double value, Overflow overflow, Rounding rounding) {
  constexpr uint8_t nan = 0xff;
  constexpr uint8_t largest = 0xfe;
  if (std::isnan(value)) return nan;
  value = std::fabs(value);
  if (std::isinf(value)) return overflow == Overflow::saturate ? largest : nan;
  if (value == 0) return 0;
  int exponent = std::ilogb(value);
  double fraction = std::ldexp(value, -exponent);  // in [1, 2)
  bool round_up = rounding == Rounding::up ? fraction > 1 : rounding == Rounding::nearest_even && fraction >= 1.5;
  int code = exponent + 127 + (round_up ? 1 : 0);
  if (code > largest) return overflow == Overflow::saturate ? largest : nan;
  return static_cast<uint8_t>(std::max(code, 0));
}

}  // namespace selkie
