#include "runtime/arena.h"

#include <algorithm>
#include <numeric>

namespace selkie::runtime {

ArenaPlan plan_arena(std::span<const Lifetime> tensors) {
  constexpr int64_t alignment = 64;
  auto rounded = [](int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  ArenaPlan plan{.offsets = std::vector<int64_t>(tensors.size()), .bytes = 0};
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  struct Placed {
    int64_t offset, end;
    uint32_t first, last;
  };
  std::vector<Placed> placed;  // by offset
  for (size_t i : order) {
    const Lifetime& t = tensors[i];
    int64_t size = rounded(t.bytes);
    int64_t offset = 0;
    for (const Placed& p : placed) {
      if (p.last < t.first || t.last < p.first) continue;
      if (offset + size <= p.offset) break;
      offset = std::max(offset, p.end);
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + size);
    Placed mine{.offset = offset, .end = offset + size, .first = t.first, .last = t.last};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), mine,
                                   [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
                  mine);
  }
  return plan;
}

}  // namespace selkie::runtime
