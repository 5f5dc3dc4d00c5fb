// Ensembles of decision trees, the common form of the tree operators of ai.onnx.ml.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace selkie::ops {

// In the numbering of TreeEnsemble's nodes_modes.
enum class TreeTest : uint8_t { less_equal, less, greater_equal, greater, equal, not_equal, member };
TreeTest tree_test(std::string_view onnx_name);

struct TreeNode {
  TreeTest test;
  int64_t feature;
  double split;                 // all tests but `member`
  std::vector<double> members;  // of `member`
  bool missing_is_true;         // where NaN goes
  int64_t on_true;              // a node, or ~leaf
  int64_t on_false;
};

struct TreeVote {
  int64_t target;
  double weight;
};

// In the numbering of TreeEnsemble's aggregate_function.
enum class Aggregate : uint8_t { average, sum, min, max };

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<std::vector<TreeVote>> leaves;
  std::vector<int64_t> roots;  // nodes, or ~leaves

  // Fails where an index points outside nodes, leaves, features or targets.
  void check(int64_t features, int64_t targets) const;
  // What all trees vote for a row; 0 for a target without votes.
  std::vector<double> votes(std::span<const double> row, int64_t targets, Aggregate aggregate) const;

 private:
  size_t leaf_of(int64_t root, std::span<const double> row) const;
};

}  // namespace selkie::ops
