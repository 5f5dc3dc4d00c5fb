// Machine code of kernels: bytes that run at any page-aligned address, and where each kernel begins in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace selkie::program {

// Buffers in the order of the kernel's, sizes in the order of its sizes, and begin and end of each range loop.
using KernelFunction = void (*)(void* const* buffers, const int64_t* sizes, const int64_t* ranges);

struct Image {
  std::string isa;                                       // the instruction set that the code needs
  std::vector<std::byte> code;                           // instructions and read-only data; every reference is relative
  std::map<std::string, uint64_t, std::less<>> entries;  // offsets into `code`, by name of kernel
};

// An image in executable memory, which is never writable at the same time.
class LoadedImage {
 public:
  explicit LoadedImage(const Image& image);
  ~LoadedImage();
  LoadedImage(LoadedImage&& other) noexcept;
  LoadedImage& operator=(LoadedImage&& other) noexcept;

  // A name that the image does not have is a bug of the caller.
  KernelFunction kernel(std::string_view name) const;
  size_t size() const { return size_; }

 private:
  std::byte* memory_ = nullptr;
  size_t size_ = 0;
  std::map<std::string, uint64_t, std::less<>> entries_;
};

}  // namespace selkie::program
