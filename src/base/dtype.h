// Element types of tensors: one row of facts each, in ONNX's numbering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace selkie {

// The enumerators' values are ONNX's TensorProto.DataType.
enum class DType : uint8_t {
  f32 = 1,
  u8,
  i8,
  u16,
  i16,
  i32,
  i64,
  str,
  boolean,
  f16,
  f64,
  u32,
  u64,
  c64,
  c128,
  bf16,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  u4,
  i4,
  f4e2m1,
  f8e8m0,
  u2,
  i2,
};

enum class DTypeClass : uint8_t { floating, signed_integer, unsigned_integer, boolean, complex, string };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as printed in the text form
  DTypeClass cls;
  uint8_t bits;  // of one element as stored in a file; 0 for strings
};

// All dtypes in the order of the enumeration.
std::span<const DTypeInfo> all_dtypes();
const DTypeInfo& info(DType dtype);
inline std::string_view name(DType dtype) { return info(dtype).name; }
std::optional<DType> dtype_from_name(std::string_view name);
std::optional<DType> dtype_from_onnx(int64_t code);

// Bytes of one element in memory. Types of less than a byte take one byte each there, and are packed only in files.
size_t element_size(DType dtype);
inline bool is_float(DType d) { return info(d).cls == DTypeClass::floating; }
inline bool is_signed_integer(DType d) { return info(d).cls == DTypeClass::signed_integer; }
inline bool is_unsigned_integer(DType d) { return info(d).cls == DTypeClass::unsigned_integer; }
inline bool is_integer(DType d) { return is_signed_integer(d) || is_unsigned_integer(d); }
inline bool is_complex(DType d) { return info(d).cls == DTypeClass::complex; }
inline bool is_sub_byte(DType d) { return info(d).bits != 0 && info(d).bits < 8; }

// A set of dtypes, as operator records declare them.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (DType d : dtypes) bits_ |= bit(d);
  }
  constexpr bool contains(DType d) const { return (bits_ & bit(d)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) { return DTypeSet(a.bits_ | b.bits_); }
  friend constexpr DTypeSet operator-(DTypeSet a, DTypeSet b) { return DTypeSet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(DTypeSet, DTypeSet) = default;

 private:
  constexpr explicit DTypeSet(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t bit(DType d) { return uint32_t{1} << static_cast<unsigned>(d); }
  uint32_t bits_ = 0;
};

// The sets that ONNX's type constraints are made of.
namespace dtypes {
inline constexpr DTypeSet f16_f32_f64{DType::f16, DType::f32, DType::f64};
inline constexpr DTypeSet floats = f16_f32_f64 | DTypeSet{DType::bf16};
inline constexpr DTypeSet float8{DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz};
inline constexpr DTypeSet signed_ints{DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr DTypeSet unsigned_ints{DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr DTypeSet ints = signed_ints | unsigned_ints;
inline constexpr DTypeSet small_ints{DType::u4, DType::i4, DType::u2, DType::i2};
inline constexpr DTypeSet boolean{DType::boolean};
inline constexpr DTypeSet string{DType::str};
inline constexpr DTypeSet complex{DType::c64, DType::c128};
inline constexpr DTypeSet indices{DType::i32, DType::i64};
inline constexpr DTypeSet i64{DType::i64};
inline constexpr DTypeSet f32{DType::f32};
inline constexpr DTypeSet numeric = floats | ints;
inline constexpr DTypeSet all =
    numeric | float8 | small_ints | boolean | string | complex | DTypeSet{DType::f4e2m1, DType::f8e8m0};
}  // namespace dtypes

}  // namespace selkie
