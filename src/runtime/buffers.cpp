#include "runtime/buffers.h"

#include <algorithm>
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
    Reserve memory;
    int64_t run = 0;  // that let go of it
  };

  // A block that is large enough, but not so large that it is wasted; none: without data.
  Reserve take(size_t bytes) {
    std::lock_guard lock(mutex);
    auto best = kept.end();
    for (auto at = kept.begin(); at != kept.end(); ++at) {
      size_t size = at->memory.size();
      if (size >= bytes && size / 2 <= bytes && (best == kept.end() || size < best->memory.size())) best = at;
    }
    if (best == kept.end()) return {};
    Reserve memory = std::move(best->memory);
    kept.erase(best);
    return memory;
  }

  void give_back(Reserve memory) {
    std::lock_guard lock(mutex);
    if (open && memory.size() >= least_kept) kept.push_back({.memory = std::move(memory), .run = run});
  }

  // Frees blocks that have waited since before `oldest`.
  void free_before(int64_t oldest) {
    std::lock_guard lock(mutex);
    std::erase_if(kept, [&](const Block& block) { return block.run < oldest; });
  }

  std::mutex mutex;
  std::vector<Block> kept;
  int64_t run = 0;
  bool open = true;
};

// What a tensor holds.
struct Buffers::Lent {
  Lent() = default;
  ~Lent() {
    budget->refund(charged);
    pool->give_back(std::move(memory));
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  Reserve memory;
  std::shared_ptr<Pool> pool;
  std::shared_ptr<MemoryBudget> budget;
  int64_t charged = 0;
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
  for (const Pool::Block& block : pool_->kept) sum += static_cast<int64_t>(block.memory.size());
  return sum;
}

Tensor Buffers::tensor(DType dtype, Dims dims) {
  if (dtype == DType::str) return {dtype, std::move(dims)};
  int64_t needed = 0;
  if (__builtin_mul_overflow(element_count(dims), static_cast<int64_t>(element_size(dtype)), &needed))
    fail("a tensor of shape {} has too many elements", to_string(dims));
  std::shared_ptr<MemoryBudget> budget = MemoryBudget::current();
  budget->charge(needed);
  auto bytes = static_cast<size_t>(needed);
  Reserve memory = bytes < least_kept ? Reserve() : pool_->take(Reserve::size_for(bytes));
  if (memory.data() == nullptr) memory = Reserve(bytes);
  if (memory.data() == nullptr) {
    budget->refund(needed);
    fail("out of memory: the system refused {} bytes for a tensor {}{}", needed, name(dtype), to_string(dims));
  }
  memory.use(bytes);
  std::byte* data = memory.data();
  auto lent = std::make_shared<Lent>();
  lent->memory = std::move(memory);
  lent->pool = pool_;
  lent->budget = std::move(budget);
  lent->charged = needed;
  return Tensor::view(dtype, std::move(dims), data, std::move(lent));
}

}  // namespace selkie::runtime
