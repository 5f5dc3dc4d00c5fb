// Mean and variance in kernels, for normalisations.
#pragma once

#include "ops/support/lower.h"

namespace selkie::ops {

struct MomentValues {
  kir::Value mean;
  kir::Value variance;  // of the population
};

// Of element(index), a `dtype`, over all indices below the extents; of one element if there are no extents.
MomentValues moments_over(const LowerContext& c, const SymDims& extents, DType dtype,
                          const std::function<kir::Value(const Index&)>& element);

// 1 / √(variance + epsilon)
kir::Value inverse_deviation(const LowerContext& c, kir::Value variance, double epsilon);

}  // namespace selkie::ops
