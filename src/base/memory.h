// Memory in large pages. A large block in small pages misses the address cache at every page, and pages that happen to
// lie behind each other in a cache drive each other out of it: kernels then run at half their speed.
#pragma once

#include <cstddef>
#include <memory>

#include "base/tensor.h"

namespace selkie {

// Aligned to a cache line, and undefined; of large pages where the system has them. Null if it has no memory. To be
// freed with std::free.
std::byte* allocate_memory(size_t bytes);
// What it takes from the system for so many bytes; SIZE_MAX if that cannot be.
size_t memory_size(size_t bytes);

// Memory for a while, which goes back to the system at once and not to the heap.
class Room {
 public:
  Room() = default;
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  // Undefined, and what was provided before is gone; aligned to a page. Fails if the system has no memory.
  std::byte* provide(size_t bytes);

 private:
  void give_back();

  std::byte* memory_ = nullptr;
  size_t size_ = 0;
};

// Gives what is free on the heap back to the system, at the end of work that needed much of it.
void give_back_memory();

// Tensors that are made together and live together, one behind the other in large blocks.
class Slab {
 public:
  // Elements are undefined; not for strings.
  Tensor tensor(DType dtype, Dims dims);

 private:
  struct Chunk;
  std::shared_ptr<Chunk> chunk_;
};

}  // namespace selkie
