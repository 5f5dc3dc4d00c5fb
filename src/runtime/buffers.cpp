#include "runtime/buffers.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/memory.h"

namespace selkie::runtime {
namespace {

// Smaller blocks are as quick to get from the system.
constexpr size_t least_kept = size_t{1} << 16;
// Blocks wait for so many runs. At random shapes a result of some size may not come for a while; to free its block and
// to ask for it again each time costs its pages anew, and leaves holes between blocks that nothing else fills.
constexpr int64_t patience = 64;

}  // namespace

struct Buffers::Pool {
  struct Block {
    std::byte* memory;
    size_t bytes;
    int64_t run;  // that let go of it
  };

  // A block that is large enough, but not so large that it is wasted; none: null.
  Block take(size_t bytes) {
    std::lock_guard lock(mutex);
    auto best = kept.end();
    for (auto at = kept.begin(); at != kept.end(); ++at)
      if (at->bytes >= bytes && at->bytes / 2 <= bytes && (best == kept.end() || at->bytes < best->bytes)) best = at;
    if (best == kept.end()) return {};
    Block block = *best;
    kept.erase(best);
    return block;
  }

  void give_back(std::byte* memory, size_t bytes) {
    {
      std::lock_guard lock(mutex);
      if (open && bytes >= least_kept) {
        kept.push_back({.memory = memory, .bytes = bytes, .run = run});
        return;
      }
    }
    std::free(memory);
  }

  // Frees blocks that have waited since before `oldest`.
  void free_before(int64_t oldest) {
    std::lock_guard lock(mutex);
    std::erase_if(kept, [&](const Block& block) {
      if (block.run < oldest) std::free(block.memory);
      return block.run < oldest;
    });
  }

  std::mutex mutex;
  std::vector<Block> kept;
  int64_t run = 0;
  bool open = true;
};

Buffers::Buffers() : pool_(std::make_shared<Pool>()) {}

Buffers::~Buffers() {
  {
    std::lock_guard lock(pool_->mutex);
    pool_->open = false;
  }
  pool_->free_before(INT64_MAX);
}

void Buffers::begin_run() {
  int64_t run = 0;
  {
    std::lock_guard lock(pool_->mutex);
    run = ++pool_->run;
    if (pool_->kept.empty()) return;
  }
  pool_->free_before(run - patience);
}

int64_t Buffers::kept_bytes() const {
  std::lock_guard lock(pool_->mutex);
  int64_t sum = 0;
  for (const Pool::Block& block : pool_->kept) sum += static_cast<int64_t>(block.bytes);
  return sum;
}

Tensor Buffers::tensor(DType dtype, Dims dims) {
  if (dtype == DType::str) return {dtype, std::move(dims)};
  int64_t needed = 0;
  if (__builtin_mul_overflow(element_count(dims), static_cast<int64_t>(element_size(dtype)), &needed))
    fail("a tensor of shape {} has too many elements", to_string(dims));
  std::shared_ptr<MemoryBudget> budget = MemoryBudget::current();
  budget->charge(needed);
  size_t bytes = memory_size(static_cast<size_t>(needed));  // all of a large page, whatever is needed of it next
  Pool::Block block = bytes < least_kept ? Pool::Block{} : pool_->take(bytes);
  if (block.memory == nullptr) {
    block = {.memory = allocate_memory(bytes), .bytes = bytes, .run = 0};
    if (block.memory == nullptr) {
      budget->refund(needed);
      fail("out of memory: the system refused {} bytes for a tensor {}{}", needed, name(dtype), to_string(dims));
    }
  }
  std::shared_ptr<const void> owner(block.memory,
                                    [pool = pool_, budget, needed, size = block.bytes](std::byte* memory) {
                                      budget->refund(needed);
                                      pool->give_back(memory, size);
                                    });
  return Tensor::view(dtype, std::move(dims), block.memory, std::move(owner));
}

}  // namespace selkie::runtime
