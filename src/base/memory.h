// Memory in large pages. A large block in small pages misses the address cache at every page, and pages that happen to
// lie behind each other in a cache drive each other out of it: kernels then run at half their speed.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/tensor.h"

namespace selkie {

// A block of addresses, aligned to a cache line. They take memory once they are written: in large pages where the
// system has them and at least half of one is used.
class Reserve {
 public:
  Reserve() = default;
  // At least so many bytes. Has no data if the system refuses.
  explicit Reserve(size_t bytes);
  // How many there are if so many are asked for; SIZE_MAX if that cannot be.
  static size_t size_for(size_t bytes);

  std::byte* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  // That so many bytes from the beginning are going to be written. Gives the part that is of large pages from now on,
  // wherever it has not been written yet.
  std::span<std::byte> use(size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t size_ = 0;
  size_t large_ = 0;  // bytes of large pages, at the beginning
};

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
