#include "runtime/sequences.h"

#include "base/error.h"

namespace selkie::runtime {

size_t position(int64_t index, size_t size, size_t last, const std::string& node) {
  auto count = static_cast<int64_t>(size);
  if (index < -count || index > static_cast<int64_t>(last))
    fail("position {} is outside a sequence of {} items, in {}", index, count, node);
  return static_cast<size_t>(index < 0 ? index + count : index);
}

HostValue with_item(HostValue sequence, bool is_own, size_t at, HostValue item) {
  const std::vector<HostValue>& items = sequence.sequence();
  auto place = static_cast<std::ptrdiff_t>(at);
  if (is_own) {
    // Made by a run and never handed out.
    auto& own = const_cast<std::vector<HostValue>&>(items);
    own.insert(own.begin() + place, std::move(item));
    return sequence;
  }
  Sequence longer;
  longer.items.reserve(items.size() + 1);
  longer.items.assign(items.begin(), items.end());
  longer.items.insert(longer.items.begin() + place, std::move(item));
  return longer;
}

}  // namespace selkie::runtime
