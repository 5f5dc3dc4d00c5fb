#include "codegen/cpu/integers.h"

#include <algorithm>

#include "base/error.h"
#include "sym/range.h"

namespace selkie::codegen::cpu {

using sym::Kind;

bool depends_on(const sym::Node* node, const sym::Node* symbol) {
  switch (node->kind) {
    case Kind::constant:
      return false;
    case Kind::symbol:
      return node == symbol;
    case Kind::sum:
      return std::ranges::any_of(node->terms(), [&](const sym::Term& t) { return depends_on(t.monomial, symbol); });
    case Kind::product:
      return std::ranges::any_of(node->factors(), [&](const sym::Factor& f) { return depends_on(f.atom, symbol); });
    default:
      return std::ranges::any_of(node->operands(), [&](const sym::Node* n) { return depends_on(n, symbol); });
  }
}

Number Integers::lower(const sym::Node* node, const sym::Node* variable, Number at) {
  switch (node->kind) {
    case Kind::constant:
      return literal(node->value);
    case Kind::symbol: {
      if (node == variable) return at;
      auto it = known_.find(node);
      CHECK(it != known_.end(), "the symbol {} has no value", node->name());
      return it->second;
    }
    case Kind::sum:
      return lower_sum(node, variable, at);
    case Kind::product:
      return lower_product(node, variable, at);
    default:
      return lower_call(node, variable, at);
  }
}

// What does not depend on the variable is added first, so that it can move out of the loop.
Number Integers::lower_sum(const sym::Node* node, const sym::Node* variable, Number at) {
  Number sum;
  auto add = [&](Number term) { sum = sum.value() ? sum + term : term; };
  for (bool dependent : {false, true}) {
    for (const sym::Term& term : node->terms()) {
      if (dependent != (variable && depends_on(term.monomial, variable))) continue;
      Number monomial = lower(term.monomial, variable, at);
      add(term.coefficient == 1 ? monomial : monomial * literal(term.coefficient));
    }
    if (!dependent && node->value != 0) add(literal(node->value));
  }
  return sum;
}

Number Integers::lower_product(const sym::Node* node, const sym::Node* variable, Number at) {
  Number product;
  for (bool dependent : {false, true})
    for (const sym::Factor& factor : node->factors()) {
      if (dependent != (variable && depends_on(factor.atom, variable))) continue;
      Number atom = lower(factor.atom, variable, at);
      for (int64_t i = 0; i < factor.power; ++i) product = product.value() ? product * atom : atom;
    }
  return product;
}

bool Integers::is_bound(const sym::Node* node) const {
  switch (node->kind) {
    case Kind::constant:
      return true;
    case Kind::symbol:
      return known_.contains(node);
    case Kind::sum:
      return std::ranges::all_of(node->terms(), [&](const sym::Term& t) { return is_bound(t.monomial); });
    case Kind::product:
      return std::ranges::all_of(node->factors(), [&](const sym::Factor& f) { return is_bound(f.atom); });
    default:
      return std::ranges::all_of(node->operands(), [&](const sym::Node* n) { return is_bound(n); });
  }
}

Number Integers::lower_call(const sym::Node* node, const sym::Node* variable, Number at) {
  if (auto it = known_.find(node); it != known_.end()) return it->second;
  Number result = lower(node->operands()[0], variable, at);
  for (const sym::Node* operand : node->operands().subspan(1)) {
    Number next = lower(operand, variable, at);
    if (node->is_division()) return lower_division(node, result, next);
    unify(result, next);
    auto function = node->kind == Kind::min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax;
    result = {builder_, builder_.CreateBinaryIntrinsic(function, result.value(), next.value())};
  }
  return result;
}

// Rounds to minus infinity. A divisor of zero has no meaning, but must not trap where nothing uses the result.
Number Integers::lower_division(const sym::Node* node, Number a, Number b) {
  sym::Range dividend = node->operands()[0]->range();
  sym::Range divisor = node->operands()[1]->range();
  if (!sym::is_nonzero(divisor)) b = select(b == b.integer(0), b.integer(1), b);
  unify(a, b);
  bool is_floordiv = node->kind == Kind::floordiv;
  if (sym::is_natural(dividend) && sym::is_natural(divisor))
    return {builder_,
            is_floordiv ? builder_.CreateUDiv(a.value(), b.value()) : builder_.CreateURem(a.value(), b.value())};
  Number remainder(builder_, builder_.CreateSRem(a.value(), b.value()));
  Number zero = a.integer(0);
  Number adjusts = (remainder != zero) & ((remainder ^ b) < zero);
  if (!is_floordiv) return select(adjusts, remainder + b, remainder);
  Number quotient(builder_, builder_.CreateSDiv(a.value(), b.value()));
  return select(adjusts, quotient - 1, quotient);
}

std::optional<Stride> Integers::stride(const sym::Node* node, const sym::Node* variable) {
  Stride total;
  sym::SumView sum(node);
  for (const sym::Term& term : sum.terms()) {
    if (!depends_on(term.monomial, variable)) continue;
    if (!term.monomial->is_atom() && term.monomial->kind != Kind::product) return std::nullopt;
    Number rest;
    for (const sym::Factor& factor : sym::ProductView(term.monomial).factors()) {
      if (factor.atom == variable && factor.power == 1) continue;
      if (depends_on(factor.atom, variable)) return std::nullopt;
      Number atom = lower(factor.atom);
      for (int64_t i = 0; i < factor.power; ++i) rest = rest.value() ? rest * atom : atom;
    }
    if (!rest.value()) {
      total.constant += term.coefficient;
      continue;
    }
    if (term.coefficient != 1) rest = rest * literal(term.coefficient);
    total.rest = total.rest ? builder_.CreateAdd(total.rest, rest.value()) : rest.value();
  }
  return total;
}

}  // namespace selkie::codegen::cpu
