// `backward` and `value` hooks that many records share, and the rules of shape arithmetic that they are made of.
#pragma once

#include "ir/shape_context.h"

namespace selkie::ops {

// --- backward ---

// Operand 0 has the dims of result 0.
void backward_same(ir::BackwardContext& c);
// The operands broadcast to result 0; where a dim of one cannot be 1, the others follow it.
void backward_broadcast(ir::BackwardContext& c);
// The same for some of the operands.
void backward_broadcast_of(ir::BackwardContext& c, std::span<const size_t> operands);
// Operand `i` has this rank.
template <size_t operand, size_t rank>
void backward_rank(ir::BackwardContext& c) {
  if (c.has(operand)) c.set_rank(operand, rank);
}

// --- value ---

// For operators that only move elements: operands of the result's type variable are moved, the others are numbers.
// It is `eval` itself that moves: it is run on the positions of the elements.
void value_by_moving(ir::ValueContext& c);

// f of the elements, over the broadcast shape; null in, or an answer of null: not known.
using SymFunction = std::function<sym::Expr(std::span<const sym::Expr>)>;
void value_elementwise(ir::ValueContext& c, const SymFunction& f);
// The same over these operands, of which those but the first may be left out: null then.
void value_elementwise_with(ir::ValueContext& c, std::vector<size_t> operands, const SymFunction& f);

// Comparisons and logic on 0 and 1: exact expressions, decided by facts where they can be.
sym::Expr less_equal(const ir::ShapeContext& c, sym::Expr a, sym::Expr b);
sym::Expr equal(const ir::ShapeContext& c, sym::Expr a, sym::Expr b);
sym::Expr negation(sym::Expr a);
sym::Expr choose(const ir::ShapeContext& c, sym::Expr condition, sym::Expr a, sym::Expr b);
// Integer division as the operators do it; null where signs are not known.
sym::Expr quotient(const ir::ShapeContext& c, sym::Expr a, sym::Expr b);
sym::Expr remainder(const ir::ShapeContext& c, sym::Expr a, sym::Expr b);
bool is_natural(const ir::ShapeContext& c, sym::Expr e);

// --- floats in shape arithmetic: quotients of integers ---

// Element-wise on contents with denominators; nothing where the result would not be exact.
enum class FloatOp : uint8_t { add, sub, mul, div };
void value_float(ir::ValueContext& c, FloatOp op);
// floor (ceil) of each element, which stays a float.
void value_floor(ir::ValueContext& c, bool up);

}  // namespace selkie::ops
