#include "program/image.h"

#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace selkie::program {

LoadedImage::LoadedImage(const Image& image) : size_(image.code.size()), entries_(image.entries) {
  if (size_ == 0) return;
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory for {} bytes of code: {}", size_, std::strerror(errno));
  memory_ = static_cast<std::byte*>(memory);
  std::memcpy(memory_, image.code.data(), size_);
  if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0) {
    int reason = errno;
    munmap(memory_, size_);
    fail("code cannot be made executable: {}", std::strerror(reason));
  }
  auto* begin = reinterpret_cast<char*>(memory_);
  __builtin___clear_cache(begin, begin + size_);
}

LoadedImage::~LoadedImage() {
  if (memory_) munmap(memory_, size_);
}

LoadedImage::LoadedImage(LoadedImage&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      entries_(std::move(other.entries_)) {}

LoadedImage& LoadedImage::operator=(LoadedImage&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(entries_, other.entries_);
  return *this;
}

KernelFunction LoadedImage::kernel(std::string_view name) const {
  auto it = entries_.find(name);
  CHECK(it != entries_.end(), "the image has no kernel {}", name);
  return std::bit_cast<KernelFunction>(memory_ + it->second);
}

}  // namespace selkie::program
