// Rules of mod. Each row stands under its equation; letters c, d, g are constants.
#include <numeric>

#include "sym/poly.h"
#include "sym/range.h"
#include "sym/rules.h"

namespace selkie::sym {
namespace {

Expr fold(Expr x, Expr y) {
  if (x.node()->kind != Kind::constant || y.node()->kind != Kind::constant || y.node()->value == 0) return {};
  return x.context().constant(floor_remainder(x.node()->value, y.node()->value));
}

Expr by_one(Expr x, Expr y) { return is_value(y, 1) ? x.context().constant(0) : Expr(); }

Expr of_zero(Expr x, Expr) { return is_value(x, 0) ? x : Expr(); }

Expr by_negative(Expr x, Expr y) { return leading_coefficient(SumView(y.node())) < 0 ? -mod(-x, -y) : Expr(); }

Expr reduce_coefficients(Expr x, Expr y) {
  auto c = y.constant();
  if (!c || *c <= 1) return {};
  SumView view(x.node());
  Terms rest;
  bool changed = view.constant() != floor_remainder(view.constant(), *c);
  for (const Term& term : view.terms()) {
    int64_t coefficient = floor_remainder(term.coefficient, *c);
    changed |= coefficient != term.coefficient;
    if (coefficient != 0) rest.push_back({coefficient, term.monomial});
  }
  if (!changed) return {};
  return mod(Expr(x.context().interner().sum(rest.span(), floor_remainder(view.constant(), *c))), y);
}

Expr constant_quotient(Expr x, Expr y) {
  auto c = y.constant();
  Range range = x.node()->range();
  if (!c || *c <= 0 || !range.lo || !range.hi) return {};
  int64_t quotient = floor_quotient(*range.lo, *c);
  return quotient == floor_quotient(*range.hi, *c) ? x - checked_mul(quotient, *c) : Expr();
}

Expr below_divisor(Expr x, Expr y) {
  if (!is_natural(x.node()->range())) return {};
  auto bound = lower_bound_of_difference(y, x);
  return bound && *bound > 0 ? x : Expr();
}

Expr split_symbolic(Expr x, Expr y) {
  if (y.node()->kind == Kind::constant) return {};
  Division division = divide(x, y);
  return division.quotient ? mod(division.remainder, y) : Expr();
}

Expr cancel_monomial(Expr x, Expr y) {
  const Node* below = y.node()->kind == Kind::constant ? nullptr : common_monomial(y);
  const Node* above = below ? common_monomial(x) : nullptr;
  const Node* common = above ? common_monomial(x.context().interner(), above, below) : nullptr;
  return common ? Expr(common) * mod(divide_exact(x, common), divide_exact(y, common)) : Expr();
}

// With a remainder that g does not divide, this is only right for a positive divisor.
Expr cancel_content(Expr x, Expr y) {
  SumView above(x.node());
  SumView below(y.node());
  int64_t g = std::gcd(std::gcd(content(above), content(below)), below.constant());
  if (above.terms().empty() || g <= 1) return {};
  int64_t constant = floor_quotient(above.constant(), g);
  int64_t rest = floor_remainder(above.constant(), g);
  if (rest != 0 && !is_natural(y.node()->range())) return {};
  return mod(divide_exact(x - above.constant(), g) + constant, divide_exact(y, g)) * g + rest;
}

Expr nested(Expr x, Expr y) {
  SumView view(x.node());
  for (const Term& term : view.terms()) {
    if (term.monomial->kind != Kind::mod) continue;
    Expr inner_divisor(term.monomial->operands()[1]);
    int64_t multiple;
    bool divides = inner_divisor == y;
    if (y.node()->kind == Kind::constant && inner_divisor.is_constant() && y.node()->value > 0) {
      divides = !__builtin_mul_overflow(inner_divisor.node()->value, term.coefficient, &multiple) &&
                multiple % y.node()->value == 0;
    }
    if (!divides) continue;
    Expr inner(term.monomial->operands()[0]);
    return mod(x + (inner - Expr(term.monomial)) * term.coefficient, y);
  }
  return {};
}

Expr split_small_addend(Expr x, Expr y) {
  auto c = y.constant();
  if (!c || *c <= 0 || x.node()->kind != Kind::sum) return {};
  for (const Term& small : x.node()->terms()) {
    int64_t g = *c;
    for (const Term& term : x.node()->terms()) g = &term == &small ? g : std::gcd(g, term.coefficient);
    int64_t constant = floor_remainder(x.node()->value, g);
    Range range = scale(small.monomial->range(), small.coefficient) + point(constant);
    if (!is_natural(range) || !range.hi || *range.hi >= g) continue;
    Expr addend = Expr(small.monomial) * small.coefficient + constant;
    return mod(x - addend, y) + addend;
  }
  return {};
}

constexpr BinaryRule mod_table[] = {
    {"mod(c, d) = the remainder, if d != 0", fold},
    {"mod(x, 1) = 0", by_one},
    {"mod(0, y) = 0", of_zero},
    {"mod(x, -y) = -mod(-x, y)", by_negative},
    {"mod(c*p + r, c) = mod(r, c), if c > 1", reduce_coefficients},
    {"mod(x, c) = x - c*q, if the range of x lies in c*q .. c*q + c - 1", constant_quotient},
    {"mod(x, y) = x, if 0 <= x < y", below_divisor},
    {"mod(y*p + r, y) = mod(r, y)", split_symbolic},
    {"mod(n*x, n*y) = n*mod(x, y), for a monomial n", cancel_monomial},
    {"mod(g*x + r, g*y) = g*mod(x + floordiv(r, g), y) + mod(r, g), if y >= 0 or g divides r", cancel_content},
    {"mod(k*mod(x, a) + r, b) = mod(k*x + r, b), if b divides k*a", nested},
    {"mod(g*x + r, g*c) = mod(g*x, g*c) + r, if 0 <= r < g", split_small_addend},
};

}  // namespace

std::span<const BinaryRule> mod_rules() { return mod_table; }

}  // namespace selkie::sym
