// Dims of attention's operands: the symbolic counterpart of `Heads`.
#pragma once

#include <optional>

#include "ir/shape_context.h"

namespace selkie::ops {

// Null where a dim is not known.
struct HeadDims {
  sym::Expr batch;
  sym::Expr heads;
  sym::Expr length;
  sym::Expr size;
};

// From rank 4 as it is, or from [batch, length, heads · size]; all null for other ranks or `heads` below 1.
HeadDims split_dims(const ir::ShapeContext& c, const std::optional<ir::SymDims>& x, int64_t heads);
// From [batch, heads, length, size].
HeadDims heads_dims(const std::optional<ir::SymDims>& x);
// [batch, heads, length, size], and [batch, length, heads · size]; null where something is not known.
ir::SymDims dims_of(const HeadDims& x);
ir::SymDims merged_dims(const HeadDims& x);

// The dims of a result, with symbols of its own in the place of nulls.
ir::SymDims named(const ir::ForwardContext& c, size_t result, ir::SymDims dims);

// What attention gives: queries with the values' size.
HeadDims attended(const HeadDims& q, const HeadDims& k, const HeadDims& v);
// The dim of either that is known.
sym::Expr either(sym::Expr a, sym::Expr b);
// As `append`: `now` behind the past, where there is one.
sym::Expr appended_length(const ir::ShapeContext& c, size_t past, sym::Expr now);

// Equal where both are known.
void require_equal_known(ir::BackwardContext& c, sym::Expr a, sym::Expr b);
// Operand i of rank 3 splits into heads.
void require_split(ir::BackwardContext& c, size_t operand, int64_t heads);
// As `check_attention`.
void require_attention(ir::BackwardContext& c, const HeadDims& q, const HeadDims& k, const HeadDims& v);
// Operand i is a past of any length that `now` continues.
void require_past(ir::BackwardContext& c, size_t operand, const HeadDims& now);

}  // namespace selkie::ops
