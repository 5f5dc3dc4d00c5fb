// Reading tensors of any dtype into a few wide types, and writing them back.
//
// Reference code is written once per wide type (double, int64_t, uint64_t, complex, string) rather than once per dtype:
// every narrower dtype is exact in its wide type, so one rounding happens, at the end.
#pragma once

#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "base/float_formats.h"
#include "base/tensor.h"

namespace selkie {

// All elements, converted. T is one of float, double, int64_t, uint64_t, std::complex<double>, bool-like uint8_t or
// std::string. Number to number converts as C++ does; strings only to std::string.
template <class T>
std::vector<T> widen(const Tensor& tensor);

// A tensor of `dtype` from wide values. Integers wrap, floats round to nearest even; narrow floats saturate.
template <class T>
Tensor narrow(std::span<const T> values, DType dtype, Dims dims);
template <class T>
Tensor narrow(const std::vector<T>& values, DType dtype, Dims dims) {
  return narrow<T>(std::span<const T>(values), dtype, std::move(dims));
}

template <class T>
struct TypeTag {
  using type = T;
};

// Calls `f(TypeTag<W>{})` with the wide type of a dtype: double, int64_t, uint64_t (also bool), complex or string.
template <class F>
decltype(auto) dispatch_wide(DType dtype, F&& f) {
  switch (info(dtype).cls) {
    case DTypeClass::floating:
      return f(TypeTag<double>{});
    case DTypeClass::signed_integer:
      return f(TypeTag<int64_t>{});
    case DTypeClass::complex:
      return f(TypeTag<std::complex<double>>{});
    case DTypeClass::string:
      return f(TypeTag<std::string>{});
    default:
      return f(TypeTag<uint64_t>{});
  }
}

// The same for dtypes that are numbers; others are an error of the caller's.
template <class F>
decltype(auto) dispatch_number(DType dtype, F&& f) {
  switch (info(dtype).cls) {
    case DTypeClass::floating:
      return f(TypeTag<double>{});
    case DTypeClass::signed_integer:
      return f(TypeTag<int64_t>{});
    case DTypeClass::unsigned_integer:
    case DTypeClass::boolean:
      return f(TypeTag<uint64_t>{});
    default:
      fail("elements of type {} are not numbers here", name(dtype));
  }
}

struct Bytes16 {
  uint64_t words[2];
};

// Calls `f` with a type of the dtype's size, for operators that only move elements.
template <class F>
decltype(auto) dispatch_storage(DType dtype, F&& f) {
  if (dtype == DType::str) return f(TypeTag<std::string>{});
  switch (element_size(dtype)) {
    case 1:
      return f(TypeTag<uint8_t>{});
    case 2:
      return f(TypeTag<uint16_t>{});
    case 4:
      return f(TypeTag<uint32_t>{});
    case 8:
      return f(TypeTag<uint64_t>{});
    default:
      return f(TypeTag<Bytes16>{});
  }
}

// Small tensors of integers as int64_t, e.g. axes and shapes.
std::vector<int64_t> ints_of(const Tensor& tensor);
// The one element of a tensor that must have exactly one.
int64_t int_of(const Tensor& tensor);
double double_of(const Tensor& tensor);

// Elements of less than a byte, packed low bits first as in ONNX files.
Tensor unpack_sub_byte(DType dtype, Dims dims, const std::byte* packed, size_t size);
std::vector<std::byte> pack_sub_byte(const Tensor& tensor);

}  // namespace selkie
