#include "kernels/subnormals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace selkie::kernels {
namespace {

using Limits = std::numeric_limits<float>;

TEST(Subnormals, AreFlushedAndNothingElseIs) {
  std::vector<float> kept{0, -0.0F, 1, -2.5F, Limits::min(), -Limits::min(), Limits::max(), -Limits::infinity()};
  EXPECT_FALSE(has_subnormals(kept));
  std::vector<float> values = kept;
  flush_subnormals(values);
  EXPECT_EQ(values, kept);
  EXPECT_TRUE(std::signbit(values[1]));
  // At every place of a vector, and beyond the last whole one.
  for (size_t count = 1; count < 70; ++count) {
    for (float tiny : {Limits::denorm_min(), -Limits::denorm_min(), std::nextafter(Limits::min(), 0.0F)}) {
      std::vector<float> some(count, 3);
      some[count - 1] = tiny;
      EXPECT_TRUE(has_subnormals(some));
      flush_subnormals(some);
      EXPECT_EQ(some[count - 1], 0);
      EXPECT_FALSE(has_subnormals(some));
    }
  }
  values = {Limits::quiet_NaN()};
  EXPECT_FALSE(has_subnormals(values));
  flush_subnormals(values);
  EXPECT_TRUE(std::isnan(values[0]));
}

}  // namespace
}  // namespace selkie::kernels
