#include "runtime/late_weights.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace selkie::runtime {
namespace {

TEST(LateWeights, AreBroughtInOnceAndWhenAsked) {
  LateWeights weights(3);
  int parts = 0;
  weights.add(1, {[&] { parts += 1; }, [&] { parts += 10; }});
  weights.ensure(0);
  EXPECT_EQ(parts, 0);
  EXPECT_EQ(weights.missing(), 1U);
  weights.ensure(1);
  weights.ensure(1);
  EXPECT_EQ(parts, 11);
  EXPECT_EQ(weights.missing(), 0U);
}

TEST(LateWeights, WhatFailsIsTriedAgain) {
  LateWeights weights(1);
  bool fails = true;
  weights.add(0, {[&] {
                if (fails) throw std::runtime_error("no memory");
              }});
  EXPECT_THROW(weights.ensure(0), std::runtime_error);
  EXPECT_EQ(weights.missing(), 1U);
  fails = false;
  weights.ensure_all();
  EXPECT_EQ(weights.missing(), 0U);
}

}  // namespace
}  // namespace selkie::runtime
