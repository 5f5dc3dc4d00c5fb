// The symbolic shape rules of numpy's matmul, for plain and quantised products.
#pragma once

#include <optional>

#include "ir/shape_context.h"

namespace selkie::ops {

// The dims of the product of operands a and b, where their ranks are known.
std::optional<ir::SymDims> matmul_dims(const ir::ShapeContext& c, size_t a, size_t b);
// The inner dims are equal, and the outer ones are the result's.
void matmul_backward(ir::BackwardContext& c, size_t a, size_t b);

}  // namespace selkie::ops
