// The memory of a context's arena. It grows when a run needs more, and what runs have not needed for some time is given
// back to the system.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.h"

namespace selkie::runtime {

class ArenaMemory {
 public:
  // At least so many bytes, which are undefined; called once per run. Fails if they cannot be had.
  std::byte* provide(int64_t bytes);
  bool holds(const std::byte* at) const { return at >= memory_.data() && at < end(); }
  const std::byte* end() const { return memory_.data() + memory_.size(); }

  // Runs after which what none of them needed is given back.
  static constexpr int patience = 64;

 private:
  void grow(int64_t bytes);
  void use(int64_t bytes);
  void give_back_unused();

  Reserve memory_;
  int64_t used_ = 0;    // of which so many bytes may be in memory,
  int64_t recent_ = 0;  // and so many were needed by the last runs
  int runs_ = 0;
};

}  // namespace selkie::runtime
