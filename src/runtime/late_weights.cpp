#include "runtime/late_weights.h"

#include <algorithm>

namespace selkie::runtime {

void LateWeights::add(uint32_t constant, std::vector<std::function<void()>> fill) {
  fill_[constant] = std::move(fill);
  is_missing_[constant] = true;
}

void LateWeights::fill(uint32_t constant) {
  std::lock_guard lock(mutex_);
  if (!is_missing_[constant].load(std::memory_order_relaxed)) return;
  for (const std::function<void()>& part : fill_[constant]) part();
  fill_[constant] = {};
  is_missing_[constant].store(false, std::memory_order_release);
}

void LateWeights::ensure_all() {
  for (uint32_t c = 0; c < is_missing_.size(); ++c) ensure(c);
}

size_t LateWeights::missing() const {
  return static_cast<size_t>(
      std::ranges::count_if(is_missing_, [](const std::atomic<bool>& is_missing) { return is_missing.load(); }));
}

}  // namespace selkie::runtime
