// Simplification, ranges and residues under facts.
#include "sym/simplifier.h"

#include <algorithm>
#include <numeric>

#include "sym/poly.h"
#include "sym/range.h"
#include "sym/rules.h"

namespace selkie::sym {
namespace {

constexpr int max_product_rewrites = 16;
constexpr int max_simplify_depth = 600;
constexpr size_t max_compared_operands = 16;

// Folds a residue into 64 bits; knowledge that does not fit is dropped.
Residue make_residue(__int128 modulus, __int128 value) {
  if (modulus < 0) modulus = -modulus;
  if (modulus > 0) value = ((value % modulus) + modulus) % modulus;
  auto narrow_modulus = static_cast<int64_t>(modulus);
  auto narrow_value = static_cast<int64_t>(value);
  if (narrow_modulus != modulus || narrow_value != value) return {1, 0};
  return {narrow_modulus, narrow_value};
}

__int128 gcd(__int128 a, __int128 b) {
  while (b != 0) {
    __int128 next = a % b;
    a = b;
    b = next;
  }
  return a < 0 ? -a : a;
}

Residue add(const Residue& a, const Residue& b) {
  return make_residue(gcd(a.modulus, b.modulus), static_cast<__int128>(a.value) + b.value);
}

Residue multiply(const Residue& a, const Residue& b) {
  auto product = [](int64_t x, int64_t y) { return static_cast<__int128>(x) * y; };
  __int128 modulus = gcd(gcd(product(a.modulus, b.modulus), product(a.modulus, b.value)), product(b.modulus, a.value));
  return make_residue(modulus, product(a.value, b.value));
}

Residue either(const Residue& a, const Residue& b) {
  return make_residue(gcd(gcd(a.modulus, b.modulus), static_cast<__int128>(a.value) - b.value), a.value);
}

// What both say: only the case where one implies the other is used.
Residue both(const Residue& a, const Residue& b) {
  if (a.modulus == 0) return a;
  if (b.modulus == 0) return b;
  return a.modulus % b.modulus == 0 || a.modulus > b.modulus ? a : b;
}

// The nearest bounds within `range` that have the residue.
Range tighten(Range range, const Residue& residue) {
  if (residue.modulus <= 1) return range;
  __int128 modulus = residue.modulus;
  auto rest = [&](__int128 value) { return static_cast<int64_t>(((value % modulus) + modulus) % modulus); };
  int64_t bound;
  if (range.lo && !__builtin_add_overflow(*range.lo, rest(static_cast<__int128>(residue.value) - *range.lo), &bound)) {
    range.lo = bound;
  }
  if (range.hi && !__builtin_sub_overflow(*range.hi, rest(static_cast<__int128>(*range.hi) - residue.value), &bound)) {
    range.hi = bound;
  }
  return range;
}

}  // namespace

NormalForm normal_form(Expr e) {
  SumView view(e.node());
  int64_t scale = content(view);
  if (view.terms()[0].coefficient < 0) scale = -scale;
  return {divide_exact(e - view.constant(), scale), scale, view.constant()};
}

Expr Simplifier::simplify(const Node* node) {
  if (node->kind == Kind::constant) return Expr(node);
  if (auto found = facts_.simplified_.find(node->id); found != facts_.simplified_.end()) return found->second;
  if (depth_ > max_simplify_depth) return Expr(node);
  ++depth_;
  Expr result = rebuild(node);
  --depth_;
  if (!result.is_constant()) {
    Range known = range(result.node());
    if (known.lo && known.lo == known.hi) result = result.context().constant(*known.lo);
  }
  facts_.simplified_.emplace(node->id, result);
  return result;
}

Expr Simplifier::rebuild(const Node* node) {
  if (auto found = facts_.definition_of_.find(node->id); found != facts_.definition_of_.end()) {
    return simplify(facts_.definitions_[found->second].value.node());
  }
  switch (node->kind) {
    case Kind::product:
      return rebuild_product(node);
    case Kind::sum:
      return rebuild_sum(node);
    case Kind::floordiv:
    case Kind::mod:
      return rebuild_division(node);
    case Kind::min:
    case Kind::max:
      return rebuild_lattice(node);
    default:
      return Expr(node);
  }
}

Expr Simplifier::rebuild_product(const Node* node) {
  Expr result = node->context->constant(1);
  for (const Factor& factor : node->factors()) {
    Expr base = simplify(factor.atom);
    for (int64_t i = 0; i < factor.power; ++i) result = result * base;
  }
  return apply_product_definitions(result);
}

// Replaces defined products within the terms. Each step moves down in the order of monomials; the limit is a backstop
// for definitions whose values contain such products inside atoms.
Expr Simplifier::apply_product_definitions(Expr e) {
  if (facts_.products_by_atom_.empty()) return e;
  for (int step = 0; step < max_product_rewrites; ++step) {
    SumView view(e.node());
    Expr next;
    for (const Term& term : view.terms()) {
      for (const Factor& factor : ProductView(term.monomial).factors()) {
        auto found = facts_.products_by_atom_.find(factor.atom->id);
        if (found == facts_.products_by_atom_.end()) continue;
        for (uint32_t index : found->second) {
          const Facts::Definition& definition = facts_.definitions_[index];
          const Node* rest = divide_monomial(e.context().interner(), term.monomial, definition.key.node());
          if (!rest) continue;
          next = e + (Expr(rest) * definition.value - Expr(term.monomial)) * term.coefficient;
          break;
        }
        if (next) break;
      }
      if (next) break;
    }
    if (!next) return e;
    e = next;
  }
  return e;
}

Expr Simplifier::rebuild_sum(const Node* node) {
  Expr result = node->context->constant(node->value);
  for (const Term& term : node->terms()) result = result + simplify(term.monomial) * term.coefficient;
  result = join_quotient_and_remainder(result);
  return facts_.congruences_.empty() ? result : undo_exact_divisions(result);
}

// k*y*floordiv(x, y)*r + k*mod(x, y)*r = k*x*r
Expr Simplifier::join_quotient_and_remainder(Expr sum) {
  SumView view(sum.node());
  for (const Term& term : view.terms()) {
    for (const Factor& factor : ProductView(term.monomial).factors()) {
      if (factor.atom->kind != Kind::mod) continue;
      Expr x(factor.atom->operands()[0]);
      Expr y(factor.atom->operands()[1]);
      Expr rest(divide_monomial(sum.context().interner(), term.monomial, factor.atom));
      Expr partner = floordiv(x, y) * y * rest * term.coefficient;
      SumView wanted(partner.node());
      bool found = wanted.constant() == 0 && std::ranges::all_of(wanted.terms(), [&](const Term& part) {
                     return std::ranges::any_of(view.terms(), [&](const Term& t) {
                       return t.monomial == part.monomial && t.coefficient == part.coefficient;
                     });
                   });
      if (!found) continue;
      return join_quotient_and_remainder(sum - partner - Expr(term.monomial) * term.coefficient +
                                         x * rest * term.coefficient);
    }
  }
  return sum;
}

// k*c*floordiv(x, c)*r = k*x*r, if c divides x
Expr Simplifier::undo_exact_divisions(Expr sum) {
  SumView view(sum.node());
  for (const Term& term : view.terms()) {
    for (const Factor& factor : ProductView(term.monomial).factors()) {
      if (factor.atom->kind != Kind::floordiv) continue;
      Expr x(factor.atom->operands()[0]);
      auto c = Expr(factor.atom->operands()[1]).constant();
      if (!c || *c <= 0 || term.coefficient % *c != 0) continue;
      Residue known = residue(x.node());
      if (known.modulus % *c != 0 || known.value % *c != 0) continue;
      Expr rest(divide_monomial(sum.context().interner(), term.monomial, factor.atom));
      return undo_exact_divisions(sum + (x * rest - Expr(term.monomial) * *c) * (term.coefficient / *c));
    }
  }
  return sum;
}

Expr Simplifier::rebuild_division(const Node* node) {
  Expr x = simplify(node->operands()[0]);
  Expr y = simplify(node->operands()[1]);
  Expr result = node->kind == Kind::mod ? mod(x, y) : floordiv(x, y);
  if (result.node()->kind != node->kind) return simplify(result.node());
  x = Expr(result.node()->operands()[0]);
  y = Expr(result.node()->operands()[1]);
  if (auto c = y.constant(); c && *c > 0) {
    Range known = range(x.node());
    if (known.lo && known.hi && floor_quotient(*known.lo, *c) == floor_quotient(*known.hi, *c)) {
      int64_t quotient = floor_quotient(*known.lo, *c);
      return node->kind == Kind::mod ? x - checked_mul(quotient, *c) : x.context().constant(quotient);
    }
    return facts_.congruences_.empty() ? result : split_known_residues(node->kind, x, *c);
  }
  if (is_natural(range(x.node())) && is_positive(range((y - x).node()))) {
    return node->kind == Kind::mod ? x : x.context().constant(0);
  }
  return result;
}

// With t = c'*q + r, where c' = c / gcd(k, c) and r is known:
// mod(k*t + s, c) = mod(k*r + s, c) and floordiv(k*t + s, c) = k*c'/c * floordiv(t, c') + floordiv(k*r + s, c).
Expr Simplifier::split_known_residues(Kind kind, Expr x, int64_t divisor) {
  SumView view(x.node());
  Expr rest = x;
  Expr quotient = x.context().constant(0);
  for (const Term& term : view.terms()) {
    int64_t g = std::gcd(term.coefficient, divisor);
    int64_t inner = divisor / g;
    Residue known = residue(term.monomial);
    if (known.modulus % inner != 0) continue;
    int64_t r = floor_remainder(known.value, inner);
    rest = rest - Expr(term.monomial) * term.coefficient + checked_mul(term.coefficient, r);
    quotient = quotient + floordiv(Expr(term.monomial), inner) * (term.coefficient / g);
  }
  if (kind == Kind::mod) return mod(rest, divisor);
  if (rest == x) return floordiv(x, divisor);
  return quotient + floordiv(rest, divisor);
}

Expr Simplifier::rebuild_lattice(const Node* node) {
  Operands operands;
  for (const Node* operand : node->operands()) operands.push_back(simplify(operand));
  for (size_t i = 0; i < operands.size() && operands.size() <= max_compared_operands; ++i) {
    for (size_t j = operands.size(); j-- > 0;) {
      if (i == j || i >= operands.size() || operands.size() == 1) continue;
      Expr difference = node->kind == Kind::min ? operands[j] - operands[i] : operands[i] - operands[j];
      if (!is_natural(range(difference.node()))) continue;
      operands.erase(j);
      if (j < i) --i;
    }
  }
  return lattice(node->kind, operands.span());
}

Range Simplifier::range(const Node* node) {
  if (node->kind == Kind::constant) return node->range();
  if (auto found = facts_.ranges_.find(node->id); found != facts_.ranges_.end()) return found->second;
  Range result = intersect(node->range(), range_of_parts(node));
  if (node->kind == Kind::sum) {
    NormalForm normal = normal_form(Expr(node));
    if (auto found = facts_.bound_of_.find(normal.form.id()); found != facts_.bound_of_.end()) {
      Range known = facts_.bounds_[found->second].range;
      result = intersect(result, scale(known, normal.scale) + point(normal.offset));
    }
  } else if (auto found = facts_.bound_of_.find(node->id); found != facts_.bound_of_.end()) {
    result = intersect(result, facts_.bounds_[found->second].range);
  }
  if (!facts_.congruences_.empty()) result = tighten(result, residue(node));
  facts_.ranges_.emplace(node->id, result);
  return result;
}

Range Simplifier::range_of_parts(const Node* node) {
  switch (node->kind) {
    case Kind::sum: {
      Range result = point(node->value);
      for (const Term& term : node->terms()) result = result + scale(range(term.monomial), term.coefficient);
      return result;
    }
    case Kind::product: {
      Range result = point(1);
      for (const Factor& factor : node->factors()) result = result * power(range(factor.atom), factor.power);
      return result;
    }
    case Kind::floordiv:
      return floordiv(range(node->operands()[0]), range(node->operands()[1]));
    case Kind::mod:
      return mod(range(node->operands()[0]), range(node->operands()[1]));
    case Kind::min:
    case Kind::max: {
      Range result = range(node->operands()[0]);
      for (const Node* operand : node->operands().subspan(1)) {
        result = node->kind == Kind::min ? min(result, range(operand)) : max(result, range(operand));
      }
      return result;
    }
    default:
      return node->range();
  }
}

Residue Simplifier::residue(const Node* node) {
  Residue result = residue_of_parts(node);
  if (facts_.congruences_.empty() || node->kind == Kind::constant) return result;
  NormalForm normal = normal_form(Expr(node));
  auto found = facts_.congruence_of_.find(normal.form.id());
  if (found == facts_.congruence_of_.end()) return result;
  const Facts::Congruence& known = facts_.congruences_[found->second];
  Residue scaled = multiply({known.modulus, known.residue}, {0, normal.scale});
  return both(add(scaled, {0, normal.offset}), result);
}

Residue Simplifier::residue_of_parts(const Node* node) {
  switch (node->kind) {
    case Kind::constant:
      return {0, node->value};
    case Kind::sum: {
      Residue result{0, node->value};
      for (const Term& term : node->terms()) {
        result = add(result, multiply(residue(term.monomial), {0, term.coefficient}));
      }
      return result;
    }
    case Kind::product: {
      Residue result{0, 1};
      for (const Factor& factor : node->factors()) {
        for (int64_t i = 0; i < factor.power; ++i) result = multiply(result, residue(factor.atom));
      }
      return result;
    }
    case Kind::floordiv:
    case Kind::mod: {
      auto c = Expr(node->operands()[1]).constant();
      if (!c || *c <= 0) return {1, 0};
      Residue inner = residue(node->operands()[0]);
      if (node->kind == Kind::mod) return make_residue(std::gcd(inner.modulus, *c), inner.value);
      return inner.modulus % *c == 0 ? make_residue(inner.modulus / *c, floor_quotient(inner.value, *c))
                                     : Residue{1, 0};
    }
    case Kind::min:
    case Kind::max: {
      Residue result = residue(node->operands()[0]);
      for (const Node* operand : node->operands().subspan(1)) result = either(result, residue(operand));
      return result;
    }
    default:
      return {1, 0};
  }
}

}  // namespace selkie::sym
