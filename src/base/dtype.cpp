#include "base/dtype.h"

#include <array>

#include "base/error.h"

namespace selkie {
namespace {

using enum DTypeClass;
constexpr std::array<DTypeInfo, 26> table{{
    {DType::f32, "f32", floating, 32},
    {DType::u8, "u8", unsigned_integer, 8},
    {DType::i8, "i8", signed_integer, 8},
    {DType::u16, "u16", unsigned_integer, 16},
    {DType::i16, "i16", signed_integer, 16},
    {DType::i32, "i32", signed_integer, 32},
    {DType::i64, "i64", signed_integer, 64},
    {DType::str, "str", string, 0},
    {DType::boolean, "bool", DTypeClass::boolean, 8},
    {DType::f16, "f16", floating, 16},
    {DType::f64, "f64", floating, 64},
    {DType::u32, "u32", unsigned_integer, 32},
    {DType::u64, "u64", unsigned_integer, 64},
    {DType::c64, "c64", complex, 64},
    {DType::c128, "c128", complex, 128},
    {DType::bf16, "bf16", floating, 16},
    {DType::f8e4m3fn, "f8e4m3fn", floating, 8},
    {DType::f8e4m3fnuz, "f8e4m3fnuz", floating, 8},
    {DType::f8e5m2, "f8e5m2", floating, 8},
    {DType::f8e5m2fnuz, "f8e5m2fnuz", floating, 8},
    {DType::u4, "u4", unsigned_integer, 4},
    {DType::i4, "i4", signed_integer, 4},
    {DType::f4e2m1, "f4e2m1", floating, 4},
    {DType::f8e8m0, "f8e8m0", floating, 8},
    {DType::u2, "u2", unsigned_integer, 2},
    {DType::i2, "i2", signed_integer, 2},
}};

}  // namespace

std::span<const DTypeInfo> all_dtypes() { return table; }

const DTypeInfo& info(DType dtype) {
  size_t index = static_cast<size_t>(dtype) - 1;
  CHECK(index < table.size(), "dtype {}", static_cast<int>(dtype));
  return table[index];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& row : table)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_from_onnx(int64_t code) {
  if (code < 1 || code > static_cast<int64_t>(table.size())) return std::nullopt;
  return static_cast<DType>(code);
}

size_t element_size(DType dtype) {
  const DTypeInfo& row = info(dtype);
  if (row.cls == string) return 0;
  return row.bits < 8 ? 1 : row.bits / 8;
}

}  // namespace selkie
