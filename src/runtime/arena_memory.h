// The memory of a context's arena. It grows when a run needs more, and what runs have not needed for some time is given
// back to the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace selkie::runtime {

class ArenaMemory {
 public:
  // At least so many bytes, which are undefined; called once per run. Fails if they cannot be had.
  std::byte* provide(int64_t bytes);
  bool holds(const std::byte* at) const { return at >= memory_.get() && at < end(); }
  const std::byte* end() const { return memory_.get() + reserved_; }

  // Runs after which what none of them needed is given back.
  static constexpr int patience = 64;

 private:
  void grow(int64_t bytes);
  void give_back_unused();

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  int64_t reserved_ = 0;  // addresses
  int64_t used_ = 0;      // of which so many may be in memory,
  int64_t recent_ = 0;    // and so many were needed by the last runs
  int runs_ = 0;
};

}  // namespace selkie::runtime
