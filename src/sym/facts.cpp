// How facts are stated, normalised, stored and propagated. Queries are in simplifier.cpp and prover.cpp.
#include "sym/facts.h"

#include <algorithm>
#include <numeric>

#include "sym/node.h"
#include "sym/poly.h"
#include "sym/prover.h"
#include "sym/range.h"
#include "sym/simplifier.h"

namespace selkie::sym {
namespace {

constexpr size_t max_evidence = 8;
constexpr size_t max_propagation_steps = 128;
constexpr size_t max_propagated_terms = 32;
constexpr int64_t max_derived_bound = int64_t{1} << 48;

void join(std::vector<uint32_t>& into, const std::vector<uint32_t>& from) {
  std::vector<uint32_t> result;
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(result));
  if (result.size() > max_evidence) result.resize(max_evidence);
  into = std::move(result);
}

// Whether replacing key would change e at any depth.
bool mentions(const Node* node, const Node* key) {
  if (node->kind < Kind::sum && divide_monomial(node->context->interner(), node, key)) return true;
  auto in = [&](const Node* part) { return mentions(part, key); };
  if (node->kind == Kind::sum) return std::ranges::any_of(node->terms(), in, &Term::monomial);
  if (node->kind == Kind::product) return std::ranges::any_of(node->factors(), in, &Factor::atom);
  return node->is_atom() && node->kind != Kind::symbol && std::ranges::any_of(node->operands(), in);
}

// The value of a monomial with coefficient 1 or -1 in difference = 0.
Expr solve(Expr difference, const Term& term) {
  return term.coefficient > 0 ? Expr(term.monomial) - difference : Expr(term.monomial) + difference;
}

bool is_unit(int64_t coefficient) { return coefficient == 1 || coefficient == -1; }

int64_t ceil_quotient(int64_t a, int64_t b) { return floor_quotient(a, b) + (a % b != 0); }

// Facts that cannot hold together, such as a > 2*b and b > a, would otherwise drive bounds on and on.
Range without_huge_bounds(Range range) {
  if (range.lo && (*range.lo > max_derived_bound || *range.lo < -max_derived_bound)) range.lo.reset();
  if (range.hi && (*range.hi > max_derived_bound || *range.hi < -max_derived_bound)) range.hi.reset();
  return range;
}

// Coefficients matter only modulo m.
Expr reduce_coefficients(Expr form, int64_t m) {
  Terms terms;
  SumView view(form.node());
  for (const Term& term : view.terms()) {
    int64_t coefficient = floor_remainder(term.coefficient, m);
    if (coefficient != 0) terms.push_back({coefficient, term.monomial});
  }
  return Expr(form.context().interner().sum(terms.span(), floor_remainder(view.constant(), m)));
}

// The range of form when scale * form + offset lies in range.
Range divide_range(Range range, int64_t scale, int64_t offset) {
  Range shifted = range + point(checked_neg(offset));
  if (scale < 0) shifted = sym::scale(shifted, -1);
  int64_t magnitude = scale < 0 ? -scale : scale;
  Range result;
  if (shifted.lo) result.lo = ceil_quotient(*shifted.lo, magnitude);
  if (shifted.hi) result.hi = floor_quotient(*shifted.hi, magnitude);
  return result;
}

// x with a*x = 1 modulo m, for coprime a and m.
int64_t inverse(int64_t a, int64_t m) {
  __int128 r0 = m, r1 = floor_remainder(a, m), t0 = 0, t1 = 1;
  while (r1 != 0) {
    __int128 quotient = r0 / r1;
    r0 = std::exchange(r1, r0 - quotient * r1);
    t0 = std::exchange(t1, t0 - quotient * t1);
  }
  return static_cast<int64_t>(((t0 % m) + m) % m);
}

int64_t multiply_modulo(int64_t a, int64_t b, int64_t m) {
  auto product = static_cast<__int128>(a) * b % m;
  return static_cast<int64_t>((product + m) % m);
}

std::string bound_text(Expr e, const Range& range) {
  if (range.lo && range.hi) return fmt::format("{} in {}..{}", to_string(e), *range.lo, *range.hi);
  return range.lo ? fmt::format("{} >= {}", to_string(e), *range.lo)
                  : fmt::format("{} <= {}", to_string(e), range.hi.value_or(0));
}

}  // namespace

Expr Facts::simplify(Expr e) const { return Simplifier(*this).simplify(e.node()); }
Range Facts::range(Expr e) const { return Simplifier(*this).range(simplify(e).node()); }

std::optional<std::string> Facts::violated(const std::function<std::optional<int64_t>(std::string_view name)>& binding,
                                           size_t& checked) const {
  for (const Definition& fact : definitions_) {
    std::optional<int64_t> key = fact.alive ? evaluate(fact.key, binding) : std::nullopt;
    std::optional<int64_t> value = key ? evaluate(fact.value, binding) : std::nullopt;
    if (!value) continue;
    ++checked;
    if (*key != *value)
      return fmt::format("{} == {} (from {}): {} is not {}", to_string(fact.key), to_string(fact.value),
                         describe(fact.evidence), *key, *value);
  }
  for (const Bound& fact : bounds_) {
    std::optional<int64_t> value = fact.alive ? evaluate(fact.form, binding) : std::nullopt;
    if (!value) continue;
    ++checked;
    if ((fact.range.lo && *value < *fact.range.lo) || (fact.range.hi && *value > *fact.range.hi)) {
      Evidence from = fact.lo_evidence;
      join(from, fact.hi_evidence);
      return fmt::format("{} (from {}): it is {}", bound_text(fact.form, fact.range), describe(from), *value);
    }
  }
  for (const Congruence& fact : congruences_) {
    std::optional<int64_t> value = fact.alive ? evaluate(fact.form, binding) : std::nullopt;
    if (!value) continue;
    ++checked;
    if (floor_remainder(*value, fact.modulus) != fact.residue)
      return fmt::format("mod({}, {}) == {} (from {}): it is {}", to_string(fact.form), fact.modulus, fact.residue,
                         describe(fact.evidence), *value);
  }
  return std::nullopt;
}

void Facts::changed() {
  simplified_.clear();
  ranges_.clear();
}

Facts::Evidence Facts::evidence(std::string source) {
  auto [found, added] = source_ids_.emplace(std::move(source), static_cast<uint32_t>(sources_.size()));
  if (added) sources_.push_back(found->first);
  return {found->second};
}

// The sources of everything that says something about the parts of e.
Facts::Evidence Facts::evidence_about(Expr e) const {
  Evidence result;
  std::vector<Expr> symbols;
  collect_symbols(e, symbols);
  std::vector<Expr> parts = symbols;
  if (!e.is_constant()) parts.push_back(normal_form(e).form);
  for (size_t i = 0; i < parts.size() && result.size() < max_evidence; ++i) {
    uint64_t id = parts[i].id();
    if (auto found = bound_of_.find(id); found != bound_of_.end()) {
      join(result, bounds_[found->second].lo_evidence);
      join(result, bounds_[found->second].hi_evidence);
    }
    if (auto found = congruence_of_.find(id); found != congruence_of_.end()) {
      join(result, congruences_[found->second].evidence);
    }
    if (auto found = definition_of_.find(id); found != definition_of_.end()) {
      join(result, definitions_[found->second].evidence);
      collect_symbols(definitions_[found->second].value, parts);
    }
  }
  return result;
}

std::vector<std::string> Facts::sources_about(Expr e) const {
  std::vector<std::string> result;
  for (uint32_t index : evidence_about(e)) result.push_back(sources_[index]);
  return result;
}

std::string Facts::describe(const Evidence& from) const {
  std::string result;
  for (uint32_t index : from) result += (result.empty() ? "" : ", ") + sources_[index];
  return result.empty() ? "dimensions being natural numbers" : result;
}

void Facts::contradict(const std::string& fact, const Evidence& from, Expr about, const Evidence& used) const {
  Evidence others = evidence_about(about);
  join(others, used);
  Evidence rest = others;
  std::erase_if(rest, [&](uint32_t index) { return std::ranges::find(from, index) != from.end(); });
  if (!rest.empty()) others = rest;
  fail("\"{}\", from {}, contradicts what is known from {}", fact, describe(from), describe(others));
}

bool Facts::add_equal(Expr a, Expr b, std::string source) {
  return propagate(equal(a, b, evidence(std::move(source))));
}

bool Facts::add_range(Expr e, Range range, std::string source) {
  return propagate(bound(e, range, evidence(std::move(source)), true));
}

bool Facts::add_less_equal(Expr a, Expr b, std::string source) {
  Evidence from = evidence(std::move(source));
  if (Prover prover(*this); prover.proves_natural(simplify(a - b - 1))) {
    Evidence used;
    for (uint32_t index : prover.used()) {
      join(used, bounds_[index].lo_evidence);
      join(used, bounds_[index].hi_evidence);
    }
    contradict(fmt::format("{} <= {}", to_string(a), to_string(b)), from, a - b, used);
  }
  return propagate(bound(b - a, {.lo = 0, .hi = {}}, from, true));
}

bool Facts::add_divisible(Expr e, int64_t divisor, std::string source) {
  if (divisor == 0) fail("\"{} % 0 == 0\", from {}, divides by zero", to_string(e), source);
  int64_t modulus = divisor < 0 ? checked_neg(divisor) : divisor;
  return propagate(congruent(e, modulus, 0, evidence(std::move(source))));
}

bool Facts::add_product_equal(std::span<const Expr> a, std::span<const Expr> b, std::string source) {
  std::vector<Expr> left;
  std::vector<Expr> right;
  for (Expr e : a) left.push_back(simplify(e));
  for (Expr e : b) right.push_back(simplify(e));
  for (Expr& e : left) {
    auto same = std::ranges::find(right, e);
    if (same == right.end() || !is_nonzero(Simplifier(*this).range(e.node()))) continue;
    *same = e = context_->constant(1);
  }
  auto product = [&](const std::vector<Expr>& factors) {
    return std::accumulate(factors.begin(), factors.end(), context_->constant(1), std::multiplies<>());
  };
  return add_equal(product(left), product(right), std::move(source));
}

// Divides by the content and by atoms that cannot be zero: n*x = 0 says x = 0.
Expr Facts::strip_nonzero(Expr difference) const {
  SumView view(difference.node());
  int64_t g = std::gcd(content(view), view.constant());
  if (g > 1) difference = divide_exact(difference, g);
  const Node* common = common_monomial(difference);
  if (!common) return difference;
  for (const Factor& factor : ProductView(common).factors()) {
    if (!is_nonzero(Simplifier(*this).range(factor.atom))) continue;
    for (int64_t i = 0; i < factor.power; ++i) difference = divide_exact(difference, factor.atom);
  }
  return difference;
}

// The term to replace in difference = 0: a symbol whose value is natural if there is such, else the youngest symbol,
// else the leading monomial; a null monomial if none can be replaced.
Term Facts::solvable_term(Expr difference) const {
  Term best{0, nullptr};
  bool best_natural = false;
  SumView view(difference.node());
  for (const Term& term : view.terms()) {
    if (term.monomial->kind != Kind::symbol || !is_unit(term.coefficient)) continue;
    Expr value = solve(difference, term);
    if (mentions(value.node(), term.monomial)) continue;
    bool natural = is_natural(Simplifier(*this).range(value.node()));
    bool older = best.monomial && best_natural == natural && best.monomial->id > term.monomial->id;
    if (older || best_natural > natural) continue;
    best = term;
    best_natural = natural;
  }
  const Term& lead = view.terms()[0];
  if (best.monomial || !is_unit(lead.coefficient)) return best;
  return mentions(solve(difference, lead).node(), lead.monomial) ? best : lead;
}

bool Facts::equal(Expr a, Expr b, const Evidence& from) {
  auto text = [&] { return fmt::format("{} == {}", to_string(a), to_string(b)); };
  Expr difference = simplify(a - b);
  if (difference.constant() == 0) return false;
  SumView whole(difference.node());
  if (difference.is_constant() || whole.constant() % content(whole) != 0) contradict(text(), from, a - b, {});
  difference = strip_nonzero(difference);
  Range known = Simplifier(*this).range(difference.node());
  if ((known.lo && *known.lo > 0) || (known.hi && *known.hi < 0)) contradict(text(), from, a - b, {});

  SumView view(difference.node());
  Term lead = view.terms()[0];
  if (view.terms().size() == 1 && is_unit(lead.coefficient) && lead.monomial->kind == Kind::mod) {
    if (auto c = Expr(lead.monomial->operands()[1]).constant(); c && *c > 0) {
      return congruent(Expr(lead.monomial->operands()[0]), *c, checked_mul(view.constant(), -lead.coefficient), from);
    }
  }
  NormalForm normal = normal_form(difference);
  Range exact = point(normal.scale > 0 ? checked_neg(normal.offset) : normal.offset);
  Term term = solvable_term(difference);
  if (!term.monomial) return store_bound(normal.form, exact, from, true);
  // A symbol disappears; another monomial does not everywhere, so the equation is also kept for the prover.
  if (term.monomial->kind != Kind::symbol) store_bound(normal.form, exact, from, true);
  define(Expr(term.monomial), solve(difference, term), from);
  return true;
}

void Facts::define(Expr key, Expr value, const Evidence& from) {
  auto index = static_cast<uint32_t>(definitions_.size());
  definitions_.push_back({.key = key, .value = value, .evidence = from});
  index_definition(index);
  changed();
  if (key.is_symbol()) {
    replace_symbol(key, from);
    bound(value, {.lo = 0, .hi = {}}, from, false);
  }
}

void Facts::index_definition(uint32_t index) {
  const Definition& fact = definitions_[index];
  definition_of_[fact.key.id()] = index;
  if (!fact.key.is_symbol()) compounds_.push_back(index);
  if (fact.key.node()->kind == Kind::product) {
    products_by_atom_[fact.key.node()->factors()[0].atom->id].push_back(index);
  }
  index_symbols(fact.value, &Occurrences::definitions, index);
}

// The value after a symbol in it was replaced; a definition that would now mention its own key is given up.
void Facts::restate_definition(uint32_t index) {
  Definition& fact = definitions_[index];
  if (!fact.alive) return;
  fact.value = simplify(fact.value);
  fact.alive = !mentions(fact.value.node(), fact.key.node());
  if (fact.alive) return index_symbols(fact.value, &Occurrences::definitions, index);
  definition_of_.erase(fact.key.id());
  if (fact.key.node()->kind == Kind::product) {
    std::erase(products_by_atom_[fact.key.node()->factors()[0].atom->id], index);
  }
  changed();
}

// Restates every fact that mentions a symbol after the symbol was defined.
void Facts::replace_symbol(Expr symbol, const Evidence& from) {
  auto found = occurrences_.find(symbol.id());
  if (found == occurrences_.end()) return;
  Occurrences where = std::move(found->second);
  occurrences_.erase(found);
  for (uint32_t index : where.definitions) restate_definition(index);
  for (uint32_t index : where.bounds) {
    if (!bounds_[index].alive) continue;
    bounds_[index].alive = false;
    bound_of_.erase(bounds_[index].form.id());
    changed();
    Bound old = bounds_[index];
    join(old.lo_evidence, from);
    join(old.hi_evidence, from);
    if (old.range.lo) bound(old.form, {.lo = old.range.lo, .hi = {}}, old.lo_evidence, old.stated);
    if (old.range.hi) bound(old.form, {.lo = {}, .hi = old.range.hi}, old.hi_evidence, old.stated);
  }
  for (uint32_t index : where.congruences) {
    if (!congruences_[index].alive) continue;
    congruences_[index].alive = false;
    congruence_of_.erase(congruences_[index].form.id());
    changed();
    Congruence old = congruences_[index];
    join(old.evidence, from);
    congruent(old.form, old.modulus, old.residue, old.evidence);
  }
}

void Facts::index_symbols(Expr e, std::vector<uint32_t> Occurrences::* list, uint32_t position) {
  std::vector<Expr> keys;
  collect_symbols(e, keys);
  SumView view(e.node());
  for (const Term& term : view.terms()) {
    if (term.monomial->kind != Kind::symbol) keys.push_back(Expr(term.monomial));
  }
  for (Expr key : keys) (occurrences_[key.id()].*list).push_back(position);
}

bool Facts::bound(Expr e, Range range, const Evidence& from, bool stated) {
  Expr simple = simplify(e);
  Range known = Simplifier(*this).range(simple.node());
  if (is_empty(intersect(known, range))) contradict(bound_text(e, range), from, e, {});
  if (intersect(known, range) == known) return false;
  NormalForm normal = normal_form(simple);
  Range wanted = divide_range(range, normal.scale, normal.offset);
  Range result = intersect(Simplifier(*this).range(normal.form.node()), wanted);
  if (is_empty(result)) contradict(bound_text(e, range), from, e, {});
  if (result.lo && result.lo == result.hi) return equal(normal.form, context_->constant(*result.lo), from);
  return store_bound(normal.form, wanted, from, stated);
}

bool Facts::store_bound(Expr form, Range range, const Evidence& from, bool stated) {
  auto [found, added] = bound_of_.emplace(form.id(), static_cast<uint32_t>(bounds_.size()));
  uint32_t index = found->second;
  if (added) {
    bounds_.push_back({.form = form, .range = {}, .lo_evidence = {}, .hi_evidence = {}});
    index_symbols(form, &Occurrences::bounds, index);
  }
  Bound& fact = bounds_[index];
  bool raised = range.lo && (!fact.range.lo || *fact.range.lo < *range.lo);
  bool lowered = range.hi && (!fact.range.hi || *fact.range.hi > *range.hi);
  if (raised) {
    fact.range.lo = range.lo;
    fact.lo_evidence = from;
  }
  if (lowered) {
    fact.range.hi = range.hi;
    fact.hi_evidence = from;
  }
  fact.stated |= stated;
  if (!raised && !lowered) return false;
  changed();
  queue_.push_back(index);
  return true;
}

// Carries bounds from facts to their parts and on to facts that share those parts, for a bounded number of steps.
bool Facts::propagate(bool refined) {
  for (size_t step = 0; step < max_propagation_steps && step < queue_.size(); ++step) {
    Bound fact = bounds_[queue_[step]];
    if (!fact.alive) continue;
    if (fact.form.node()->kind == Kind::sum) {
      propagate_sum(fact);
      continue;
    }
    propagate_atom(fact);
    auto found = occurrences_.find(fact.form.id());
    if (found == occurrences_.end()) continue;
    for (uint32_t other : std::vector<uint32_t>(found->second.bounds)) {
      if (bounds_[other].alive && bounds_[other].form != fact.form) propagate_sum(bounds_[other]);
      if (queue_.size() > max_propagation_steps) break;
    }
  }
  queue_.clear();
  return refined;
}

// From lo <= sum of k*t <= hi: each k*t lies in lo..hi minus the range of the other terms.
void Facts::propagate_sum(const Bound& fact) {
  if (fact.form.node()->kind != Kind::sum || fact.form.node()->count > max_propagated_terms) return;
  Bound whole = fact;
  Evidence from = whole.lo_evidence;
  join(from, whole.hi_evidence);
  for (const Term& term : whole.form.node()->terms()) {
    Range rest = point(0);
    for (const Term& other : whole.form.node()->terms()) {
      if (&other != &term) rest = rest + scale(Simplifier(*this).range(other.monomial), other.coefficient);
    }
    Range allowed = without_huge_bounds(whole.range + scale(rest, -1));
    Expr part = Expr(term.monomial) * term.coefficient;
    Range known = Simplifier(*this).range(part.node());
    if (intersect(known, allowed) == known) continue;
    Evidence reasons = from;
    join(reasons, evidence_about(whole.form));
    bound(part, allowed, reasons, false);
  }
}

// What a bound of floordiv, min, max or a product says about the operands.
void Facts::propagate_atom(const Bound& fact) {
  const Node* node = fact.form.node();
  Evidence from = fact.lo_evidence;
  join(from, fact.hi_evidence);
  if (node->kind == Kind::floordiv) {
    Range divisor = Simplifier(*this).range(node->operands()[1]);
    if (!is_positive(divisor) || divisor.lo != divisor.hi) return;
    Range low = Range{.lo = fact.range.lo, .hi = {}} * divisor;
    Range high = Range{.lo = {}, .hi = fact.range.hi} * divisor + point(*divisor.lo - 1);
    bound(Expr(node->operands()[0]), {.lo = low.lo, .hi = high.hi}, from, false);
  } else if (node->kind == Kind::min || node->kind == Kind::max) {
    Range passed =
        node->kind == Kind::min ? Range{.lo = fact.range.lo, .hi = {}} : Range{.lo = {}, .hi = fact.range.hi};
    for (const Node* operand : node->operands()) {
      if (passed.lo || passed.hi) bound(Expr(operand), passed, from, false);
    }
    propagate_choice(fact, from);
  } else if (node->kind == Kind::product && is_positive(fact.range)) {
    for (const Factor& factor : node->factors()) {
      if (is_natural(Simplifier(*this).range(factor.atom))) bound(Expr(factor.atom), {.lo = 1, .hi = {}}, from, false);
    }
  }
}

// max(a, b) >= lo with a < lo says b >= lo; min(a, b) <= hi likewise.
void Facts::propagate_choice(const Bound& fact, const Evidence& from) {
  const Node* node = fact.form.node();
  bool upper = node->kind == Kind::max;
  std::optional<int64_t> reached = upper ? fact.range.lo : fact.range.hi;
  if (!reached) return;
  const Node* only = nullptr;
  for (const Node* operand : node->operands()) {
    Range known = Simplifier(*this).range(operand);
    if (upper ? known.hi && *known.hi < *reached : known.lo && *known.lo > *reached) continue;
    if (only != nullptr) return;
    only = operand;
  }
  if (only == nullptr) return;
  bound(Expr(only), upper ? Range{.lo = reached, .hi = {}} : Range{.lo = {}, .hi = reached}, from, false);
}

// Reduces k*form + offset = residue to form = r modulo m.
bool Facts::congruent(Expr e, int64_t modulus, int64_t residue, const Evidence& from) {
  auto text = [&] { return fmt::format("mod({}, {}) == {}", to_string(e), modulus, residue); };
  Expr simple = reduce_coefficients(simplify(e), modulus);
  int64_t target = floor_remainder(checked_add(residue, checked_neg(SumView(simple.node()).constant())), modulus);
  if (simple.is_constant()) {
    if (target != 0) contradict(text(), from, e, {});
    return false;
  }
  NormalForm normal = normal_form(simple);
  int64_t g = std::gcd(normal.scale, modulus);
  if (target % g != 0) contradict(text(), from, e, {});
  int64_t m = modulus / g;
  if (m == 1) return false;
  int64_t r = multiply_modulo(target / g, inverse(normal.scale / g, m), m);
  Expr reduced = reduce_coefficients(normal.form, m);
  if (reduced != normal.form) return congruent(reduced, m, r, from);

  Residue known = Simplifier(*this).residue(normal.form.node());
  int64_t shared = std::gcd(known.modulus, m);
  if (floor_remainder(checked_add(known.value, -r), shared) != 0) contradict(text(), from, e, {});
  if (known.modulus % m == 0 || !store_congruence(normal.form, known.modulus, known.value, m, r, from)) return false;
  if (is_empty(Simplifier(*this).range(normal.form.node()))) contradict(text(), from, e, {});
  return true;
}

// Merges form = r1 modulo m1 (known) and form = r2 modulo m2 by the Chinese remainder theorem.
bool Facts::store_congruence(Expr form, int64_t m1, int64_t r1, int64_t m2, int64_t r2, const Evidence& from) {
  int64_t shared = std::gcd(m1, m2);
  int64_t step = m2 / shared;
  int64_t modulus;
  if (__builtin_mul_overflow(m1, step, &modulus)) return false;
  int64_t factor = multiply_modulo(floor_remainder((r2 - r1) / shared, step), inverse(m1 / shared, step), step);
  auto [found, added] = congruence_of_.emplace(form.id(), static_cast<uint32_t>(congruences_.size()));
  if (added) {
    congruences_.push_back({.form = form, .modulus = 1, .residue = 0, .evidence = {}});
    index_symbols(form, &Occurrences::congruences, found->second);
  }
  Congruence& fact = congruences_[found->second];
  fact.modulus = modulus;
  fact.residue = checked_add(r1, checked_mul(m1, factor));
  join(fact.evidence, from);
  changed();
  return true;
}

}  // namespace selkie::sym
