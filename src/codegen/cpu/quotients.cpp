#include "codegen/cpu/quotients.h"

#include <algorithm>

#include "sym/range.h"

namespace selkie::codegen::cpu {

using sym::Kind;
using sym::Node;

Quotients::Quotients(Builder& builder, Integers& integers, const kir::Kernel& kernel, const kir::Statement& loop,
                     Number first, const NewSlot& new_slot)
    : builder_(builder), integers_(integers) {
  std::set<kir::ExprId> seen;
  collect(kernel, loop.body, seen);
  counters_ = counters_of(loop.variable.node(), first, new_slot);
}

// What a kernel has of expressions that nothing asks for is not counted.
void Quotients::collect(const kir::Kernel& kernel, const kir::Block& block, std::set<kir::ExprId>& seen) {
  auto walk = [&](auto& self, kir::ExprId id) -> void {
    if (id == kir::no_expr || !seen.insert(id).second) return;
    if (kernel[id].integer) collect(kernel[id].integer.node());
    for (kir::ExprId operand : kernel[id].operands) self(self, operand);
  };
  for (const kir::Statement& s : block) {
    walk(walk, s.value);
    walk(walk, s.index);
    if (s.extent) collect(s.extent.node());
    collect(kernel, s.body, seen);
  }
}

// Divisions by numbers are a product and a shift, or less.
void Quotients::collect(const Node* node) {
  switch (node->kind) {
    case Kind::constant:
    case Kind::symbol:
      return;
    case Kind::sum:
      for (const sym::Term& term : node->terms()) collect(term.monomial);
      return;
    case Kind::product:
      for (const sym::Factor& factor : node->factors()) collect(factor.atom);
      return;
    default:
      break;
  }
  bool natural = std::ranges::all_of(node->operands(), [](const Node* n) { return sym::is_natural(n->range()); });
  if (node->is_division() && natural && node->operands()[1]->kind != Kind::constant &&
      std::ranges::find(divisions_, node) == divisions_.end())
    divisions_.push_back(node);
  for (const Node* operand : node->operands()) collect(operand);
}

std::vector<Quotients::Counter> Quotients::counters_of(const Node* dividend, Number first, const NewSlot& new_slot) {
  std::vector<Counter> counters;
  std::vector<const Node*> divisors;
  for (const Node* division : divisions_) {
    const Node* divisor = division->operands()[1];
    if (division->operands()[0] != dividend || !integers_.is_bound(divisor)) continue;
    auto at = static_cast<size_t>(std::ranges::find(divisors, divisor) - divisors.begin());
    if (at == divisors.size()) {
      divisors.push_back(divisor);
      counters.emplace_back();
    }
    (division->kind == Kind::floordiv ? counters[at].quotient : counters[at].remainder) = division;
  }
  for (size_t i = 0; i < counters.size(); ++i) {
    Counter& c = counters[i];
    // By zero divides only a loop that has no iterations.
    c.divisor = integers_.lower(divisors[i]);
    c.divisor = select(c.divisor == c.divisor.integer(0), c.divisor.integer(1), c.divisor);
    Number quotient(builder_, builder_.CreateUDiv(first.value(), c.divisor.value()));
    c.quotient_slot = new_slot(builder_.getInt64Ty());
    c.remainder_slot = new_slot(builder_.getInt64Ty());
    builder_.CreateStore(quotient.value(), c.quotient_slot);
    builder_.CreateStore((first - quotient * c.divisor).value(), c.remainder_slot);
    if (c.quotient != nullptr) c.of_quotient = counters_of(c.quotient, quotient, new_slot);
  }
  return counters;
}

template <class F>
void Quotients::for_each(std::vector<Counter>& counters, F f) {
  for (Counter& c : counters) {
    f(c);
    for_each(c.of_quotient, f);
  }
}

void Quotients::begin_iteration() {
  for_each(counters_, [&](Counter& c) {
    if (c.quotient != nullptr) integers_.bind(c.quotient, load(c.quotient_slot));
    if (c.remainder != nullptr) integers_.bind(c.remainder, load(c.remainder_slot));
  });
}

// The step is 0 or 1.
void Quotients::advance(Counter& c, Number step) {
  Number remainder = load(c.remainder_slot) + step;
  Number wraps = remainder == c.divisor;
  builder_.CreateStore(select(wraps, remainder.integer(0), remainder).value(), c.remainder_slot);
  Number carry(builder_, builder_.CreateZExt(wraps.value(), builder_.getInt64Ty()));
  builder_.CreateStore((load(c.quotient_slot) + carry).value(), c.quotient_slot);
  for (Counter& next : c.of_quotient) advance(next, carry);
}

void Quotients::end_iteration() {
  for (Counter& c : counters_) advance(c, {builder_, builder_.getInt64(1)});
}

void Quotients::end_loop() {
  for_each(counters_, [&](Counter& c) {
    if (c.quotient != nullptr) integers_.unbind(c.quotient);
    if (c.remainder != nullptr) integers_.unbind(c.remainder);
  });
}

}  // namespace selkie::codegen::cpu
