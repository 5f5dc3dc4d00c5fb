// Polynomial helpers of the rules.
#include "sym/poly.h"

#include <limits>
#include <numeric>

#include "sym/range.h"

namespace selkie::sym {
namespace {

constexpr int max_division_steps = 16;
constexpr int64_t huge = int64_t{1} << 62;

size_t length(const SumView& view) { return view.terms().size() + (view.constant() != 0); }

// The first term of `dividend` that `lead` divides, as quotient term; a null monomial if there is none.
Term quotient_term(Interner& interner, const SumView& dividend, const Term& lead) {
  for (const Term& term : dividend.terms()) {
    int64_t coefficient = term.coefficient / lead.coefficient;
    if (coefficient == 0) continue;
    if (const Node* monomial = divide_monomial(interner, term.monomial, lead.monomial)) return {coefficient, monomial};
  }
  return {0, nullptr};
}

}  // namespace

int64_t content(const SumView& view) {
  int64_t result = 0;
  for (const Term& term : view.terms()) {
    result = std::gcd(result, term.coefficient);
    if (result == 1) break;
  }
  return result;
}

int64_t leading_coefficient(const SumView& view) {
  return view.terms().empty() ? view.constant() : view.terms()[0].coefficient;
}

const Node* divide_monomial(Interner& interner, const Node* dividend, const Node* divisor) {
  if (dividend == divisor) return interner.constant(1);
  if (dividend->degree <= divisor->degree) return nullptr;
  ProductView x(dividend);
  ProductView y(divisor);
  Factors factors;
  size_t j = 0;
  for (const Factor& factor : x.factors()) {
    bool same = j < y.factors().size() && y.factors()[j].atom == factor.atom;
    int64_t power = factor.power - (same ? y.factors()[j].power : 0);
    if (power < 0) return nullptr;
    if (power > 0) factors.push_back({factor.atom, power});
    j += same;
  }
  return j == y.factors().size() ? interner.product(factors.span()) : nullptr;
}

const Node* common_monomial(Interner& interner, const Node* a, const Node* b) {
  if (a == b) return a;
  ProductView x(a);
  ProductView y(b);
  Factors factors;
  for (const Factor& left : x.factors()) {
    for (const Factor& right : y.factors()) {
      if (left.atom == right.atom) factors.push_back({left.atom, std::min(left.power, right.power)});
    }
  }
  return factors.size() == 0 ? nullptr : interner.product(factors.span());
}

const Node* common_monomial(Expr e) {
  SumView view(e.node());
  if (view.constant() != 0 || view.terms().empty()) return nullptr;
  Interner& interner = e.context().interner();
  const Node* result = view.terms()[0].monomial;
  for (const Term& term : view.terms().subspan(1)) {
    result = common_monomial(interner, result, term.monomial);
    if (!result) return nullptr;
  }
  return result;
}

// Dividing each term by the same monomial may change the order of terms, so the sum is added up anew.
Expr divide_exact(Expr e, const Node* monomial) {
  Interner& interner = e.context().interner();
  SumView view(e.node());
  Expr result = e.context().constant(0);
  for (const Term& term : view.terms()) {
    result = result + Expr(divide_monomial(interner, term.monomial, monomial)) * term.coefficient;
  }
  return result;
}

Expr divide_exact(Expr e, int64_t divisor) {
  SumView view(e.node());
  Terms terms;
  for (const Term& term : view.terms()) terms.push_back({term.coefficient / divisor, term.monomial});
  return Expr(e.context().interner().sum(terms.span(), view.constant() / divisor));
}

Division divide(Expr dividend, Expr divisor) {
  SumView y(divisor.node());
  if (y.terms().empty()) return {};
  Interner& interner = dividend.context().interner();
  Expr quotient = dividend.context().constant(0);
  Expr remainder = dividend;
  for (int step = 0; step < max_division_steps; ++step) {
    Term next = quotient_term(interner, SumView(remainder.node()), y.terms()[0]);
    if (!next.monomial) break;
    Expr part = Expr(next.monomial) * next.coefficient;
    quotient = quotient + part;
    remainder = remainder - part * divisor;
  }
  bool monomial_divisor = y.terms().size() == 1 && y.constant() == 0;
  bool useful =
      monomial_divisor ? remainder != dividend : length(SumView(remainder.node())) < length(SumView(dividend.node()));
  return useful ? Division{quotient, remainder} : Division{};
}

std::optional<int64_t> lower_bound_of_difference(Expr b, Expr a) {
  SumView plus(b.node());
  SumView minus(a.node());
  std::span<const Term> x = plus.terms();
  std::span<const Term> y = minus.terms();
  __int128 bound = static_cast<__int128>(plus.constant()) - minus.constant();
  size_t i = 0;
  size_t j = 0;
  while (i < x.size() || j < y.size()) {
    int c = i == x.size() ? 1 : j == y.size() ? -1 : compare(x[i].monomial, y[j].monomial);
    const Range& range = (c <= 0 ? x[i] : y[j]).monomial->range();
    Kind kind = (c <= 0 ? x[i] : y[j]).monomial->kind;
    __int128 coefficient = 0;
    if (c <= 0) coefficient += x[i++].coefficient;
    if (c >= 0) coefficient -= y[j++].coefficient;
    if (coefficient == 0) continue;
    std::optional<int64_t> extreme = coefficient > 0 ? range.lo : range.hi;
    // A symbol has a 64-bit value; that only helps against the huge constants by which slices say "to the end".
    if (!extreme && kind == Kind::symbol && bound >= huge) extreme = std::numeric_limits<int64_t>::max();
    if (!extreme) return std::nullopt;
    if (__builtin_add_overflow(bound, coefficient * *extreme, &bound)) return std::nullopt;
  }
  auto result = static_cast<int64_t>(bound);
  return result == bound ? std::optional(result) : std::nullopt;
}

}  // namespace selkie::sym
