#include "runtime/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace selkie::runtime {
namespace {

TEST(Arena, TensorsOfDifferentTimesShareAddresses) {
  std::vector<Lifetime> tensors{{640, 0, 1}, {640, 2, 3}, {64, 1, 2}};
  ArenaPlan plan = plan_arena(tensors);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.bytes, 704);
}

TEST(Arena, TensorsInUseTogetherNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> tensors;
    for (size_t i = 0; i < 1 + random() % 40; ++i) {
      uint32_t first = random() % 50;
      tensors.push_back({static_cast<int64_t>(random() % 5000), first, first + static_cast<uint32_t>(random() % 10)});
    }
    ArenaPlan plan = plan_arena(tensors);
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 64, 0);
      EXPECT_LE(plan.offsets[i] + tensors[i].bytes, plan.bytes);
      for (size_t j = 0; j < i; ++j) {
        bool together = tensors[i].first <= tensors[j].last && tensors[j].first <= tensors[i].last;
        bool apart = plan.offsets[i] + tensors[i].bytes <= plan.offsets[j] ||
                     plan.offsets[j] + tensors[j].bytes <= plan.offsets[i];
        EXPECT_TRUE(!together || apart);
      }
    }
  }
}

}  // namespace
}  // namespace selkie::runtime
