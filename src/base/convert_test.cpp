// Wide values and back, and elements of less than a byte.
#include "base/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace selkie {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(SubByte, LowBitsComeFirst) {
  EXPECT_EQ(pack_sub_byte(narrow<int64_t>({1, 2, 3}, DType::u4, {3})), bytes({0x21, 0x03}));
  EXPECT_EQ(pack_sub_byte(narrow<int64_t>({-1, 7, -8}, DType::i4, {3})), bytes({0x7f, 0x08}));
  EXPECT_EQ(pack_sub_byte(narrow<int64_t>({0, 1, 2, 3, 1}, DType::u2, {5})), bytes({0xe4, 0x01}));
  EXPECT_EQ(pack_sub_byte(narrow<double>({0.5, -6}, DType::f4e2m1, {2})), bytes({0xf1}));
}

TEST(SubByte, EveryByteUnpacksAndPacksToItself) {
  for (DType dtype : {DType::u4, DType::i4, DType::u2, DType::i2, DType::f4e2m1}) {
    int64_t per_byte = 8 / info(dtype).bits;
    for (int code = 0; code < 256; ++code) {
      std::vector<std::byte> packed = bytes({code});
      Tensor t = unpack_sub_byte(dtype, {per_byte}, packed.data(), 1);
      EXPECT_EQ(pack_sub_byte(t), packed) << name(dtype) << " byte " << code;
    }
  }
}

TEST(SubByte, SignsAreExtended) {
  std::vector<std::byte> packed = bytes({0x8f, 0x07});
  EXPECT_EQ(widen<int64_t>(unpack_sub_byte(DType::i4, {3}, packed.data(), 2)), (std::vector<int64_t>{-1, -8, 7}));
  EXPECT_EQ(widen<int64_t>(unpack_sub_byte(DType::i2, {4}, packed.data(), 1)), (std::vector<int64_t>{-1, -1, 0, -2}));
}

TEST(SubByte, TooFewBytesAreAnError) {
  std::vector<std::byte> packed = bytes({1});
  EXPECT_THROW(unpack_sub_byte(DType::u4, {3}, packed.data(), 1), Error);
  EXPECT_NO_THROW(unpack_sub_byte(DType::u2, {4}, packed.data(), 1));
  EXPECT_EQ(unpack_sub_byte(DType::u2, {0}, packed.data(), 0).count(), 0);
}

TEST(Convert, NumbersOutOfRangeClampOrWrap) {
  Tensor wild = narrow<double>({NAN, 1e30, -1e30, -0.9}, DType::f64, {4});
  EXPECT_EQ(widen<int64_t>(wild),
            (std::vector<int64_t>{0, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 0}));
  EXPECT_EQ(widen<int64_t>(narrow<int64_t>({300, -1, 128}, DType::i8, {3})), (std::vector<int64_t>{44, -1, -128}));
  EXPECT_EQ(widen<int64_t>(narrow<int64_t>({17, -1}, DType::u4, {2})), (std::vector<int64_t>{1, 15}));
  EXPECT_EQ(widen<int64_t>(narrow<int64_t>({9}, DType::i4, {1})), (std::vector<int64_t>{-7}));
}

TEST(Convert, EveryNumericDTypeHoldsZeroAndOne) {
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.dtype == DType::str) continue;
    EXPECT_EQ(widen<double>(narrow<double>({1}, row.dtype, {1})), std::vector<double>{1}) << row.name;
    if (row.dtype != DType::f8e8m0)
      EXPECT_EQ(widen<double>(Tensor(row.dtype, {1})), std::vector<double>{0}) << row.name;
    EXPECT_EQ(narrow<double>(std::vector<double>{}, row.dtype, {0, 3}).count(), 0) << row.name;
  }
}

TEST(Convert, StringsAndNumbersDoNotMix) {
  EXPECT_THROW(widen<double>(Tensor(DType::str, {1})), Error);
  EXPECT_THROW(widen<std::string>(Tensor(DType::f32, {1})), Error);
  EXPECT_THROW(narrow<double>({1}, DType::str, {1}), Error);
  EXPECT_THROW(narrow<std::string>({"a"}, DType::f32, {1}), Error);
  EXPECT_THROW(ints_of(Tensor(DType::f32, {1})), Error);
  EXPECT_THROW(int_of(Tensor(DType::i64, {2})), Error);
}

}  // namespace
}  // namespace selkie
