#include "runtime/replace.h"

#include <cstring>

#include "base/error.h"

namespace selkie::runtime {

void replace_slices(SliceReplacement r) {
  const Dims& to = r.to_dims;
  auto width = static_cast<size_t>(r.index_dims.back());
  if (width > to.size()) fail("tuples of {} indices for {} axes, in {}", width, to.size(), r.node);
  r.index_dims.pop_back();
  Dims expected = r.index_dims;
  expected.insert(expected.end(), to.begin() + static_cast<std::ptrdiff_t>(width), to.end());
  if (r.slice_dims != expected)
    fail("updates have shape {}, but must have {}, in {}", to_string(r.slice_dims), to_string(expected), r.node);
  int64_t bytes = r.element_bytes;
  for (size_t axis = width; axis < to.size(); ++axis) bytes *= to[axis];
  for (int64_t tuple = element_count(r.index_dims); tuple-- > 0; r.slices += bytes) {
    int64_t at = 0;
    for (size_t axis = 0; axis < width; ++axis, ++r.indices) {
      int64_t index = *r.indices;
      if (index < -to[axis] || index >= to[axis])
        fail("index {} is outside -{}..{}, in {}", index, to[axis], to[axis] - 1, r.node);
      at = at * to[axis] + (index < 0 ? index + to[axis] : index);
    }
    if (bytes == 0) break;  // no address to add to
    std::memcpy(r.to + at * bytes, r.slices, static_cast<size_t>(bytes));
  }
}

}  // namespace selkie::runtime
