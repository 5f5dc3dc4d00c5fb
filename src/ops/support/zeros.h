// Working memory of reference code that a model's attributes may ask to be large.
#pragma once

#include <vector>

#include "base/tensor.h"

namespace selkie::ops {

// The number of elements of a shape, refused where as many of `size` bytes would go over the run's memory budget.
inline size_t affordable(const Dims& dims, size_t size) {
  int64_t count = element_count(dims);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(size), &bytes))
    fail("a tensor of shape {} has too many elements", to_string(dims));
  std::shared_ptr<MemoryBudget> budget = MemoryBudget::current();
  budget->charge(bytes);
  budget->refund(bytes);
  return static_cast<size_t>(count);
}

template <class T>
std::vector<T> zeros(const Dims& dims) {
  return std::vector<T>(affordable(dims, sizeof(T)));
}

}  // namespace selkie::ops
