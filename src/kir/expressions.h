// Adds expressions to a kernel so that equal ones get equal ids.
#pragma once

#include <bit>
#include <unordered_map>

#include "kir/kernel.h"

namespace selkie::kir {

// Whether two expressions of one kernel are the same.
bool same_expression(const Expr& a, const Expr& b);
uint64_t hash_expression(const Expr& e);

// Remembers the expressions of one kernel, which must outlive it; those that the kernel has already are found.
class Expressions {
 public:
  explicit Expressions(Kernel& kernel);

  ExprId add(const Expr& expression);

  ExprId integer(sym::Expr value) { return add({.op = Op::integer, .dtype = DType::i64, .integer = value}); }
  ExprId whole(DType dtype, int64_t value) { return add({.op = Op::constant, .dtype = dtype, .bits = value}); }
  ExprId real(DType dtype, double value) {
    return add({.op = Op::constant, .dtype = dtype, .bits = std::bit_cast<int64_t>(value)});
  }
  ExprId local(uint32_t slot) { return add({.op = Op::local, .dtype = kernel_.locals[slot].dtype, .slot = slot}); }
  ExprId load(uint32_t slot, ExprId index) {
    return add(
        {.op = Op::load, .dtype = kernel_.buffers[slot].dtype, .operands = {index, no_expr, no_expr}, .slot = slot});
  }
  ExprId load_if(uint32_t slot, ExprId index, ExprId condition, ExprId otherwise) {
    return add({.op = Op::load_if,
                .dtype = kernel_.buffers[slot].dtype,
                .operands = {index, condition, otherwise},
                .slot = slot});
  }
  ExprId convert(Op op, DType dtype, ExprId operand) {
    return add({.op = op, .dtype = dtype, .operands = {operand, no_expr, no_expr}});
  }
  // Any operation whose dtype follows from its operands.
  ExprId apply(Op op, ExprId a, ExprId b = no_expr, ExprId c = no_expr);

 private:
  Kernel& kernel_;
  std::unordered_multimap<uint64_t, ExprId> ids_;
};

}  // namespace selkie::kir
