// Weights of arms that no run may take: they are brought into memory by the first call that reads them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace selkie::runtime {

class LateWeights {
 public:
  explicit LateWeights(size_t constants) : is_missing_(constants), fill_(constants) {}

  // Before the first run.
  void add(uint32_t constant, std::vector<std::function<void()>> fill);
  // That a constant is there. For any number of threads; what fails can be tried again.
  void ensure(uint32_t constant) {
    if (is_missing_[constant].load(std::memory_order_acquire)) fill(constant);
  }
  void ensure_all();
  size_t missing() const;

 private:
  void fill(uint32_t constant);

  std::vector<std::atomic<bool>> is_missing_;
  std::vector<std::vector<std::function<void()>>> fill_;
  std::mutex mutex_;
};

}  // namespace selkie::runtime
