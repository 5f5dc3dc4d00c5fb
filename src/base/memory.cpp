#include "base/memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
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

namespace {

// A debugger's breakpoints are changes of the code's pages, which would be lost.
bool is_debugged() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "TracerPid:") continue;
    int tracer = 0;
    status >> tracer;
    return tracer != 0;
  }
  return true;
}

// What is mapped from the program's file and never written holds nothing that is not there.
int release_code(dl_phdr_info* object, size_t, void* of) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  std::span segments(object->dlpi_phdr, object->dlpi_phnum);
  auto begin = [&](const auto& segment) { return object->dlpi_addr + segment.p_vaddr; };
  auto holds = [&](const auto& segment) {
    auto address = reinterpret_cast<uintptr_t>(of);
    return segment.p_type == PT_LOAD && address >= begin(segment) && address - begin(segment) < segment.p_memsz;
  };
  if (std::ranges::none_of(segments, holds)) return 0;
  for (const auto& segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    uintptr_t first = (begin(segment) + page - 1) / page * page;
    uintptr_t last = (begin(segment) + segment.p_filesz) / page * page;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
  return 1;
}

}  // namespace

void give_back_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  if (!is_debugged()) dl_iterate_phdr(release_code, reinterpret_cast<void*>(&give_back_memory));
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
