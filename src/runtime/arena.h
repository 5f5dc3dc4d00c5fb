// Where the tensors of a run lie in one block of memory: tensors that are never in use together may share addresses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace selkie::runtime {

struct Lifetime {
  int64_t bytes;
  uint32_t first;  // inclusive
  uint32_t last;   // inclusive
};

struct ArenaPlan {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

// Large tensors first, each at the lowest place that is free for its lifetime.
ArenaPlan plan_arena(std::span<const Lifetime> tensors);

}  // namespace selkie::runtime
