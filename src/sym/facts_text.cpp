// The text form of facts: "N in 1..512", "H % 32 == 0", "a <= b", "a == b + 1".
#include "sym/facts.h"
#include "sym/node.h"
#include "sym/text.h"

namespace selkie::sym {
namespace {

// Splits form in lo..hi with several terms into an order of its positive and negative parts: "a + 3 <= b".
std::string order_text(Expr lower, int64_t offset, Expr upper) {
  Expr left = offset > 0 ? lower + offset : lower;
  Expr right = offset < 0 ? upper - offset : upper;
  return fmt::format("{} <= {}", to_string(left), to_string(right));
}

void print_bound(Expr form, const Range& range, std::vector<std::string>& out) {
  std::string text = to_string(form);
  Expr positive = form.context().constant(0);
  Expr negative = positive;
  SumView view(form.node());
  for (const Term& term : view.terms()) {
    Expr& part = term.coefficient > 0 ? positive : negative;
    part = part + Expr(term.monomial) * (term.coefficient > 0 ? term.coefficient : -term.coefficient);
  }
  if (range.lo && range.lo == range.hi) {
    out.push_back(fmt::format("{} == {}", to_string(positive), to_string(negative + *range.lo)));
  } else if (range.lo && range.hi) {
    out.push_back(fmt::format("{} in {}..{}", text, *range.lo, *range.hi));
  } else if (negative.is_constant()) {
    out.push_back(range.lo ? fmt::format("{} >= {}", text, *range.lo) : fmt::format("{} <= {}", text, *range.hi));
  } else {
    out.push_back(range.lo ? order_text(negative, *range.lo, positive)
                           : order_text(positive, checked_neg(*range.hi), negative));
  }
}

}  // namespace

bool Facts::add(std::string_view text, std::string source) {
  Reader reader(*context_, text);
  bool refined = false;
  do {
    Expr left = reader.expression();
    if (reader.accept_word("in")) {
      int64_t lo = reader.integer();
      reader.expect("..");
      refined |= add_range(left, {.lo = lo, .hi = reader.integer()}, source);
    } else if (reader.accept("==")) {
      refined |= add_equal(left, reader.expression(), source);
    } else if (reader.accept("<=")) {
      refined |= add_less_equal(left, reader.expression(), source);
    } else if (reader.accept(">=")) {
      refined |= add_less_equal(reader.expression(), left, source);
    } else if (reader.accept("<")) {
      refined |= add_less_equal(left + 1, reader.expression(), source);
    } else if (reader.accept(">")) {
      refined |= add_less_equal(reader.expression() + 1, left, source);
    } else {
      reader.fail_here("expected 'in', '==', '<=', '<', '>=' or '>'");
    }
  } while (reader.accept(","));
  reader.finish();
  return refined;
}

std::vector<std::string> Facts::to_strings() const {
  std::vector<std::string> out;
  for (const Definition& fact : definitions_) {
    if (!fact.alive || !fact.key.is_symbol()) continue;  // Other equations are kept as bounds, too.
    out.push_back(fmt::format("{} == {}", to_string(fact.key), to_string(fact.value)));
  }
  for (const Bound& fact : bounds_) {
    if (fact.alive && fact.stated) print_bound(fact.form, fact.range, out);
  }
  for (const Congruence& fact : congruences_) {
    if (!fact.alive) continue;
    bool plain = fact.form.is_symbol();
    out.push_back(plain ? fmt::format("{} % {} == {}", to_string(fact.form), fact.modulus, fact.residue)
                        : fmt::format("mod({}, {}) == {}", to_string(fact.form), fact.modulus, fact.residue));
  }
  return out;
}

}  // namespace selkie::sym
