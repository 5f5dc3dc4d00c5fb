#include "runtime/arena_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"

namespace selkie::runtime {

std::byte* ArenaMemory::provide(int64_t bytes) {
  if (bytes > static_cast<int64_t>(memory_.size())) grow(bytes);
  if (bytes > used_) use(bytes);
  recent_ = std::max(recent_, bytes);
  if (++runs_ == patience) {
    give_back_unused();
    recent_ = bytes;
    runs_ = 0;
  }
  return memory_.data();
}

// Addresses for more than is needed now: memory is there once it is written, and a larger run then pays for the
// difference only.
void ArenaMemory::grow(int64_t bytes) {
  constexpr int64_t most_more = int64_t{4} << 30;
  memory_ = {};
  used_ = 0;
  for (int64_t size : {bytes + std::min(3 * bytes, most_more), bytes}) {
    memory_ = Reserve(static_cast<size_t>(size));
    if (memory_.data() != nullptr) return;
  }
  fail("{} bytes for intermediate results cannot be had", bytes);
}

// What small pages hold of a page that is to be a large one would keep it from being one.
void ArenaMemory::use(int64_t bytes) {
  std::span<std::byte> large = memory_.use(static_cast<size_t>(bytes));
  if (!large.empty()) madvise(large.data(), large.size(), MADV_DONTNEED);
  used_ = bytes;
}

// Half of it and some pages must be gained: memory that is given back costs time when it is needed again.
void ArenaMemory::give_back_unused() {
  constexpr int64_t page = int64_t{2} << 20;
  if (used_ - recent_ < 2 * page || recent_ > used_ / 2) return;
  auto begin = (reinterpret_cast<uintptr_t>(memory_.data() + recent_) + page - 1) / page * page;
  auto end = reinterpret_cast<uintptr_t>(memory_.data() + used_) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  used_ = recent_;
}

}  // namespace selkie::runtime
