// What nodes require of their operands, for `backward` hooks, beyond equal dims.
#pragma once

#include <span>

#include "ir/shape_context.h"

namespace selkie::ops {

sym::Expr product_of(const ir::ShapeContext& c, std::span<const sym::Expr> dims);

// Operand i has `count` elements, whatever its rank.
void require_count(ir::BackwardContext& c, size_t operand, sym::Expr count);
// Dims broadcast to others, which they do not enlarge; null where one of those is not known.
void require_broadcast_to(ir::BackwardContext& c, std::span<const sym::Expr> dims, std::span<const sym::Expr> to);
// These operands have the same dims; those that are left out do not matter.
void require_same_dims(ir::BackwardContext& c, std::span<const size_t> operands);
// The divisor, which is positive, divides e.
void require_divisible(ir::BackwardContext& c, sym::Expr e, int64_t divisor);

}  // namespace selkie::ops
