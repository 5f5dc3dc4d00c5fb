// Symbolic dims and the counts, axes and requirements that hooks of several operators take from them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/shape_context.h"

namespace selkie::ops {

ir::SymDims constants(const ir::ShapeContext& c, std::span<const int64_t> numbers);
sym::Expr product(const ir::ShapeContext& c, std::span<const sym::Expr> dims);
// How many elements an operand has, where that is a small number.
std::optional<int64_t> count_of(const ir::ShapeContext& c, size_t operand);
// Axes of a tensor of this rank, in the order given; all of them if none are given. Fails like `normalize_axes`.
std::vector<size_t> positions_of(const std::vector<int64_t>* axes, size_t rank);

// No element is negative, since each becomes a dim.
void require_natural(ir::BackwardContext& c, std::span<const sym::Expr> elements);
// An operand, if it is there, broadcasts to these dims, which stay as they are.
void require_broadcasts_to(ir::BackwardContext& c, size_t operand, std::span<const sym::Expr> dims);
// Both operands have the same dims.
void require_same_dims(ir::BackwardContext& c, size_t a, size_t b);
// The operand has the rank of result 0, and its dims outside these axes.
void require_same_outside(ir::BackwardContext& c, size_t operand, const std::vector<size_t>& axes);

// Operand i has `count` elements, whatever its rank.
void require_count(ir::BackwardContext& c, size_t operand, sym::Expr count);
// Dims broadcast to others, which they do not enlarge; null where one of those is not known.
void require_broadcast_to(ir::BackwardContext& c, std::span<const sym::Expr> dims, std::span<const sym::Expr> to);
// These operands have the same dims; those that are left out do not matter.
void require_same_dims(ir::BackwardContext& c, std::span<const size_t> operands);
// The divisor, which is positive, divides e.
void require_divisible(ir::BackwardContext& c, sym::Expr e, int64_t divisor);

}  // namespace selkie::ops
