// Rules of min and max. A row serves both: its equation is written for min, and max mirrors it.
#include <algorithm>
#include <numeric>

#include "sym/poly.h"
#include "sym/range.h"
#include "sym/rules.h"

namespace selkie::sym {
namespace {

Kind dual(Kind kind) { return kind == Kind::min ? Kind::max : Kind::min; }

// Whether a makes b superfluous: a <= b under min, a >= b under max.
bool dominates(Kind kind, Expr a, Expr b) {
  auto bound = kind == Kind::min ? lower_bound_of_difference(b, a) : lower_bound_of_difference(a, b);
  return bound && *bound >= 0;
}

Expr without(Kind kind, std::span<const Expr> operands, size_t index) {
  Operands rest;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i != index) rest.push_back(operands[i]);
  }
  return lattice(kind, rest.span());
}

Expr single(Kind, std::span<const Expr> operands) { return operands.size() == 1 ? operands[0] : Expr(); }

Expr drop_dominated(Kind kind, std::span<const Expr> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t j = 0; j < operands.size(); ++j) {
      if (i != j && dominates(kind, operands[i], operands[j])) return without(kind, operands, j);
    }
  }
  return {};
}

Expr absorb(Kind kind, std::span<const Expr> operands) {
  for (size_t j = 0; j < operands.size(); ++j) {
    if (operands[j].node()->kind != dual(kind)) continue;
    for (const Node* inner : operands[j].node()->operands()) {
      for (size_t i = 0; i < operands.size(); ++i) {
        if (i != j && dominates(kind, operands[i], Expr(inner))) return without(kind, operands, j);
      }
    }
  }
  return {};
}

// The smaller of two coefficients in magnitude if their signs agree, else 0.
int64_t common_part(int64_t a, int64_t b) {
  if (a > 0 && b > 0) return std::min(a, b);
  return a < 0 && b < 0 ? std::max(a, b) : 0;
}

int64_t coefficient_of(const SumView& view, const Node* monomial) {
  for (const Term& term : view.terms()) {
    if (term.monomial == monomial) return term.coefficient;
  }
  return 0;
}

Expr shift(Kind kind, std::span<const Expr> operands, Expr offset) {
  Operands shifted;
  for (Expr operand : operands) shifted.push_back(operand - offset);
  return offset + lattice(kind, shifted.span());
}

Expr pull_common_terms(Kind kind, std::span<const Expr> operands) {
  SumView first(operands[0].node());
  Terms common;
  for (Term term : first.terms()) common.push_back(term);
  int64_t constant = first.constant();
  for (Expr operand : operands.subspan(1)) {
    SumView view(operand.node());
    size_t kept = 0;
    for (Term term : common) {
      term.coefficient = common_part(term.coefficient, coefficient_of(view, term.monomial));
      if (term.coefficient != 0) common[kept++] = term;
    }
    common.resize(kept);
    constant = common_part(constant, view.constant());
    if (kept == 0 && constant == 0) return {};
  }
  if (operands.size() < 2 || (common.size() == 0 && constant == 0)) return {};
  return shift(kind, operands, Expr(operands[0].context().interner().sum(common.span(), constant)));
}

Expr pull_content(Kind kind, std::span<const Expr> operands) {
  int64_t g = 0;
  for (Expr operand : operands) {
    SumView view(operand.node());
    g = std::gcd(g, std::gcd(content(view), view.constant()));
    if (g == 1) return {};
  }
  if (g <= 1) return {};
  Operands divided;
  for (Expr operand : operands) divided.push_back(divide_exact(operand, g));
  return lattice(kind, divided.span()) * g;
}

Expr pull_monomial(Kind kind, std::span<const Expr> operands) {
  Interner& interner = operands[0].context().interner();
  const Node* common = nullptr;
  for (Expr operand : operands) {
    if (is_value(operand, 0)) continue;
    const Node* next = common_monomial(operand);
    common = common && next ? common_monomial(interner, common, next) : next;
    if (!common) return {};
  }
  if (!common || !is_natural(common->range())) return {};
  Operands divided;
  for (Expr operand : operands) divided.push_back(divide_exact(operand, common));
  return Expr(common) * lattice(kind, divided.span());
}

// Only a strict majority flips, so that flipping cannot be undone by flipping.
Expr flip_signs(Kind kind, std::span<const Expr> operands) {
  size_t negative = 0;
  size_t positive = 0;
  for (Expr operand : operands) {
    int64_t coefficient = leading_coefficient(SumView(operand.node()));
    negative += coefficient < 0;
    positive += coefficient >= 0;
  }
  if (negative <= positive) return {};
  Operands flipped;
  for (Expr operand : operands) flipped.push_back(-operand);
  return -lattice(dual(kind), flipped.span());
}

constexpr LatticeRule lattice_table[] = {
    {"min(x) = x", single},
    {"min(x, y) = x, if x <= y for all naturals", drop_dominated},
    {"min(x, max(y, z)) = x, if x <= y for all naturals", absorb},
    {"min(t + x, t + y) = t + min(x, y)", pull_common_terms},
    {"min(g*x, g*y) = g*min(x, y), if g > 1", pull_content},
    {"min(n*x, n*y) = n*min(x, y), for a monomial n >= 0", pull_monomial},
    {"min(-x, -y) = -max(x, y)", flip_signs},
};

// Flattens, sorts, drops duplicates and keeps one constant: associativity, commutativity and idempotence.
void arrange(Kind kind, std::span<const Expr> operands, Operands& out) {
  std::optional<int64_t> constant;
  auto take = [&](Expr e) {
    if (e.node()->kind != Kind::constant) return out.push_back(e);
    int64_t value = e.node()->value;
    constant = !constant ? value : kind == Kind::min ? std::min(*constant, value) : std::max(*constant, value);
  };
  for (Expr operand : operands) {
    if (operand.node()->kind != kind) {
      take(operand);
      continue;
    }
    for (const Node* inner : operand.node()->operands()) take(Expr(inner));
  }
  std::sort(out.begin(), out.end(), [](Expr a, Expr b) { return compare(a.node(), b.node()) < 0; });
  out.resize(static_cast<size_t>(std::unique(out.begin(), out.end()) - out.begin()));
  if (constant) out.push_back(operands[0].context().constant(*constant));
}

}  // namespace

std::span<const LatticeRule> lattice_rules() { return lattice_table; }

Expr lattice(Kind kind, std::span<const Expr> operands) {
  Operands arranged;
  arrange(kind, operands, arranged);
  for (const LatticeRule& rule : lattice_table) {
    if (Expr result = rule.rewrite(kind, arranged.span())) return result;
  }
  return Expr(operands[0].context().interner().call(kind, arranged.span()));
}

}  // namespace selkie::sym
