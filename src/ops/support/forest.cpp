#include "ops/support/forest.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace selkie::ops {

TreeTest tree_test(std::string_view onnx_name) {
  constexpr std::string_view names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  auto at = std::find(std::begin(names), std::end(names), onnx_name);
  if (at == std::end(names)) fail("attribute 'nodes_modes' has \"{}\", which does not exist", onnx_name);
  return static_cast<TreeTest>(at - std::begin(names));
}

namespace {

bool passes(const TreeNode& node, double x) {
  if (std::isnan(x)) return node.missing_is_true;
  switch (node.test) {
    case TreeTest::less_equal:
      return x <= node.split;
    case TreeTest::less:
      return x < node.split;
    case TreeTest::greater_equal:
      return x >= node.split;
    case TreeTest::greater:
      return x > node.split;
    case TreeTest::equal:
      return x == node.split;
    case TreeTest::not_equal:
      return x != node.split;
    case TreeTest::member:
      return std::find(node.members.begin(), node.members.end(), x) != node.members.end();
  }
  return false;
}

}  // namespace

void Forest::check(int64_t features, int64_t targets) const {
  auto check_child = [&](int64_t child) {
    auto size = static_cast<int64_t>(child < 0 ? leaves.size() : nodes.size());
    if ((child < 0 ? ~child : child) >= size)
      fail("a tree refers to {} {}, but there are {}", child < 0 ? "leaf" : "node", child < 0 ? ~child : child, size);
  };
  for (const TreeNode& node : nodes) {
    check_child(node.on_true);
    check_child(node.on_false);
    if (node.feature < 0 || node.feature >= features)
      fail("a tree tests feature {}, but there are {}", node.feature, features);
  }
  for (int64_t root : roots) check_child(root);
  for (const auto& leaf : leaves)
    for (const TreeVote& vote : leaf)
      if (vote.target < 0 || vote.target >= targets)
        fail("a leaf votes for {}, but there are {}", vote.target, targets);
}

size_t Forest::leaf_of(int64_t root, std::span<const double> row) const {
  int64_t at = root;
  for (size_t steps = 0; at >= 0; ++steps) {
    if (steps > nodes.size()) fail("a tree has a cycle");
    const TreeNode& node = nodes[static_cast<size_t>(at)];
    at = passes(node, row[static_cast<size_t>(node.feature)]) ? node.on_true : node.on_false;
  }
  return static_cast<size_t>(~at);
}

std::vector<double> Forest::votes(std::span<const double> row, int64_t targets, Aggregate aggregate) const {
  std::vector<double> sums(static_cast<size_t>(targets), 0.0);
  std::vector<bool> seen(sums.size(), false);
  for (int64_t root : roots) {
    for (const TreeVote& vote : leaves[leaf_of(root, row)]) {
      auto t = static_cast<size_t>(vote.target);
      if (!seen[t])
        sums[t] = vote.weight;
      else if (aggregate == Aggregate::min)
        sums[t] = std::min(sums[t], vote.weight);
      else if (aggregate == Aggregate::max)
        sums[t] = std::max(sums[t], vote.weight);
      else
        sums[t] += vote.weight;
      seen[t] = true;
    }
  }
  if (aggregate == Aggregate::average && !roots.empty())
    for (double& s : sums) s /= static_cast<double>(roots.size());
  return sums;
}

}  // namespace selkie::ops
