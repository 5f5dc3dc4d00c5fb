// Memory with a page that cannot be touched right behind or right before it. For tests only.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "base/error.h"

namespace selkie::codegen::cpu::testing {

class GuardedBuffer {
 public:
  GuardedBuffer(std::span<const std::byte> contents, bool guard_behind) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t inside = (contents.size() + page - 1) / page * page;
    bytes_ = inside + 2 * page;
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    CHECK(mprotect(memory_, page, PROT_NONE) == 0);
    CHECK(mprotect(memory_ + page + inside, page, PROT_NONE) == 0);
    data_ = memory_ + page + (guard_behind ? inside - contents.size() : 0);
    if (!contents.empty()) std::memcpy(data_, contents.data(), contents.size());
  }
  ~GuardedBuffer() { munmap(memory_, bytes_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::byte* data() { return data_; }

 private:
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace selkie::codegen::cpu::testing
