#include "kir/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/float_formats.h"

namespace selkie::kir {
namespace {

Scalar whole(int64_t value) { return {.whole = value}; }
Scalar real(double value) { return {.real = value}; }
uint64_t raw(int64_t value) { return static_cast<uint64_t>(value); }

// Keeps the dtype's bits and extends them by its sign.
int64_t wrap(DType dtype, uint64_t value) {
  if (dtype == DType::boolean) return value & 1;
  int unused = 64 - 8 * static_cast<int>(element_size(dtype));
  if (is_signed_integer(dtype)) return static_cast<int64_t>(value << unused) >> unused;
  return static_cast<int64_t>(value << unused >> unused);
}

double round_to(DType dtype, double value) {
  if (dtype == DType::f64) return value;
  if (dtype == DType::f32) return static_cast<float>(value);
  return decode_float(dtype, encode_float(dtype, value, Overflow::special));
}

bool is_less(DType dtype, Scalar a, Scalar b) {
  if (is_float(dtype)) return a.real < b.real;
  return dtype == DType::u64 ? raw(a.whole) < raw(b.whole) : a.whole < b.whole;
}

bool is_equal(DType dtype, Scalar a, Scalar b) { return is_float(dtype) ? a.real == b.real : a.whole == b.whole; }

double apply_real(Op op, DType dtype, double a, double b, double c) {
  switch (op) {
    case Op::neg:
      return -a;
    case Op::abs:
      return std::fabs(a);
    case Op::sqrt:
      return std::sqrt(a);
    case Op::floor:
      return std::floor(a);
    case Op::ceil:
      return std::ceil(a);
    case Op::trunc:
      return std::trunc(a);
    case Op::round:
      return std::nearbyint(a);
    case Op::exp:
      return std::exp(a);
    case Op::log:
      return std::log(a);
    case Op::tanh:
      return std::tanh(a);
    case Op::erf:
      return std::erf(a);
    case Op::sigmoid:
      return a < 0 ? std::exp(a) / (1 + std::exp(a)) : 1 / (1 + std::exp(-a));
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::mod:
      return std::fmod(a, b);
    case Op::pow:
      return std::pow(a, b);
    case Op::min:
      return a < b || std::isnan(a) ? a : b;
    case Op::max:
      return a > b || std::isnan(a) ? a : b;
    case Op::fma:
      return dtype == DType::f32 ? std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))
                                 : std::fma(a, b, c);
    default:
      break;
  }
  CHECK(false, "{} of {}", info(op).name, name(dtype));
  return 0;
}

uint64_t divide(DType dtype, int64_t a, int64_t b, bool quotient) {
  if (b == 0) return 0;
  if (is_unsigned_integer(dtype)) return quotient ? raw(a) / raw(b) : raw(a) % raw(b);
  if (b == -1) return quotient ? 0 - raw(a) : 0;
  return raw(quotient ? a / b : a % b);
}

uint64_t shift(Op op, DType dtype, int64_t a, int64_t b) {
  if (raw(b) >= 8 * element_size(dtype)) return 0;
  if (op == Op::shift_left) return raw(a) << b;
  return is_signed_integer(dtype) ? raw(a >> b) : raw(a) >> b;
}

uint64_t apply_whole(Op op, DType dtype, int64_t a, int64_t b) {
  switch (op) {
    case Op::neg:
      return 0 - raw(a);
    case Op::abs:
      return is_signed_integer(dtype) && a < 0 ? 0 - raw(a) : raw(a);
    case Op::bit_not:
      return ~raw(a);
    case Op::add:
      return raw(a) + raw(b);
    case Op::sub:
      return raw(a) - raw(b);
    case Op::mul:
      return raw(a) * raw(b);
    case Op::div:
    case Op::mod:
      return divide(dtype, a, b, op == Op::div);
    case Op::min:
      return raw(is_less(dtype, whole(b), whole(a)) ? b : a);
    case Op::max:
      return raw(is_less(dtype, whole(a), whole(b)) ? b : a);
    case Op::bit_and:
      return raw(a) & raw(b);
    case Op::bit_or:
      return raw(a) | raw(b);
    case Op::bit_xor:
      return raw(a) ^ raw(b);
    case Op::shift_left:
    case Op::shift_right:
      return shift(op, dtype, a, b);
    default:
      break;
  }
  CHECK(false, "{} of {}", info(op).name, name(dtype));
  return 0;
}

int64_t saturate(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  int bits = 8 * static_cast<int>(element_size(dtype)) - (is_signed_integer(dtype) ? 1 : 0);
  double above = std::ldexp(1.0, bits);  // the first value that is too large
  double least = is_signed_integer(dtype) ? -above : 0;
  if (value <= least) return is_signed_integer(dtype) ? static_cast<int64_t>(raw(-1) << bits) : 0;
  if (value >= above) return static_cast<int64_t>(bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1);
  return bits == 64 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : static_cast<int64_t>(value);
}

uint64_t encode(DType dtype, Scalar value) {
  if (dtype == DType::f64) return std::bit_cast<uint64_t>(value.real);
  if (dtype == DType::f32) return std::bit_cast<uint32_t>(static_cast<float>(value.real));
  if (is_float(dtype)) return encode_float(dtype, value.real, Overflow::special);
  return raw(value.whole);
}

Scalar decode(DType dtype, uint64_t code) {
  if (dtype == DType::f64) return real(std::bit_cast<double>(code));
  if (dtype == DType::f32) return real(std::bit_cast<float>(static_cast<uint32_t>(code)));
  if (is_float(dtype)) return real(decode_float(dtype, static_cast<uint16_t>(code)));
  return whole(wrap(dtype, code));
}

}  // namespace

Scalar load_scalar(DType dtype, const void* data, int64_t index) {
  size_t size = element_size(dtype);
  uint64_t code = 0;
  std::memcpy(&code, static_cast<const std::byte*>(data) + raw(index) * size, size);
  return decode(dtype, code);
}

void store_scalar(DType dtype, void* data, int64_t index, Scalar value) {
  size_t size = element_size(dtype);
  uint64_t code = encode(dtype, value);
  std::memcpy(static_cast<std::byte*>(data) + raw(index) * size, &code, size);
}

Scalar constant_scalar(DType dtype, int64_t bits) {
  if (is_float(dtype)) return real(round_to(dtype, std::bit_cast<double>(bits)));
  return whole(wrap(dtype, raw(bits)));
}

Scalar cast_scalar(DType from, DType to, Scalar value) {
  if (to == DType::boolean) return whole(is_float(from) ? value.real != 0 : value.whole != 0);
  if (is_float(to)) {
    if (is_float(from)) return real(round_to(to, value.real));
    if (to == DType::f32)  // through double, an integer beyond 53 bits would be rounded twice
      return real(from == DType::u64 ? static_cast<float>(raw(value.whole)) : static_cast<float>(value.whole));
    return real(
        round_to(to, from == DType::u64 ? static_cast<double>(raw(value.whole)) : static_cast<double>(value.whole)));
  }
  return whole(is_float(from) ? saturate(to, value.real) : wrap(to, raw(value.whole)));
}

Scalar bits_scalar(DType from, DType to, Scalar value) { return decode(to, encode(from, value)); }

Scalar apply_scalar(Op op, DType dtype, std::span<const Scalar> operands) {
  Scalar a = operands[0];
  Scalar b = operands.size() > 1 ? operands[1] : Scalar{.whole = 0};
  Scalar c = operands.size() > 2 ? operands[2] : Scalar{.whole = 0};
  switch (op) {
    case Op::is_nan:
      return whole(std::isnan(a.real));
    case Op::equal:
      return whole(is_equal(dtype, a, b));
    case Op::less:
      return whole(is_less(dtype, a, b));
    case Op::less_equal:
      return whole(is_less(dtype, a, b) || is_equal(dtype, a, b));
    case Op::select:
      return a.whole ? b : c;
    default:
      break;
  }
  if (!is_float(dtype)) return whole(wrap(dtype, apply_whole(op, dtype, a.whole, b.whole)));
  double second = operands.size() > 1 ? b.real : 0;
  double third = operands.size() > 2 ? c.real : 0;
  return real(round_to(dtype, apply_real(op, dtype, a.real, second, third)));
}

}  // namespace selkie::kir
