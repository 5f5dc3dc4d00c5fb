// The order in which steps run, such that least memory is in use at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace selkie::plan {

// Steps and the memory blocks that they use, in an order that is possible. A block is in use from the step that makes
// it, or from the beginning, to the last that reads it, or to the end. One that no step uses does not count.
struct OrderProblem {
  struct Step {
    std::vector<size_t> after;  // steps before this one
    std::vector<size_t> uses;   // blocks that it reads or makes, each once
  };
  struct Block {
    std::vector<int64_t> bytes;  // at each of the sizes that are looked at; the first ones decide
    bool from_beginning = false;
    bool to_end = false;
  };
  std::vector<Step> steps;
  std::vector<Block> blocks;
};

struct Order {
  std::vector<size_t> steps;   // as they run
  std::vector<int64_t> peaks;  // the most bytes in use at a time, at each of the sizes,
  std::vector<int64_t> plain;  // and in the given order
  bool is_exact = true;        // no order has a lower peak at the first sizes
};

// Pieces that all steps come before or after are ordered for themselves, each by dynamic programming over the sets of
// steps that have run; where these are too many, only the best are followed. The given order stays where it is as good,
// and as a whole unless another one saves a twentieth, and is not worse at any of the sizes.
Order best_order(const OrderProblem& problem);

}  // namespace selkie::plan
