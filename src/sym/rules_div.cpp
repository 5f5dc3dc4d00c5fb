// Rules of floordiv and ceildiv. Each row stands under its equation; letters c, d, g are constants.
#include <numeric>

#include "sym/poly.h"
#include "sym/range.h"
#include "sym/rules.h"

namespace selkie::sym {
namespace {

std::optional<int64_t> positive_constant(Expr y) {
  return y.node()->kind == Kind::constant && y.node()->value > 0 ? y.constant() : std::nullopt;
}

Expr fold(Expr x, Expr y) {
  if (x.node()->kind != Kind::constant || y.node()->kind != Kind::constant || y.node()->value == 0) return {};
  int64_t a = x.node()->value;
  int64_t b = y.node()->value;
  return x.context().constant(b == -1 ? checked_neg(a) : floor_quotient(a, b));
}

Expr by_one(Expr x, Expr y) { return is_value(y, 1) ? x : Expr(); }

Expr of_zero(Expr x, Expr) { return is_value(x, 0) ? x : Expr(); }

Expr by_negative(Expr x, Expr y) { return leading_coefficient(SumView(y.node())) < 0 ? floordiv(-x, -y) : Expr(); }

// Coefficients are reduced towards zero, so that their sign stays; the constant is reduced to 0..c-1.
Expr split_constant(Expr x, Expr y) {
  auto c = positive_constant(y);
  if (!c || *c == 1) return {};
  SumView view(x.node());
  Terms whole;
  Terms rest;
  for (const Term& term : view.terms()) {
    if (term.coefficient / *c != 0) whole.push_back({term.coefficient / *c, term.monomial});
    if (term.coefficient % *c != 0) rest.push_back({term.coefficient % *c, term.monomial});
  }
  int64_t constant = floor_quotient(view.constant(), *c);
  if (whole.size() == 0 && constant == 0) return {};
  Interner& interner = x.context().interner();
  Expr remainder(interner.sum(rest.span(), floor_remainder(view.constant(), *c)));
  return Expr(interner.sum(whole.span(), constant)) + floordiv(remainder, y);
}

Expr constant_quotient(Expr x, Expr y) {
  auto c = positive_constant(y);
  Range range = x.node()->range();
  if (!c || !range.lo || !range.hi) return {};
  int64_t quotient = floor_quotient(*range.lo, *c);
  return quotient == floor_quotient(*range.hi, *c) ? x.context().constant(quotient) : Expr();
}

Expr below_divisor(Expr x, Expr y) {
  if (!is_natural(x.node()->range())) return {};
  auto bound = lower_bound_of_difference(y, x);
  return bound && *bound > 0 ? x.context().constant(0) : Expr();
}

Expr split_symbolic(Expr x, Expr y) {
  if (y.node()->kind == Kind::constant) return {};
  Division division = divide(x, y);
  return division.quotient ? division.quotient + floordiv(division.remainder, y) : Expr();
}

Expr cancel_monomial(Expr x, Expr y) {
  const Node* below = y.node()->kind == Kind::constant ? nullptr : common_monomial(y);
  const Node* above = below ? common_monomial(x) : nullptr;
  const Node* common = above ? common_monomial(x.context().interner(), above, below) : nullptr;
  return common ? floordiv(divide_exact(x, common), divide_exact(y, common)) : Expr();
}

// With a remainder that g does not divide, the inner floor is only right for a positive divisor.
Expr cancel_content(Expr x, Expr y) {
  SumView above(x.node());
  SumView below(y.node());
  int64_t g = std::gcd(std::gcd(content(above), content(below)), below.constant());
  if (above.terms().empty() || g <= 1) return {};
  int64_t constant = floor_quotient(above.constant(), g);
  if (above.constant() % g != 0 && !is_natural(y.node()->range())) return {};
  return floordiv(divide_exact(x - above.constant(), g) + constant, divide_exact(y, g));
}

Expr nested(Expr x, Expr y) {
  if (x.node()->kind != Kind::floordiv || !is_natural(y.node()->range())) return {};
  Expr inner(x.node()->operands()[1]);
  if (inner.node()->kind == Kind::sum || y.node()->kind == Kind::sum) return {};
  return floordiv(Expr(x.node()->operands()[0]), inner * y);
}

Expr nested_sum(Expr x, Expr y) {
  auto d = positive_constant(y);
  if (!d || x.node()->kind != Kind::sum) return {};
  for (const Term& term : x.node()->terms()) {
    if (term.coefficient != 1 || term.monomial->kind != Kind::floordiv) continue;
    Expr inner(term.monomial->operands()[1]);
    auto c = positive_constant(inner);
    int64_t product;
    if (!c || __builtin_mul_overflow(*c, *d, &product)) continue;
    return floordiv(Expr(term.monomial->operands()[0]) + (x - Expr(term.monomial)) * *c, product);
  }
  return {};
}

Expr drop_small_addend(Expr x, Expr y) {
  auto c = positive_constant(y);
  if (!c || x.node()->kind != Kind::sum) return {};
  for (const Term& small : x.node()->terms()) {
    int64_t g = *c;
    for (const Term& term : x.node()->terms()) g = &term == &small ? g : std::gcd(g, term.coefficient);
    int64_t constant = floor_remainder(x.node()->value, g);
    Range range = scale(small.monomial->range(), small.coefficient) + point(constant);
    if (!is_natural(range) || !range.hi || *range.hi >= g) continue;
    return floordiv(x - Expr(small.monomial) * small.coefficient - constant, y);
  }
  return {};
}

Expr minus_mod(Expr x, Expr y) {
  if (x.node()->kind != Kind::sum) return {};
  for (const Term& term : x.node()->terms()) {
    const Node* mod_node = term.monomial;
    if (term.coefficient != -1 || mod_node->kind != Kind::mod || mod_node->operands()[1] != y.node()) continue;
    Expr inner(mod_node->operands()[0]);
    if (x + Expr(mod_node) == inner) return floordiv(inner, y);
  }
  return {};
}

Expr make_leading_positive(Expr x, Expr y) {
  SumView view(x.node());
  if (view.terms().empty() || view.terms()[0].coefficient > 0 || !is_natural(y.node()->range())) return {};
  return -floordiv(-x - 1, y) - 1;
}

constexpr BinaryRule floordiv_table[] = {
    {"floordiv(c, d) = the quotient, if d != 0", fold},
    {"floordiv(x, 1) = x", by_one},
    {"floordiv(0, y) = 0", of_zero},
    {"floordiv(x, -y) = floordiv(-x, y)", by_negative},
    {"floordiv(c*p + r, c) = p + floordiv(r, c), if c > 1", split_constant},
    {"floordiv(x, c) = q, if the range of x lies in c*q .. c*q + c - 1", constant_quotient},
    {"floordiv(x, y) = 0, if 0 <= x < y", below_divisor},
    {"floordiv(y*p + r, y) = p + floordiv(r, y)", split_symbolic},
    {"floordiv(n*x, n*y) = floordiv(x, y), for a monomial n", cancel_monomial},
    {"floordiv(g*x + r, g*y) = floordiv(x + floordiv(r, g), y), if y >= 0 or g divides r", cancel_content},
    {"floordiv(floordiv(x, a), b) = floordiv(x, a*b), if b >= 0", nested},
    {"floordiv(floordiv(x, c) + k, d) = floordiv(x + c*k, c*d), if c, d > 0", nested_sum},
    {"floordiv(g*x + r, g*c) = floordiv(g*x, g*c), if 0 <= r < g", drop_small_addend},
    {"floordiv(x - mod(x, y), y) = floordiv(x, y)", minus_mod},
    {"floordiv(-x, y) = -floordiv(x - 1, y) - 1, if y >= 0", make_leading_positive},
};

Expr ceil_by_constant(Expr x, Expr y) {
  auto c = positive_constant(y);
  return c ? floordiv(x + (*c - 1), y) : Expr();
}

Expr ceil_by_natural(Expr x, Expr y) { return is_natural(y.node()->range()) ? floordiv(x - 1, y) + 1 : Expr(); }

Expr ceil_by_any(Expr x, Expr y) { return -floordiv(-x, y); }

constexpr BinaryRule ceildiv_table[] = {
    {"ceildiv(x, c) = floordiv(x + c - 1, c), if c > 0", ceil_by_constant},
    {"ceildiv(x, y) = floordiv(x - 1, y) + 1, if y >= 0", ceil_by_natural},
    {"ceildiv(x, y) = -floordiv(-x, y)", ceil_by_any},
};

}  // namespace

std::span<const BinaryRule> floordiv_rules() { return floordiv_table; }
std::span<const BinaryRule> ceildiv_rules() { return ceildiv_table; }

}  // namespace selkie::sym
