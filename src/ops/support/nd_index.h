// Index tuples of GatherND and ScatterND: the last dim of `indices` addresses the leading dims of `data`.
#pragma once

#include "base/tensor.h"

namespace selkie::ops {

struct NdIndex {
  std::vector<int64_t> offsets;  // where each addressed slice begins
  int64_t slice = 1;             // elements of one slice
};

// Offsets into `data` of all tuples, after `batch` leading dims that both share. Fails on ranks that do not fit and on
// indices outside the dims.
NdIndex nd_index(const Tensor& data, const Tensor& indices, int64_t batch);

}  // namespace selkie::ops
