#include "base/convert.h"

#include <cmath>
#include <limits>

namespace selkie {
namespace {

template <class To, class From>
To convert(const From& value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, std::complex<double>>) {
    if constexpr (std::is_same_v<From, std::complex<float>>)
      return {value.real(), value.imag()};
    else
      return {static_cast<double>(value), 0.0};
  } else if constexpr (std::is_same_v<From, std::complex<float>> || std::is_same_v<From, std::complex<double>>) {
    return convert<To>(value.real());
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // C++ leaves out-of-range conversions undefined; here they clamp, and NaN becomes 0.
    if (std::isnan(value)) return 0;
    if (value >= std::ldexp(1.0, std::numeric_limits<To>::digits)) return std::numeric_limits<To>::max();
    if (value <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
std::vector<To> copy_as(const Tensor& tensor) {
  std::vector<To> out(static_cast<size_t>(tensor.count()));
  const From* in = tensor.data<From>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = convert<To>(in[i]);
  return out;
}

template <class To, class Code>
std::vector<To> decode_as(const Tensor& tensor) {
  std::vector<To> out(static_cast<size_t>(tensor.count()));
  const Code* in = tensor.data<Code>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = convert<To>(decode_float(tensor.dtype(), in[i]));
  return out;
}

template <class Element, class From>
void store_as(std::span<const From> values, Tensor& out) {
  Element* data = out.mutable_data<Element>();
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_same_v<Element, std::complex<float>>) {
      std::complex<double> z = convert<std::complex<double>>(values[i]);
      data[i] = {static_cast<float>(z.real()), static_cast<float>(z.imag())};
    } else if constexpr (std::is_same_v<Element, bool>) {
      data[i] = values[i] != From{};
    } else if constexpr (std::is_integral_v<Element> && std::is_floating_point_v<From>) {
      data[i] = static_cast<Element>(convert<int64_t>(values[i]));
    } else {
      data[i] = convert<Element>(values[i]);
    }
  }
}

template <class Code, class From>
void encode_as(std::span<const From> values, Tensor& out) {
  Code* data = out.mutable_data<Code>();
  for (size_t i = 0; i < values.size(); ++i)
    data[i] = static_cast<Code>(encode_float(out.dtype(), convert<double>(values[i])));
}

// Keeps the low `bits` of an integer, as the signed or unsigned value that they stand for.
template <class Element, class From>
void wrap_as(std::span<const From> values, Tensor& out) {
  int bits = info(out.dtype()).bits;
  Element* data = out.mutable_data<Element>();
  for (size_t i = 0; i < values.size(); ++i) {
    auto low = static_cast<uint64_t>(convert<int64_t>(values[i])) & ((1u << bits) - 1);
    bool negative = std::is_signed_v<Element> && (low >> (bits - 1)) != 0;
    data[i] = static_cast<Element>(static_cast<int64_t>(low) - (negative ? (1 << bits) : 0));
  }
}

}  // namespace

template <class T>
std::vector<T> widen(const Tensor& tensor) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (tensor.dtype() != DType::str) fail("a tensor of {} is not one of strings", name(tensor.dtype()));
    return {tensor.values<std::string>().begin(), tensor.values<std::string>().end()};
  } else {
    switch (tensor.dtype()) {
      case DType::f32:
        return copy_as<T, float>(tensor);
      case DType::f64:
        return copy_as<T, double>(tensor);
      case DType::i8:
      case DType::i4:
      case DType::i2:
        return copy_as<T, int8_t>(tensor);
      case DType::u8:
      case DType::u4:
      case DType::u2:
        return copy_as<T, uint8_t>(tensor);
      case DType::i16:
        return copy_as<T, int16_t>(tensor);
      case DType::u16:
        return copy_as<T, uint16_t>(tensor);
      case DType::i32:
        return copy_as<T, int32_t>(tensor);
      case DType::u32:
        return copy_as<T, uint32_t>(tensor);
      case DType::i64:
        return copy_as<T, int64_t>(tensor);
      case DType::u64:
        return copy_as<T, uint64_t>(tensor);
      case DType::boolean:
        return copy_as<T, uint8_t>(tensor);
      case DType::c64:
        return copy_as<T, std::complex<float>>(tensor);
      case DType::c128:
        return copy_as<T, std::complex<double>>(tensor);
      case DType::f16:
      case DType::bf16:
        return decode_as<T, uint16_t>(tensor);
      case DType::str:
        fail("a tensor of strings is not one of numbers");
      default:
        return decode_as<T, uint8_t>(tensor);
    }
  }
}

template <class T>
Tensor narrow(std::span<const T> values, DType dtype, Dims dims) {
  Tensor out(dtype, std::move(dims));
  CHECK(static_cast<int64_t>(values.size()) == out.count(), "{} values for {}", values.size(), to_string(out.dims()));
  if constexpr (std::is_same_v<T, std::string>) {
    if (dtype != DType::str) fail("strings cannot be stored as {}", name(dtype));
    std::copy(values.begin(), values.end(), out.mutable_data<std::string>());
  } else {
    switch (dtype) {
      case DType::f32:
        store_as<float>(values, out);
        break;
      case DType::f64:
        store_as<double>(values, out);
        break;
      case DType::i8:
        store_as<int8_t>(values, out);
        break;
      case DType::u8:
        store_as<uint8_t>(values, out);
        break;
      case DType::i16:
        store_as<int16_t>(values, out);
        break;
      case DType::u16:
        store_as<uint16_t>(values, out);
        break;
      case DType::i32:
        store_as<int32_t>(values, out);
        break;
      case DType::u32:
        store_as<uint32_t>(values, out);
        break;
      case DType::i64:
        store_as<int64_t>(values, out);
        break;
      case DType::u64:
        store_as<uint64_t>(values, out);
        break;
      case DType::i4:
      case DType::i2:
        wrap_as<int8_t>(values, out);
        break;
      case DType::u4:
      case DType::u2:
        wrap_as<uint8_t>(values, out);
        break;
      case DType::boolean:
        store_as<bool>(values, out);
        break;
      case DType::c64:
        store_as<std::complex<float>>(values, out);
        break;
      case DType::c128:
        store_as<std::complex<double>>(values, out);
        break;
      case DType::f16:
      case DType::bf16:
        encode_as<uint16_t>(values, out);
        break;
      case DType::str:
        fail("numbers cannot be stored as strings");
      default:
        encode_as<uint8_t>(values, out);
        break;
    }
  }
  return out;
}

#define SELKIE_WIDE(T)                             \
  template std::vector<T> widen<T>(const Tensor&); \
  template Tensor narrow<T>(std::span<const T>, DType, Dims);
SELKIE_WIDE(float)
SELKIE_WIDE(double)
SELKIE_WIDE(int64_t)
SELKIE_WIDE(uint64_t)
SELKIE_WIDE(uint8_t)
SELKIE_WIDE(std::complex<double>)
SELKIE_WIDE(std::string)
#undef SELKIE_WIDE

std::vector<int64_t> ints_of(const Tensor& tensor) {
  if (!is_integer(tensor.dtype())) fail("integers are needed, but the tensor is of {}", name(tensor.dtype()));
  return widen<int64_t>(tensor);
}

int64_t int_of(const Tensor& tensor) {
  if (tensor.count() != 1) fail("one element is needed, but the shape is {}", to_string(tensor.dims()));
  return widen<int64_t>(tensor)[0];
}

double double_of(const Tensor& tensor) {
  if (tensor.count() != 1) fail("one element is needed, but the shape is {}", to_string(tensor.dims()));
  return widen<double>(tensor)[0];
}

Tensor unpack_sub_byte(DType dtype, Dims dims, const std::byte* packed, size_t size) {
  unsigned bits = info(dtype).bits;
  unsigned per_byte = 8 / bits;
  CHECK(is_sub_byte(dtype));
  int64_t count = element_count(dims);
  if ((static_cast<size_t>(count) + per_byte - 1) / per_byte > size)
    fail("{} packed bytes are too few for {}{}", size, name(dtype), to_string(dims));
  Tensor out(dtype, std::move(dims));
  auto* data = out.mutable_data<uint8_t>();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    unsigned code = (static_cast<unsigned>(packed[i / per_byte]) >> (i % per_byte * bits)) & ((1u << bits) - 1);
    bool negative = is_signed_integer(dtype) && (code >> (bits - 1)) != 0;
    data[i] = static_cast<uint8_t>(negative ? code | (0xffu << bits) : code);
  }
  return out;
}

std::vector<std::byte> pack_sub_byte(const Tensor& tensor) {
  unsigned bits = info(tensor.dtype()).bits;
  unsigned per_byte = 8 / bits;
  std::vector<std::byte> packed((static_cast<size_t>(tensor.count()) + per_byte - 1) / per_byte);
  const auto* data = tensor.data<uint8_t>();
  for (size_t i = 0; i < static_cast<size_t>(tensor.count()); ++i)
    packed[i / per_byte] |= static_cast<std::byte>((data[i] & ((1u << bits) - 1)) << (i % per_byte * bits));
  return packed;
}

}  // namespace selkie
