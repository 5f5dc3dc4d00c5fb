#include "base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace selkie {
namespace {

constexpr size_t line = 64;
constexpr size_t large_page = size_t{2} << 20;
// From here on whole pages of addresses, which blocks of other sizes fit into later, too.
constexpr size_t least_paged = size_t{256} << 10;
constexpr size_t chunk_bytes = size_t{64} << 20;

constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

constexpr size_t unit_of(size_t bytes) { return bytes < least_paged ? line : large_page; }

// A large page is worth it where half of it is used.
constexpr size_t in_large_pages(size_t bytes) { return (bytes + large_page / 2) / large_page * large_page; }

}  // namespace

size_t Reserve::size_for(size_t bytes) {
  size_t unit = unit_of(bytes);
  return bytes > SIZE_MAX - unit ? SIZE_MAX : std::max(round_up(bytes, unit), unit);
}

Reserve::Reserve(size_t bytes) {
  size_t size = size_for(bytes);
  void* memory = nullptr;
  if (size == SIZE_MAX || posix_memalign(&memory, unit_of(bytes), size) != 0) return;
  memory_.reset(static_cast<std::byte*>(memory));
  size_ = size;
}

std::span<std::byte> Reserve::use(size_t bytes) {
  size_t before = large_;
  large_ = std::max(large_, in_large_pages(std::min(bytes, size_)));
  std::span<std::byte> fresh{memory_.get() + before, large_ - before};
  if (!fresh.empty()) madvise(fresh.data(), fresh.size(), MADV_HUGEPAGE);
  return fresh;
}

Room::~Room() { give_back(); }

void Room::give_back() {
  if (memory_ != nullptr) munmap(memory_, size_);
  memory_ = nullptr;
  size_ = 0;
}

std::byte* Room::provide(size_t bytes) {
  if (bytes <= size_ && bytes >= size_ / 2) return memory_;
  give_back();
  if (bytes == 0) return nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("out of memory: the system refused {} bytes: {}", bytes, std::strerror(errno));
  memory_ = static_cast<std::byte*>(memory);
  size_ = bytes;
  return memory_;
}

void give_back_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

struct Slab::Chunk {
  explicit Chunk(size_t bytes) : memory(bytes) {}

  size_t left() const { return memory.size() - used; }
  std::byte* take(size_t bytes) {
    std::byte* at = memory.data() + used;
    used += bytes;
    memory.use(used);
    return at;
  }

  Reserve memory;
  size_t used = 0;
};

Tensor Slab::tensor(DType dtype, Dims dims) {
  int64_t needed = 0;
  if (__builtin_mul_overflow(element_count(dims), static_cast<int64_t>(element_size(dtype)), &needed))
    fail("a tensor of shape {} has too many elements", to_string(dims));
  std::shared_ptr<MemoryBudget> budget = MemoryBudget::current();
  budget->charge(needed);
  size_t bytes = round_up(static_cast<size_t>(needed), line);
  if (!chunk_ || chunk_->left() < bytes) {
    auto chunk = std::make_shared<Chunk>(std::max(bytes, chunk_bytes));
    if (chunk->memory.data() == nullptr) {
      budget->refund(needed);
      fail("out of memory: the system refused {} bytes for a tensor {}{}", needed, name(dtype), to_string(dims));
    }
    chunk_ = std::move(chunk);
  }
  std::byte* at = chunk_->take(bytes);
  std::shared_ptr<const void> owner(at, [chunk = chunk_, budget, needed](std::byte*) { budget->refund(needed); });
  return Tensor::view(dtype, std::move(dims), at, std::move(owner));
}

}  // namespace selkie
