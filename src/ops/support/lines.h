// Lines of a tensor: the elements along one axis, for operators that work on each of them.
#pragma once

#include <span>
#include <vector>

#include "ops/support/shape.h"

namespace selkie::ops {

// Calls f on the elements along `axis` at every index of the other axes; what f writes is kept.
template <class T, class F>
void for_each_line(std::vector<T>& values, const Dims& dims, int64_t axis, F&& f) {
  auto size = static_cast<size_t>(dims[static_cast<size_t>(axis)]);
  auto inner = static_cast<size_t>(product(dims, axis + 1, static_cast<int64_t>(dims.size())));
  if (values.empty()) return;
  std::vector<T> line(size);
  for (size_t start = 0; start < values.size(); start += size * inner)
    for (size_t j = 0; j < inner; ++j) {
      if (inner == 1) {
        f(std::span<T>(values.data() + start, size));
        continue;
      }
      for (size_t i = 0; i < size; ++i) line[i] = values[start + i * inner + j];
      f(std::span<T>(line));
      for (size_t i = 0; i < size; ++i) values[start + i * inner + j] = line[i];
    }
}

}  // namespace selkie::ops
