#include "runtime/arena_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"

namespace selkie::runtime {

std::byte* ArenaMemory::provide(int64_t bytes) {
  if (bytes > reserved_) grow(bytes);
  used_ = std::max(used_, bytes);
  recent_ = std::max(recent_, bytes);
  if (++runs_ == patience) {
    give_back_unused();
    recent_ = bytes;
    runs_ = 0;
  }
  return memory_.get();
}

// Addresses for more than is needed now: memory is there once it is written, and a larger run then pays for the
// difference only.
void ArenaMemory::grow(int64_t bytes) {
  constexpr int64_t most_more = int64_t{4} << 30;
  memory_.reset();
  reserved_ = used_ = 0;
  for (int64_t size : {bytes + std::min(3 * bytes, most_more), bytes}) {
    memory_.reset(allocate_memory(static_cast<size_t>(size)));
    if (!memory_) continue;
    reserved_ = size;
    return;
  }
  fail("{} bytes for intermediate results cannot be had", bytes);
}

// Half of it and some pages must be gained: memory that is given back costs time when it is needed again.
void ArenaMemory::give_back_unused() {
  constexpr int64_t page = int64_t{2} << 20;
  if (used_ - recent_ < 2 * page || recent_ > used_ / 2) return;
  auto begin = (reinterpret_cast<uintptr_t>(memory_.get() + recent_) + page - 1) / page * page;
  auto end = reinterpret_cast<uintptr_t>(memory_.get() + used_) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  used_ = recent_;
}

}  // namespace selkie::runtime
