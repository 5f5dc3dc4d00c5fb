// The value of an expression under a binding, computed in 128 bits so that only a result beyond 64 bits is lost.
#include <algorithm>

#include "sym/node.h"
#include "sym/range.h"

namespace selkie::sym {
namespace {

using Binding = std::function<std::optional<int64_t>(std::string_view)>;
using Value = std::optional<int64_t>;

Value narrow(__int128 value) {
  auto result = static_cast<int64_t>(value);
  return result == value ? Value(result) : std::nullopt;
}

Value evaluate_node(const Node* node, const Binding& binding);

Value evaluate_sum(const Node* node, const Binding& binding) {
  __int128 total = node->value;
  for (const Term& term : node->terms()) {
    Value value = evaluate_node(term.monomial, binding);
    if (!value) return std::nullopt;
    total += static_cast<__int128>(term.coefficient) * *value;
  }
  return narrow(total);
}

Value evaluate_product(const Node* node, const Binding& binding) {
  int64_t result = 1;
  for (const Factor& factor : node->factors()) {
    Value value = evaluate_node(factor.atom, binding);
    if (!value) return std::nullopt;
    for (int64_t i = 0; i < factor.power; ++i) {
      if (__builtin_mul_overflow(result, *value, &result)) return std::nullopt;
    }
  }
  return result;
}

Value evaluate_call(const Node* node, const Binding& binding) {
  Value result = evaluate_node(node->operands()[0], binding);
  if (!result) return std::nullopt;
  for (const Node* operand : node->operands().subspan(1)) {
    Value next = evaluate_node(operand, binding);
    if (!next) return std::nullopt;
    if (node->kind == Kind::min) result = std::min(*result, *next);
    if (node->kind == Kind::max) result = std::max(*result, *next);
    if (node->is_division()) {
      if (*next == 0) return std::nullopt;
      if (*next == -1) {
        result = node->kind == Kind::mod ? 0 : narrow(-static_cast<__int128>(*result));
      } else {
        result = node->kind == Kind::mod ? floor_remainder(*result, *next) : floor_quotient(*result, *next);
      }
    }
  }
  return result;
}

Value evaluate_node(const Node* node, const Binding& binding) {
  switch (node->kind) {
    case Kind::constant:
      return node->value;
    case Kind::symbol:
      return binding(node->name());
    case Kind::sum:
      return evaluate_sum(node, binding);
    case Kind::product:
      return evaluate_product(node, binding);
    default:
      return evaluate_call(node, binding);
  }
}

}  // namespace

std::optional<int64_t> evaluate(Expr e, const Binding& binding) { return evaluate_node(e.node(), binding); }

}  // namespace selkie::sym
