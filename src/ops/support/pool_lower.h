// Pools in kernels: the largest, the mean or the p-norm of the elements under a sliding window, or of a whole plane.
#pragma once

#include "ops/support/lower.h"

namespace selkie::ops {

// The least value of a dtype: what the maximum of nothing is.
double least_element(DType dtype);

void lower_average_pool(LowerContext& c);
void lower_max_pool(LowerContext& c);
void lower_norm_pool(LowerContext& c);

// Pools of whole planes.
enum class WholePool : uint8_t { mean, most, norm };
void lower_whole_pool(WholePool kind, LowerContext& c);

}  // namespace selkie::ops
