#include "runtime/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace selkie::runtime {
namespace {

struct Case {
  std::vector<Lifetime> lifetimes;
  std::vector<int64_t> bytes;
};

Case random_case(std::mt19937& random, size_t most_tensors, uint32_t instructions, uint32_t longest) {
  Case out;
  size_t count = 1 + random() % most_tensors;
  for (size_t i = 0; i < count; ++i) {
    uint32_t first = random() % instructions;
    out.lifetimes.push_back({.first = first, .last = first + static_cast<uint32_t>(random() % longest)});
    out.bytes.push_back(static_cast<int64_t>(random() % 5000) - 200);
    out.bytes.back() = std::max<int64_t>(out.bytes.back(), 0);
  }
  return out;
}

bool is_together(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

void expect_sound(const Case& given, const ArenaPlan& plan) {
  for (size_t i = 0; i < given.bytes.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % arena_alignment, 0);
    EXPECT_LE(plan.offsets[i] + given.bytes[i], plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      bool apart =
          plan.offsets[i] + given.bytes[i] <= plan.offsets[j] || plan.offsets[j] + given.bytes[j] <= plan.offsets[i];
      EXPECT_TRUE(!is_together(given.lifetimes[i], given.lifetimes[j]) || apart || given.bytes[i] == 0 ||
                  given.bytes[j] == 0);
    }
  }
  EXPECT_GE(plan.bytes, plan.bound.bytes);
}

// The least height of all: some best plan has each tensor on the ground or on top of another one, so that placing them
// by their offsets at the lowest free place, in every order, finds it.
int64_t least_height(const Case& given) {
  std::vector<size_t> order(given.bytes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(order.size());
    int64_t height = 0;
    for (size_t at = 0; at < order.size(); ++at) {
      size_t i = order[at];
      for (size_t before = 0; before < at; ++before)
        if (size_t j = order[before]; is_together(given.lifetimes[i], given.lifetimes[j]))
          offsets[i] = std::max(offsets[i], offsets[j] + aligned_bytes(given.bytes[j]));
      height = std::max(height, offsets[i] + aligned_bytes(given.bytes[i]));
    }
    best = std::min(best, height);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

TEST(Arena, TensorsOfDifferentTimesShareAddresses) {
  ArenaPlan plan = plan_arena(std::vector<Lifetime>{{0, 1}, {2, 3}, {1, 2}}, std::vector<int64_t>{640, 640, 64});
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.bytes, 704);
  EXPECT_EQ(plan.bound.bytes, 704);
  EXPECT_EQ(plan.bound.at, 1U);
}

TEST(Arena, NothingNeedsNothing) {
  ArenaPlan plan = plan_arena({}, {});
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(plan.bound.bytes, 0);
}

TEST(Arena, TensorsInUseTogetherNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    Case given = random_case(random, 60, 50, round % 4 == 0 ? 50 : 10);
    ArenaPlanner planner(given.lifetimes);
    expect_sound(given, planner.plan(given.bytes));
    // The same arrangement or another one, at other sizes.
    for (int64_t& b : given.bytes) b = static_cast<int64_t>(random() % 5000);
    expect_sound(given, planner.plan(given.bytes));
  }
}

// All are in use together with all others: more than are kept.
TEST(Arena, ManyNeighbours) {
  Case given;
  for (int i = 0; i < 300; ++i) {
    given.lifetimes.push_back({.first = 0, .last = static_cast<uint32_t>(i)});
    given.bytes.push_back(64 * (i % 7));
  }
  ArenaPlanner planner(given.lifetimes);
  ArenaPlan plan = planner.plan(given.bytes);
  expect_sound(given, plan);
  EXPECT_EQ(plan.bytes, plan.bound.bytes);
}

TEST(Arena, NearlyAsGoodAsTheBestOfAllPlans) {
  std::mt19937 random(11);
  int best = 0;
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    Case given = random_case(random, 7, 8, 5);
    int64_t found = plan_arena(given.lifetimes, given.bytes).bytes;
    int64_t least = least_height(given);
    EXPECT_GE(found, least);
    EXPECT_LE(static_cast<double>(found), 1.15 * static_cast<double>(least));
    if (found == least) ++best;
  }
  EXPECT_GE(best, rounds * 95 / 100);
}

TEST(Arena, AnArrangementThatIsBestAtAllSizesServesAllSizes) {
  // A chain, in which each is read by the next.
  std::vector<Lifetime> chain;
  for (uint32_t i = 0; i < 20; ++i) chain.push_back({.first = i, .last = i + 1});
  ArenaPlanner planner(chain);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < chain.size(); ++i) bytes.push_back(static_cast<int64_t>(random() % 100'000));
    ArenaPlan plan = planner.plan(bytes);
    EXPECT_EQ(plan.bytes, plan.bound.bytes);
    EXPECT_EQ(plan.searches, 0);
  }
}

// If it says so, it is so, whatever the sizes.
TEST(Arena, IsBestAtAllSizesIsTrue) {
  std::mt19937 random(5);
  int claimed = 0;
  for (int round = 0; round < 500; ++round) {
    Case given = random_case(random, 12, 12, 4);
    ArenaPlanner planner(given.lifetimes);
    planner.plan(given.bytes);
    if (!planner.is_best_at_all_sizes()) continue;
    ++claimed;
    for (int other = 0; other < 10; ++other) {
      for (int64_t& b : given.bytes) b = static_cast<int64_t>(random() % 100'000);
      ArenaPlan plan = planner.plan(given.bytes);
      EXPECT_EQ(plan.searches, 0);
      EXPECT_EQ(plan.bytes, plan.bound.bytes);
    }
  }
  EXPECT_GT(claimed, 20);
}

}  // namespace
}  // namespace selkie::runtime
