// Resampling in kernels: where one element of the result lies in the input, and what it is made of.
#pragma once

#include "ops/support/lower.h"
#include "ops/support/resize_shape.h"

namespace selkie::ops {

void lower_resize(LowerContext& c, const ResizeOptions& options, const ResizeBy& by);

}  // namespace selkie::ops
