// The functions of vectors against double precision, in units in the last place.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/test_support.h"

namespace selkie::kernels {
namespace {

using namespace testing;

double exact(Function function, double x) {
  switch (function) {
    case Function::exp_of_negative:
      return std::exp(x);
    case Function::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Function::tanh:
      return std::tanh(x);
    case Function::relu:
      return std::max(x, 0.0);
  }
  return 0;
}

double units_off(float got, double want) {
  auto rounded = static_cast<float>(std::abs(want));
  double unit = static_cast<double>(std::nextafter(rounded, INFINITY)) - rounded;
  return std::abs(got - want) / unit;
}

// Every `step`-th float of one sign, from zero to infinity.
std::vector<float> floats(uint32_t sign, uint32_t step) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x7f800000; bits += step) {
    uint32_t both = bits | sign;
    float value;
    std::memcpy(&value, &both, sizeof value);
    values.push_back(value);
  }
  return values;
}

void check(const KernelTable& table, Function function, uint32_t sign) {
  std::vector<float> from = floats(sign, 1009);
  std::vector<float> to(from.size());
  table.map(function, from.data(), static_cast<int64_t>(from.size()), to.data());
  double worst = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    double want = exact(function, from[i]);
    if (std::abs(want) < std::numeric_limits<float>::min()) {
      ASSERT_LE(std::abs(to[i]), std::numeric_limits<float>::min()) << from[i];
      continue;
    }
    double off = units_off(to[i], want);
    ASSERT_LE(off, 4) << table.name << " function " << static_cast<int>(function) << " of " << from[i];
    worst = std::max(worst, off);
  }
  ::testing::Test::RecordProperty(
      fmt::format("{}_{}_{}", table.name, static_cast<int>(function), sign ? "minus" : "plus"),
      fmt::format("{:.2f}", worst));
}

TEST(Map, WithinFourUnitsInTheLastPlace) {
  for (const KernelTable* table : tested_tables()) {
    check(*table, Function::exp_of_negative, 0x80000000);
    for (Function function : {Function::sigmoid, Function::tanh, Function::relu})
      for (uint32_t sign : {0u, 0x80000000u}) check(*table, function, sign);
  }
}

TEST(Map, SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto of = [](const KernelTable& table, Function function, float x) {
    float y = -7;
    table.map(function, &x, 1, &y);
    return y;
  };
  for (const KernelTable* table : tested_tables()) {
    EXPECT_EQ(of(*table, Function::exp_of_negative, 0), 1);
    EXPECT_EQ(of(*table, Function::exp_of_negative, -infinity), 0);
    EXPECT_EQ(of(*table, Function::sigmoid, infinity), 1);
    EXPECT_EQ(of(*table, Function::sigmoid, -infinity), 0);
    EXPECT_EQ(of(*table, Function::tanh, infinity), 1);
    EXPECT_EQ(of(*table, Function::tanh, -infinity), -1);
    for (Function function : {Function::exp_of_negative, Function::sigmoid, Function::tanh, Function::relu})
      EXPECT_TRUE(std::isnan(of(*table, function, nan))) << table->name << static_cast<int>(function);
  }
}

TEST(Map, EveryCount) {
  Random random(1);
  for (const KernelTable* table : tested_tables()) {
    for (int64_t count = 0; count <= 40; ++count) {
      Guarded from(count, random);
      Guarded to(count);
      table->map(Function::tanh, from.data(), count, to.data());
      for (int64_t i = 0; i < count; ++i) ASSERT_NEAR(to[i], std::tanh(from[i]), 1e-6);
    }
  }
}

}  // namespace
}  // namespace selkie::kernels
