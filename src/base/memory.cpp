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
// From here on a whole page is worth it.
constexpr size_t least_large = size_t{256} << 10;
constexpr size_t chunk_bytes = size_t{64} << 20;

constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

constexpr size_t unit_of(size_t bytes) { return bytes < least_large ? line : large_page; }

}  // namespace

size_t memory_size(size_t bytes) {
  size_t unit = unit_of(bytes);
  return bytes > SIZE_MAX - unit ? SIZE_MAX : std::max(round_up(bytes, unit), unit);
}

std::byte* allocate_memory(size_t bytes) {
  size_t size = memory_size(bytes);
  if (size == SIZE_MAX) return nullptr;
  size_t unit = unit_of(bytes);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(unit, size));
  if (memory != nullptr && unit == large_page) madvise(memory, size, MADV_HUGEPAGE);
  return memory;
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
  explicit Chunk(size_t bytes) : memory(allocate_memory(bytes)), size(bytes) {}
  ~Chunk() { std::free(memory); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  std::byte* memory;
  size_t size;
  size_t used = 0;
};

Tensor Slab::tensor(DType dtype, Dims dims) {
  int64_t needed = 0;
  if (__builtin_mul_overflow(element_count(dims), static_cast<int64_t>(element_size(dtype)), &needed))
    fail("a tensor of shape {} has too many elements", to_string(dims));
  std::shared_ptr<MemoryBudget> budget = MemoryBudget::current();
  budget->charge(needed);
  size_t bytes = round_up(static_cast<size_t>(needed), line);
  if (!chunk_ || chunk_->size - chunk_->used < bytes) {
    auto chunk = std::make_shared<Chunk>(std::max(bytes, chunk_bytes));
    if (chunk->memory == nullptr) {
      budget->refund(needed);
      fail("out of memory: the system refused {} bytes for a tensor {}{}", needed, name(dtype), to_string(dims));
    }
    chunk_ = std::move(chunk);
  }
  std::byte* at = chunk_->memory + chunk_->used;
  chunk_->used += bytes;
  std::shared_ptr<const void> owner(at, [chunk = chunk_, budget, needed](std::byte*) { budget->refund(needed); });
  return Tensor::view(dtype, std::move(dims), at, std::move(owner));
}

}  // namespace selkie
