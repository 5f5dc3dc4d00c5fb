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
