// How a scattered element meets the one that is there: ScatterElements, ScatterND and Scatter share it.
#pragma once

#include <string>

#include "base/tensor.h"

namespace selkie::ops {

// data[target[i]] = data[target[i]] ∘ updates[i] in order, with ∘ one of none (replace), add, mul, max, min.
Tensor scatter(const Tensor& data, const std::vector<int64_t>& targets, const Tensor& updates,
               const std::string& reduction);

}  // namespace selkie::ops
