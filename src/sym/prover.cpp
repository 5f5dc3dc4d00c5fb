// The queries of Facts, and the search behind them.
#include "sym/prover.h"

#include <algorithm>
#include <numeric>

#include "sym/node.h"
#include "sym/poly.h"
#include "sym/range.h"
#include "sym/rules.h"

namespace selkie::sym {
namespace {

constexpr int max_steps = 256;
constexpr int max_search_depth = 12;
constexpr size_t max_terms_searched = 64;

int64_t coefficient_of(Expr e, const Node* monomial) {
  SumView view(e.node());
  for (const Term& term : view.terms()) {
    if (term.monomial == monomial) return term.coefficient;
  }
  return 0;
}

// mod(x, y) = x - y*floordiv(x, y) throughout the terms: decides sums that differ only in how they say this.
Expr expand_mod(Expr e) {
  SumView view(e.node());
  Expr result = e.context().constant(view.constant());
  for (const Term& term : view.terms()) {
    Expr product = e.context().constant(term.coefficient);
    for (const Factor& factor : ProductView(term.monomial).factors()) {
      Expr base(factor.atom);
      if (factor.atom->kind == Kind::mod) {
        Expr x(factor.atom->operands()[0]);
        Expr y(factor.atom->operands()[1]);
        base = x - y * floordiv(x, y);
      }
      for (int64_t i = 0; i < factor.power; ++i) product = product * base;
    }
    result = result + product;
  }
  return result;
}

// Arithmetic beyond 64 bits, or a polynomial beyond the limits, inside a proof only means that there is no answer.
template <class Question, class Answer>
Answer attempt(Question question, Answer otherwise) {
  try {
    return question();
  } catch (const Error&) {
    return otherwise;
  }
}

}  // namespace

Truth Facts::prove_less_equal(Expr a, Expr b) const {
  auto question = [&] {
    Expr difference = simplify(b - a);
    if (Prover(*this).proves_natural(difference)) return Truth::yes;
    if (Prover(*this).proves_natural(simplify(a - b - 1))) return Truth::no;
    return Truth::unknown;
  };
  return attempt(question, Truth::unknown);
}

Truth Facts::prove_equal(Expr a, Expr b) const {
  auto question = [&] {
    Expr difference = simplify(a - b);
    if (auto value = difference.constant()) return *value == 0 ? Truth::yes : Truth::no;
    if (simplify(expand_mod(difference)).constant() == 0) return Truth::yes;
    Residue residue = Simplifier(*this).residue(difference.node());
    if (residue.modulus > 0 && residue.value != 0) return Truth::no;
    Prover prover(*this);
    if (prover.proves_natural(difference - 1) || prover.proves_natural(-difference - 1)) return Truth::no;
    if (prover.proves_natural(difference) && prover.proves_natural(-difference)) return Truth::yes;
    return Truth::unknown;
  };
  return attempt(question, Truth::unknown);
}

Truth Facts::prove_divisible(Expr e, int64_t divisor) const {
  if (divisor == 0) return Truth::unknown;
  auto question = [&] {
    int64_t magnitude = divisor < 0 ? checked_neg(divisor) : divisor;
    Expr remainder = simplify(mod(simplify(e), magnitude));
    if (auto value = remainder.constant()) return *value == 0 ? Truth::yes : Truth::no;
    Residue residue = Simplifier(*this).residue(remainder.node());
    int64_t shared = std::gcd(residue.modulus, magnitude);
    if (residue.value % shared != 0) return Truth::no;
    if (is_nonzero(range(remainder))) return Truth::no;
    return Truth::unknown;
  };
  return attempt(question, Truth::unknown);
}

bool Prover::proves_natural(Expr d) {
  budget_ = max_steps;
  visited_.clear();
  used_.clear();
  return attempt([&] { return search(d, max_search_depth); }, false);
}

// Divides by what is positive and common: g*n*x >= 0 follows from x >= 0.
Expr Prover::strip(Expr d) {
  SumView view(d.node());
  if (view.terms().empty()) return d;
  int64_t g = content(view);
  if (g > 1) d = divide_exact(d - view.constant(), g) + floor_quotient(view.constant(), g);
  const Node* common = common_monomial(d);
  if (!common) return d;
  Factors natural;
  for (const Factor& factor : ProductView(common).factors()) {
    if (is_natural(simplifier_.range(factor.atom))) natural.push_back(factor);
  }
  return natural.size() == 0 ? d : divide_exact(d, d.context().interner().product(natural.span()));
}

// Whether the term keeps interval arithmetic from seeing that the sum is natural.
bool Prover::troubles(const Term& term) {
  Range range = simplifier_.range(term.monomial);
  return term.coefficient > 0 ? !is_natural(range) : !range.hi || *range.hi > 0;
}

bool Prover::search(Expr d, int depth) {
  if (--budget_ < 0) return false;
  d = strip(d);
  Range range = simplifier_.range(d.node());
  if (is_natural(range)) return true;
  if (depth == 0 || is_negative(range) || !visited_.insert(d.id()).second) return false;
  SumView view(d.node());
  if (view.terms().size() > max_terms_searched) return false;
  for (const Term& term : view.terms()) {
    if (term.monomial->kind == Kind::min || term.monomial->kind == Kind::max) {
      bool split = (term.monomial->kind == Kind::min) == (term.coefficient > 0);
      if (split && by_lattice(d, term, depth)) return true;
    }
  }
  for (const Term& term : view.terms()) {
    if (troubles(term) && (by_facts(d, term, depth) || by_atom(d, term, depth))) return true;
  }
  for (const Term& term : view.terms()) {
    if (!troubles(term) && (by_facts(d, term, depth) || by_atom(d, term, depth))) return true;
  }
  return false;
}

// d = (k*natural + rest) / s with positive k and s chosen so that the term vanishes from rest.
bool Prover::cancel(Expr d, const Term& term, Expr natural, int depth) {
  int64_t other = coefficient_of(natural, term.monomial);
  if (other == 0 || (other > 0) != (term.coefficient > 0)) return false;
  int64_t g = std::gcd(other, term.coefficient);
  int64_t scale = std::abs(other / g);
  int64_t factor = std::abs(term.coefficient / g);
  return search(d * scale - natural * factor, depth - 1);
}

bool Prover::by_facts(Expr d, const Term& term, int depth) {
  auto found = facts_.occurrences_.find(term.monomial->id);
  if (found == facts_.occurrences_.end()) return false;
  for (uint32_t index : found->second.bounds) {
    const Facts::Bound& fact = facts_.bounds_[index];
    if (!fact.alive || fact.form.node() == term.monomial) continue;
    if (budget_ <= 0) return false;
    bool proven = (fact.range.lo && cancel(d, term, fact.form - *fact.range.lo, depth)) ||
                  (fact.range.hi && cancel(d, term, *fact.range.hi - fact.form, depth));
    if (!proven) continue;
    used_.push_back(index);
    return true;
  }
  return false;
}

bool Prover::by_atom(Expr d, const Term& term, int depth) {
  for (const Factor& factor : ProductView(term.monomial).factors()) {
    if (factor.atom->kind == Kind::floordiv && by_floordiv(d, term, factor.atom, depth)) return true;
  }
  const Node* node = term.monomial;
  Expr atom(node);
  if (node->kind == Kind::min || node->kind == Kind::max) {
    for (const Node* operand : node->operands()) {
      Expr gap = node->kind == Kind::min ? Expr(operand) - atom : atom - Expr(operand);
      if (cancel(d, term, gap, depth)) return true;
      // 2*max(a, b) >= a + b takes one gap to each operand.
      bool helps = (node->kind == Kind::max) == (term.coefficient > 0);
      if (helps && std::abs(term.coefficient) > 1 && search(d - gap, depth - 1)) return true;
    }
  }
  if (node->kind == Kind::mod && is_natural(simplifier_.range(node->operands()[1]))) {
    if (cancel(d, term, Expr(node->operands()[1]) - 1 - atom, depth)) return true;
    if (is_natural(simplifier_.range(node->operands()[0])))
      return cancel(d, term, Expr(node->operands()[0]) - atom, depth);
  }
  return false;
}

// x - y*floordiv(x, y) lies in 0..y-1 for y > 0; a zero divisor makes d undefined.
bool Prover::by_floordiv(Expr d, const Term& term, const Node* atom, int depth) {
  Expr x(atom->operands()[0]);
  Expr y(atom->operands()[1]);
  if (!is_natural(simplifier_.range(y.node()))) return false;
  Expr remainder = x - y * Expr(atom);
  if (cancel(d, term, remainder, depth) || cancel(d, term, y - 1 - remainder, depth)) return true;
  bool shrinks = term.monomial == atom && !y.is_constant() && is_natural(simplifier_.range(x.node()));
  return shrinks && cancel(d, term, x - Expr(atom), depth);
}

// min is one of its operands, so d is natural if it is so for each of them.
bool Prover::by_lattice(Expr d, const Term& term, int depth) {
  return std::ranges::all_of(term.monomial->operands(), [&](const Node* operand) {
    return search(d + (Expr(operand) - Expr(term.monomial)) * term.coefficient, depth - 1);
  });
}

}  // namespace selkie::sym
