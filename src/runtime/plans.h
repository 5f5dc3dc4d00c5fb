// Plans of the arena for the sets of sizes that came last.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "program/chains.h"
#include "runtime/arena.h"

namespace selkie::runtime {

struct Plan {
  std::vector<int64_t> key;  // the sizes
  ArenaPlan arena;
  std::vector<program::Chain> chains;
};

class Plans {
 public:
  // Whether there is one for these sizes, which is the latest from now on.
  bool find(std::span<const int64_t> key);
  // Forgets the one that was not needed for longest if there are too many.
  void add(Plan plan);
  const Plan& latest() const { return *kept_.front().plan; }
  int64_t count() const { return static_cast<int64_t>(kept_.size()); }

 private:
  // New sizes are looked for among all that are kept: by one number of each, side by side.
  struct Kept {
    uint64_t hash;
    std::unique_ptr<Plan> plan;
  };
  std::vector<Kept> kept_;  // the latest first
};

}  // namespace selkie::runtime
