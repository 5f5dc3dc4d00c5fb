// Dims of products of matrices, as `matmul` multiplies.
#pragma once

#include <optional>

#include "ir/shape_context.h"

namespace selkie::ops {

// The product's dims; nothing where those of a factor are not known.
std::optional<ir::SymDims> matmul_dims(const ir::ShapeContext& c, const std::optional<ir::SymDims>& a,
                                       const std::optional<ir::SymDims>& b);
// The inner dims of the factors are equal, their outer ones are those of result 0.
void require_product(ir::BackwardContext& c, const ir::SymDims& a, const ir::SymDims& b);
// The rank of a factor, where that of the other one and of result 0 tell it.
void require_product_rank(ir::BackwardContext& c, size_t a, size_t b);
// Both, for operands a and b as they are.
void matmul_backward(ir::BackwardContext& c, size_t a, size_t b);

}  // namespace selkie::ops
