// Narrow floats: every code of every format, and roundings against values from ml_dtypes.
#include "base/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace selkie {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr DType narrow_floats[] = {DType::f16,    DType::bf16,       DType::f8e4m3fn, DType::f8e4m3fnuz,
                                   DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1,   DType::f8e8m0};

uint32_t code_count(DType dtype) { return 1u << info(dtype).bits; }

TEST(FloatFormats, EveryNumberComesBackAsItsCode) {
  for (DType dtype : narrow_floats) {
    for (uint32_t code = 0; code < code_count(dtype); ++code) {
      double value = decode_float(dtype, static_cast<uint16_t>(code));
      for (Overflow overflow : {Overflow::saturate, Overflow::special}) {
        if (std::isinf(value) && overflow == Overflow::saturate) continue;
        uint16_t back = encode_float(dtype, value, overflow);
        if (std::isnan(value))
          EXPECT_TRUE(std::isnan(decode_float(dtype, back))) << name(dtype) << " code " << code;
        else
          EXPECT_EQ(back, code) << name(dtype) << " value " << value;
      }
    }
  }
}

TEST(FloatFormats, PositiveCodesAreInTheOrderOfTheirValues) {
  for (DType dtype : narrow_floats) {
    uint32_t end = dtype == DType::f8e8m0 ? 255 : code_count(dtype) / 2;
    double last = -1;
    for (uint32_t code = 0; code < end; ++code) {
      double value = decode_float(dtype, static_cast<uint16_t>(code));
      if (std::isnan(value)) break;
      EXPECT_GT(value, last) << name(dtype) << " code " << code;
      last = value;
    }
  }
}

// A value between two neighbours goes to the nearer one.
TEST(FloatFormats, RoundsToTheNearestEverywhere) {
  for (DType dtype : narrow_floats) {
    if (dtype == DType::f8e8m0) continue;
    for (uint16_t code = 0; code + 1u < code_count(dtype) / 2; ++code) {
      double low = decode_float(dtype, code);
      double high = decode_float(dtype, static_cast<uint16_t>(code + 1));
      if (!std::isfinite(low) || !std::isfinite(high)) break;
      double middle = low + (high - low) / 2;
      uint16_t even = code % 2 == 0 ? code : static_cast<uint16_t>(code + 1);
      EXPECT_EQ(encode_float(dtype, middle), even) << name(dtype) << " code " << code;
      EXPECT_EQ(encode_float(dtype, std::nextafter(middle, low)), code) << name(dtype) << " code " << code;
      EXPECT_EQ(encode_float(dtype, std::nextafter(middle, high)), code + 1) << name(dtype) << " code " << code;
    }
  }
}

struct Row {
  double value;
  uint16_t code;
};

// Made with ml_dtypes 0.6: halfway cases at both ends and in the middle, and overflow without saturation.
const std::pair<DType, std::vector<Row>> ml_dtypes_table[] = {
    {DType::f16,
     {{0x1p-25, 0x0},
      {0x1.000002p-25, 0x1},
      {0x1.8p-24, 0x2},
      {0x1.4p-23, 0x2},
      {0x1.802p+0, 0x3e00},
      {0x1.806p+0, 0x3e02},
      {-0x1.802p+0, 0xbe00},
      {0x1.802002p+0, 0x3e01},
      {0x1.ffap+15, 0x7bfe},
      {0x1.ffcp+15, 0x7bff},
      {0x1.ffep+15, 0x7c00},
      {0x1.ffdffep+15, 0x7bff},
      {-0x1p+16, 0xfc00},
      {0x1.78287f49c4a1dp+129, 0x7c00},
      {inf, 0x7c00},
      {-inf, 0xfc00},
      {-0.0, 0x8000},
      {-0x1p-25, 0x8000}}},
    {DType::bf16,
     {{0x1p-134, 0x0},
      {0x1.0002p-134, 0x1},
      {0x1.8p-133, 0x2},
      {0x1.4p-132, 0x2},
      {0x1.81p+0, 0x3fc0},
      {0x1.83p+0, 0x3fc2},
      {-0x1.81p+0, 0xbfc0},
      {0x1.810002p+0, 0x3fc1},
      {0x1.fdp+127, 0x7f7e},
      {0x1.fep+127, 0x7f7f},
      {0x1.ffp+127, 0x7f80},
      {0x1.fefffep+127, 0x7f7f},
      {-0x1p+128, 0xff80},
      {0x1.78287f49c4a1dp+129, 0x7f80},
      {inf, 0x7f80},
      {-inf, 0xff80},
      {-0.0, 0x8000},
      {-0x1p-134, 0x8000}}},
    {DType::f8e4m3fn,
     {{0x1p-10, 0x0},
      {0x1.000002p-10, 0x1},
      {0x1.8p-9, 0x2},
      {0x1.4p-8, 0x2},
      {0x1.fp+0, 0x40},
      {0x1.1p+1, 0x40},
      {-0x1.fp+0, 0xc0},
      {0x1.f00002p+0, 0x40},
      {0x1.bp+8, 0x7e},
      {0x1.cp+8, 0x7e},
      {0x1.dp+8, 0x7e},
      {0x1.cffffep+8, 0x7e},
      {-0x1.ep+8, 0xff},
      {0x1.2a05f2p+33, 0x7f},
      {inf, 0x7f},
      {-inf, 0xff},
      {-0.0, 0x80},
      {-0x1p-10, 0x80}}},
    {DType::f8e4m3fnuz,
     {{0x1p-11, 0x0},
      {0x1.000002p-11, 0x1},
      {0x1.8p-10, 0x2},
      {0x1.4p-9, 0x2},
      {0x1.1p+0, 0x40},
      {0x1.3p+0, 0x42},
      {-0x1.1p+0, 0xc0},
      {0x1.100002p+0, 0x41},
      {0x1.dp+7, 0x7e},
      {0x1.ep+7, 0x7f},
      {0x1.fp+7, 0x80},
      {0x1.effffep+7, 0x7f},
      {-0x1p+8, 0x80},
      {0x1.2a05f2p+33, 0x80},
      {inf, 0x80},
      {-inf, 0x80},
      {-0.0, 0x0},
      {-0x1p-11, 0x0}}},
    {DType::f8e5m2,
     {{0x1p-17, 0x0},
      {0x1.000002p-17, 0x1},
      {0x1.8p-16, 0x2},
      {0x1.4p-15, 0x2},
      {0x1.ap+0, 0x3e},
      {0x1.ep+0, 0x40},
      {-0x1.ap+0, 0xbe},
      {0x1.a00002p+0, 0x3f},
      {0x1.ap+15, 0x7a},
      {0x1.cp+15, 0x7b},
      {0x1.ep+15, 0x7c},
      {0x1.dffffep+15, 0x7b},
      {-0x1p+16, 0xfc},
      {0x1.2a05f2p+33, 0x7c},
      {inf, 0x7c},
      {-inf, 0xfc},
      {-0.0, 0x80},
      {-0x1p-17, 0x80}}},
    {DType::f8e5m2fnuz,
     {{0x1p-18, 0x0},
      {0x1.000002p-18, 0x1},
      {0x1.8p-17, 0x2},
      {0x1.4p-16, 0x2},
      {0x1.2p+0, 0x40},
      {0x1.6p+0, 0x42},
      {-0x1.2p+0, 0xc0},
      {0x1.200002p+0, 0x41},
      {0x1.ap+15, 0x7e},
      {0x1.cp+15, 0x7f},
      {0x1.ep+15, 0x80},
      {0x1.dffffep+15, 0x7f},
      {-0x1p+16, 0x80},
      {0x1.2a05f2p+33, 0x80},
      {inf, 0x80},
      {-inf, 0x80},
      {-0.0, 0x0},
      {-0x1p-18, 0x0}}},
    {DType::f4e2m1,
     {{0x1p-2, 0x0},
      {0x1.000002p-2, 0x1},
      {0x1.8p-1, 0x2},
      {0x1.4p+0, 0x2},
      {0x1.4p+1, 0x4},
      {0x1.cp+1, 0x6},
      {-0x1.4p+1, 0xc},
      {0x1.400002p+1, 0x5},
      {0x1.4p+2, 0x6},
      {0x1.8p+2, 0x7},
      {0x1.cp+2, 0x7},
      {0x1.bffffep+2, 0x7},
      {-0x1p+3, 0xf},
      {0x1.2a05f2p+33, 0x7},
      {inf, 0x7},
      {-inf, 0xf},
      {-0.0, 0x8},
      {-0x1p-2, 0x8}}},
};

TEST(FloatFormats, AgreesWithMlDtypes) {
  for (const auto& [dtype, rows] : ml_dtypes_table)
    for (const Row& row : rows)
      EXPECT_EQ(encode_float(dtype, row.value, Overflow::special), row.code) << name(dtype) << " of " << row.value;
}

TEST(FloatFormats, SaturationStopsAtTheLargestNumber) {
  const std::pair<DType, uint16_t> largest[] = {{DType::f8e4m3fn, 0x7e}, {DType::f8e4m3fnuz, 0x7f},
                                                {DType::f8e5m2, 0x7b},   {DType::f8e5m2fnuz, 0x7f},
                                                {DType::f4e2m1, 0x7},    {DType::f8e8m0, 0xfe}};
  for (auto [dtype, code] : largest) {
    EXPECT_EQ(encode_float(dtype, inf), code) << name(dtype);
    EXPECT_EQ(encode_float(dtype, 1e300), code) << name(dtype);
    if (dtype != DType::f8e8m0) EXPECT_EQ(encode_float(dtype, -inf), code + code_count(dtype) / 2) << name(dtype);
  }
  EXPECT_EQ(encode_float(DType::f16, 1e300, Overflow::saturate), 0x7c00);
  EXPECT_EQ(encode_float(DType::bf16, -1e300, Overflow::saturate), 0xff80);
}

TEST(FloatFormats, PowersOfTwoRoundAsAsked) {
  EXPECT_EQ(encode_e8m0(1, Overflow::saturate, Rounding::nearest_even), 127);
  EXPECT_EQ(encode_e8m0(1.49, Overflow::saturate, Rounding::nearest_even), 127);
  EXPECT_EQ(encode_e8m0(1.5, Overflow::saturate, Rounding::nearest_even), 128);
  EXPECT_EQ(encode_e8m0(3, Overflow::saturate, Rounding::nearest_even), 129);
  EXPECT_EQ(encode_e8m0(1.01, Overflow::saturate, Rounding::up), 128);
  EXPECT_EQ(encode_e8m0(1.99, Overflow::saturate, Rounding::down), 127);
  EXPECT_EQ(encode_e8m0(0x1p-130, Overflow::saturate, Rounding::nearest_even), 0);
  EXPECT_EQ(encode_e8m0(0x1.8p127, Overflow::special, Rounding::nearest_even), 255);
  EXPECT_EQ(encode_e8m0(0x1.8p127, Overflow::saturate, Rounding::nearest_even), 254);
}

}  // namespace
}  // namespace selkie
