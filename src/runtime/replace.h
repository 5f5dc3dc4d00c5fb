// Slices of a tensor that tuples of indices address, replaced by others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/tensor.h"

namespace selkie::runtime {

// Along the last axis of the indices are the tuples; one index of a tuple is counted from the end if negative.
struct SliceReplacement {
  Dims to_dims, index_dims, slice_dims;
  int64_t element_bytes;
  const int64_t* indices;
  const std::byte* slices;
  std::byte* to;
  std::string_view node;  // for errors
};
// Fails where shapes do not fit or an index is outside; slices before that are replaced by then.
void replace_slices(SliceReplacement r);

}  // namespace selkie::runtime
