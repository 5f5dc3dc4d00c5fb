// Constructors of canonical expressions: the polynomial part here, the other operations through their rule tables.
#include "sym/expr.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "sym/node.h"
#include "sym/range.h"
#include "sym/rules.h"

namespace selkie::sym {
namespace {

Interner& interner(Expr e) { return e.node()->context->interner(); }

Expr walk(std::span<const BinaryRule> rules, Kind kind, Expr x, Expr y) {
  for (const BinaryRule& rule : rules) {
    if (Expr result = rule.rewrite(x, y)) return result;
  }
  Expr operands[] = {x, y};
  return Expr(interner(x).call(kind, operands));
}

// a + factor * b: both term lists are sorted, so this is a merge.
Expr add_scaled(Expr a, Expr b, int64_t factor) {
  SumView left(a.node());
  SumView right(b.node());
  std::span<const Term> x = left.terms();
  std::span<const Term> y = right.terms();
  Terms terms;
  size_t i = 0;
  size_t j = 0;
  while (i < x.size() || j < y.size()) {
    int c = i == x.size() ? 1 : j == y.size() ? -1 : compare(x[i].monomial, y[j].monomial);
    Term term = c <= 0 ? x[i] : Term{checked_mul(y[j].coefficient, factor), y[j].monomial};
    if (c == 0) term.coefficient = checked_add(term.coefficient, checked_mul(y[j].coefficient, factor));
    if (term.coefficient != 0) terms.push_back(term);
    i += c <= 0;
    j += c >= 0;
  }
  int64_t constant = checked_add(left.constant(), checked_mul(right.constant(), factor));
  return Expr(interner(a).sum(terms.span(), constant));
}

Expr scale(Expr a, int64_t factor) {
  if (factor == 1) return a;
  if (factor == 0) return Expr(interner(a).constant(0));
  SumView view(a.node());
  Terms terms;
  for (const Term& term : view.terms()) terms.push_back({checked_mul(term.coefficient, factor), term.monomial});
  return Expr(interner(a).sum(terms.span(), checked_mul(view.constant(), factor)));
}

const Node* multiply_monomials(Interner& interner, const Node* a, const Node* b) {
  ProductView left(a);
  ProductView right(b);
  std::span<const Factor> x = left.factors();
  std::span<const Factor> y = right.factors();
  Factors factors;
  size_t i = 0;
  size_t j = 0;
  while (i < x.size() || j < y.size()) {
    int c = i == x.size() ? 1 : j == y.size() ? -1 : compare(x[i].atom, y[j].atom);
    factors.push_back(c == 0 ? Factor{x[i].atom, x[i].power + y[j].power} : c < 0 ? x[i] : y[j]);
    i += c <= 0;
    j += c >= 0;
  }
  return interner.product(factors.span());
}

// Sorts terms and adds up equal monomials.
Expr combine(Interner& interner, Terms& terms, int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare(a.monomial, b.monomial) < 0; });
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term term = terms[i++];
    for (; i < terms.size() && terms[i].monomial == term.monomial; ++i) {
      term.coefficient = checked_add(term.coefficient, terms[i].coefficient);
    }
    if (term.coefficient != 0) terms[kept++] = term;
  }
  terms.resize(kept);
  return Expr(interner.sum(terms.span(), constant));
}

using Memo = std::unordered_map<const Node*, Expr>;

Expr substitute_node(const Node* node, const std::function<Expr(Expr)>& replacement, Memo& memo);

Expr substitute_parts(const Node* node, const std::function<Expr(Expr)>& replacement, Memo& memo) {
  Context& context = *node->context;
  auto part = [&](const Node* n) { return substitute_node(n, replacement, memo); };
  switch (node->kind) {
    case Kind::constant:
      return Expr(node);
    case Kind::symbol: {
      Expr result = replacement(Expr(node));
      return result ? result : Expr(node);
    }
    case Kind::product: {
      Expr result = context.constant(1);
      for (const Factor& factor : node->factors()) {
        Expr base = part(factor.atom);
        for (int64_t i = 0; i < factor.power; ++i) result = result * base;
      }
      return result;
    }
    case Kind::sum: {
      Expr result = context.constant(node->value);
      for (const Term& term : node->terms()) result = result + part(term.monomial) * term.coefficient;
      return result;
    }
    case Kind::floordiv:
      return floordiv(part(node->operands()[0]), part(node->operands()[1]));
    case Kind::mod:
      return mod(part(node->operands()[0]), part(node->operands()[1]));
    default: {
      Operands operands;
      for (const Node* operand : node->operands()) operands.push_back(part(operand));
      return lattice(node->kind, operands.span());
    }
  }
}

Expr substitute_node(const Node* node, const std::function<Expr(Expr)>& replacement, Memo& memo) {
  if (auto found = memo.find(node); found != memo.end()) return found->second;
  Expr result = substitute_parts(node, replacement, memo);
  memo.emplace(node, result);
  return result;
}

void collect(const Node* node, std::unordered_set<const Node*>& seen, std::vector<Expr>& out) {
  if (!seen.insert(node).second) return;
  if (node->kind == Kind::symbol) out.push_back(Expr(node));
  if (node->kind == Kind::sum) {
    for (const Term& term : node->terms()) collect(term.monomial, seen, out);
  } else if (node->kind == Kind::product) {
    for (const Factor& factor : node->factors()) collect(factor.atom, seen, out);
  } else if (node->is_atom() && node->kind != Kind::symbol) {
    for (const Node* operand : node->operands()) collect(operand, seen, out);
  }
}

}  // namespace

bool Expr::is_constant() const { return node_->kind == Kind::constant; }
std::optional<int64_t> Expr::constant() const { return is_constant() ? std::optional(node_->value) : std::nullopt; }
bool Expr::is_symbol() const { return node_->kind == Kind::symbol; }
std::string_view Expr::symbol_name() const {
  CHECK(is_symbol());
  return node_->name();
}
Context& Expr::context() const { return *node_->context; }
uint64_t Expr::id() const { return node_->id; }
Range Expr::range() const { return node_->range(); }

Context::Context() : interner_(std::make_unique<Interner>(*this)) {}
Context::~Context() = default;
Expr Context::constant(int64_t value) { return Expr(interner_->constant(value)); }
Expr Context::symbol(std::string_view name) { return Expr(interner_->symbol(name)); }
size_t Context::size() const { return interner_->size(); }

Expr Context::fresh(std::string_view hint) {
  if (!interner_->has_symbol(hint)) return symbol(hint);
  auto name = [&](int64_t i) { return fmt::format("{}_{}", hint, i); };
  // Numbers are taken from 1 on, so the first that is free is found by halving: a model asks for many of one name.
  int64_t taken = 0;
  int64_t free = 1;
  for (; interner_->has_symbol(name(free)); free *= 2) taken = free;
  while (free - taken > 1) {
    int64_t middle = taken + (free - taken) / 2;
    (interner_->has_symbol(name(middle)) ? taken : free) = middle;
  }
  return symbol(name(free));
}

Expr operator+(Expr a, Expr b) { return add_scaled(a, b, 1); }
Expr operator-(Expr a, Expr b) { return add_scaled(a, b, -1); }
Expr operator-(Expr a) { return scale(a, -1); }

Expr operator*(Expr a, Expr b) {
  if (b.is_constant()) return scale(a, b.node()->value);
  if (a.is_constant()) return scale(b, a.node()->value);
  SumView x(a.node());
  SumView y(b.node());
  if ((x.terms().size() + 1) * (y.terms().size() + 1) > max_terms) {
    fail_limit("product of symbolic expressions has more than {} terms", max_terms);
  }
  Interner& in = interner(a);
  Terms terms;
  for (const Term& s : x.terms()) {
    for (const Term& t : y.terms()) {
      terms.push_back({checked_mul(s.coefficient, t.coefficient), multiply_monomials(in, s.monomial, t.monomial)});
    }
    if (y.constant() != 0) terms.push_back({checked_mul(s.coefficient, y.constant()), s.monomial});
  }
  if (x.constant() != 0) {
    for (const Term& t : y.terms()) terms.push_back({checked_mul(t.coefficient, x.constant()), t.monomial});
  }
  return combine(in, terms, checked_mul(x.constant(), y.constant()));
}

Expr floordiv(Expr a, Expr b) { return walk(floordiv_rules(), Kind::floordiv, a, b); }
Expr mod(Expr a, Expr b) { return walk(mod_rules(), Kind::mod, a, b); }

Expr ceildiv(Expr a, Expr b) {
  for (const BinaryRule& rule : ceildiv_rules()) {
    if (Expr result = rule.rewrite(a, b)) return result;
  }
  report_bug(__FILE__, __LINE__, "the last row of ceildiv always matches", "");
}

Expr min(Expr a, Expr b) {
  Expr operands[] = {a, b};
  return lattice(Kind::min, operands);
}

Expr max(Expr a, Expr b) {
  Expr operands[] = {a, b};
  return lattice(Kind::max, operands);
}

Expr operator+(Expr a, int64_t b) { return a + a.context().constant(b); }
Expr operator+(int64_t a, Expr b) { return b + a; }
Expr operator-(Expr a, int64_t b) { return a - a.context().constant(b); }
Expr operator-(int64_t a, Expr b) { return b.context().constant(a) - b; }
Expr operator*(Expr a, int64_t b) { return scale(a, b); }
Expr operator*(int64_t a, Expr b) { return scale(b, a); }
Expr floordiv(Expr a, int64_t b) { return floordiv(a, a.context().constant(b)); }
Expr ceildiv(Expr a, int64_t b) { return ceildiv(a, a.context().constant(b)); }
Expr mod(Expr a, int64_t b) { return mod(a, a.context().constant(b)); }
Expr min(Expr a, int64_t b) { return min(a, a.context().constant(b)); }
Expr max(Expr a, int64_t b) { return max(a, a.context().constant(b)); }

Expr substitute(Expr e, const std::function<Expr(Expr)>& replacement) {
  Memo memo;
  return substitute_node(e.node(), replacement, memo);
}

void collect_symbols(Expr e, std::vector<Expr>& out) {
  std::unordered_set<const Node*> seen;
  for (Expr symbol : out) seen.insert(symbol.node());
  collect(e.node(), seen, out);
}

}  // namespace selkie::sym
