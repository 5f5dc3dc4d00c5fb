#include "plan/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace selkie::plan {
namespace {

// Steps that each make a block, which the steps that come after them read.
OrderProblem graph(const std::vector<std::vector<size_t>>& reads, const std::vector<int64_t>& bytes) {
  OrderProblem p;
  for (size_t i = 0; i < reads.size(); ++i) {
    OrderProblem::Step step{.after = reads[i], .uses = reads[i]};
    step.uses.push_back(i);
    p.steps.push_back(std::move(step));
    p.blocks.push_back({.bytes = {bytes[i]}, .to_end = i + 1 == reads.size()});
  }
  return p;
}

bool is_possible(const OrderProblem& p, const std::vector<size_t>& order) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (size_t i = 0; i < p.steps.size(); ++i)
    for (size_t other : p.steps[i].after)
      if (place[other] > place[i]) return false;
  return true;
}

int64_t peak_of(const OrderProblem& p, const std::vector<size_t>& order) {
  std::vector<size_t> last(p.blocks.size(), 0);
  std::vector<size_t> first(p.blocks.size(), SIZE_MAX);
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t b : p.steps[order[i]].uses) {
      first[b] = std::min(first[b], i);
      last[b] = i;
    }
  int64_t peak = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    int64_t sum = 0;
    for (size_t b = 0; b < p.blocks.size(); ++b)
      if (first[b] != SIZE_MAX && (first[b] <= i || p.blocks[b].from_beginning) && (last[b] >= i || p.blocks[b].to_end))
        sum += p.blocks[b].bytes[0];
    peak = std::max(peak, sum);
  }
  return peak;
}

int64_t least_peak(const OrderProblem& p) {
  std::vector<size_t> order(p.steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t best = INT64_MAX;
  do {
    if (is_possible(p, order)) best = std::min(best, peak_of(p, order));
  } while (std::ranges::next_permutation(order).found);
  return best;
}

OrderProblem random_graph(std::mt19937& random, size_t steps) {
  std::vector<std::vector<size_t>> reads(steps);
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < steps; ++i) {
    for (size_t j = 0; j < i; ++j)
      if (random() % 3 == 0) reads[i].push_back(j);
    bytes.push_back(1 + static_cast<int64_t>(random() % 100));
  }
  OrderProblem p = graph(reads, bytes);
  for (auto& block : p.blocks) block.to_end |= random() % 8 == 0;
  // Some that are there before, and are read by some.
  for (size_t more = random() % 3; more > 0; --more) {
    p.blocks.push_back({.bytes = {static_cast<int64_t>(random() % 100)}, .from_beginning = true});
    for (auto& step : p.steps)
      if (random() % 3 == 0) step.uses.push_back(p.blocks.size() - 1);
  }
  return p;
}

// Large values that are soon made small are made one after the other.
TEST(Order, BranchesRunOneAfterTheOther) {
  OrderProblem p = graph({{}, {0}, {0}, {0}, {1}, {2}, {3}, {4, 5, 6}}, {10, 100, 100, 100, 1, 1, 1, 1});
  Order order = best_order(p);
  EXPECT_TRUE(is_possible(p, order.steps));
  EXPECT_EQ(order.plain[0], 310);
  EXPECT_EQ(order.peaks[0], 112);
  EXPECT_TRUE(order.is_exact);
}

TEST(Order, AChainStaysAsItIs) {
  OrderProblem p = graph({{}, {0}, {1}, {2}}, {1, 2, 3, 4});
  EXPECT_EQ(best_order(p).steps, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(Order, ALittleIsNotWorthIt) {
  OrderProblem p = graph({{}, {0}, {0}, {1}, {2}, {3, 4}}, {1000, 10, 10, 9, 9, 1});
  Order order = best_order(p);
  EXPECT_EQ(order.steps, (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(order.peaks, order.plain);
}

// An order that is better at the first sizes and worse at others is not taken.
TEST(Order, NoSizesGetWorse) {
  OrderProblem p = graph({{}, {0}, {0}, {0}, {1}, {2}, {3}, {4, 5, 6}}, {10, 100, 100, 100, 1, 1, 1, 1});
  for (size_t i = 0; i < p.blocks.size(); ++i) p.blocks[i].bytes.push_back(i == 0 ? 1000 : i <= 3 ? 1 : 100);
  Order order = best_order(p);
  EXPECT_EQ(order.peaks, order.plain);
}

TEST(Order, NothingIsOrdered) { EXPECT_TRUE(best_order({}).steps.empty()); }

TEST(Order, IsTheBestOfAllWhereItIsExact) {
  std::mt19937 random(2);
  int reordered = 0;
  for (int round = 0; round < 300; ++round) {
    OrderProblem p = random_graph(random, 2 + random() % 6);
    Order order = best_order(p);
    ASSERT_TRUE(is_possible(p, order.steps));
    std::vector<size_t> plain(p.steps.size());
    std::iota(plain.begin(), plain.end(), size_t{0});
    EXPECT_EQ(order.plain[0], peak_of(p, plain));
    EXPECT_EQ(order.peaks[0], peak_of(p, order.steps));
    EXPECT_TRUE(order.is_exact);
    int64_t least = least_peak(p);
    bool is_worth_it = static_cast<double>(least) <= 0.95 * static_cast<double>(order.plain[0]);
    EXPECT_EQ(order.peaks[0], is_worth_it ? least : order.plain[0]);
    if (is_worth_it) ++reordered;
  }
  EXPECT_GT(reordered, 20);
}

TEST(Order, ManyStepsAreOrderedInBoundedTime) {
  std::mt19937 random(4);
  OrderProblem p = random_graph(random, 300);
  Order order = best_order(p);
  EXPECT_TRUE(is_possible(p, order.steps));
  EXPECT_LE(order.peaks[0], order.plain[0]);
}

// Many that could come in any order: all that is known of a search that is given up is that it ends.
TEST(Order, ManyBranchesAreOrderedInBoundedTime) {
  std::vector<std::vector<size_t>> reads{{}};
  std::vector<int64_t> bytes{1};
  constexpr size_t branches = 900;
  std::vector<size_t> ends;
  for (size_t i = 0; i < branches; ++i) {
    reads.push_back({0});
    bytes.push_back(100);
  }
  for (size_t i = 0; i < branches; ++i) {
    reads.push_back({1 + i});
    bytes.push_back(1);
    ends.push_back(reads.size() - 1);
  }
  reads.push_back(ends);
  bytes.push_back(1);
  OrderProblem p = graph(reads, bytes);
  Order order = best_order(p);
  EXPECT_TRUE(is_possible(p, order.steps));
  EXPECT_LE(order.peaks[0], order.plain[0]);
}

}  // namespace
}  // namespace selkie::plan
