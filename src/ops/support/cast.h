// Conversion of tensors between dtypes, with ONNX's rules for strings, narrow floats and saturation.
#pragma once

#include "base/float_formats.h"
#include "base/tensor.h"

namespace selkie::ops {

struct CastRules {
  Overflow overflow = Overflow::saturate;  // of float8 and float4 results
  Rounding rounding = Rounding::up;        // of f8e8m0 results
};

Tensor cast(const Tensor& input, DType dtype, CastRules rules = {});

}  // namespace selkie::ops
