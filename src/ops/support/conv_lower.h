// Convolutions in kernels, as sums of products of elements.
#pragma once

#include "ops/support/lower.h"

namespace selkie::ops {

// The convolution of operand 0 with the weights in operand `w`; refuses ranks that do not fit.
ir::ConvolutionForm convolution_form(const LowerContext& c, size_t w);

// Σ multiply(element of the input, element of the weights) at an index of the result, nothing outside the input.
kir::Value convolved_element(const LowerContext& c, size_t w, const ir::ConvolutionForm& form, const Index& at,
                             DType dtype, const std::function<kir::Value(kir::Value, kir::Value)>& multiply);

}  // namespace selkie::ops
