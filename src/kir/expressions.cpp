#include "kir/expressions.h"

namespace selkie::kir {

bool same_expression(const Expr& a, const Expr& b) {
  return a.op == b.op && a.dtype == b.dtype && a.operands == b.operands && a.integer == b.integer && a.slot == b.slot &&
         a.bits == b.bits;
}

uint64_t hash_expression(const Expr& e) {
  uint64_t hash = static_cast<uint64_t>(e.op) * 64 + static_cast<uint64_t>(e.dtype);
  auto mix = [&](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  for (ExprId operand : e.operands) mix(operand);
  if (e.integer) mix(e.integer.id());
  mix(e.slot);
  mix(static_cast<uint64_t>(e.bits));
  return hash;
}

Expressions::Expressions(Kernel& kernel) : kernel_(kernel) {
  for (ExprId id = 0; id < kernel.expressions.size(); ++id) ids_.emplace(hash_expression(kernel[id]), id);
}

ExprId Expressions::add(const Expr& expression) {
  uint64_t hash = hash_expression(expression);
  auto [begin, end] = ids_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (same_expression(kernel_[it->second], expression)) return it->second;
  auto id = static_cast<ExprId>(kernel_.expressions.size());
  kernel_.expressions.push_back(expression);
  ids_.emplace(hash, id);
  return id;
}

ExprId Expressions::apply(Op op, ExprId a, ExprId b, ExprId c) {
  DType operand = kernel_[op == Op::select ? b : a].dtype;
  return add(
      {.op = op, .dtype = info(op).result == ResultRule::truth ? DType::boolean : operand, .operands = {a, b, c}});
}

}  // namespace selkie::kir
