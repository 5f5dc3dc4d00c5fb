#include "compiler/sizes.h"

#include <algorithm>

#include "sym/node.h"

namespace selkie::compiler {

using program::SizeStep;
using program::Slot;

void Sizes::bind(sym::Expr symbol, Slot slot, bool at_entry) {
  if (at_entry) entry_.emplace(slot, true);
  remember(symbol.id(), slot);
  held_.emplace(slot, symbol);
}

void Sizes::remember(uint64_t expression, Slot slot) {
  if (known_.insert_or_assign(expression, slot).second && !scopes_.empty()) scopes_.back().known.push_back(expression);
}

void Sizes::enter() { scopes_.emplace_back(); }

void Sizes::leave() {
  CHECK(later_steps_.empty(), "steps of a scope are not in the program");
  for (uint64_t expression : scopes_.back().known) known_.erase(expression);
  for (const Application& application : scopes_.back().applied) applied_.erase(application);
  scopes_.pop_back();
}

bool Sizes::knows(sym::Expr e) const {
  std::vector<sym::Expr> symbols;
  sym::collect_symbols(e, symbols);
  return std::ranges::all_of(symbols, [&](sym::Expr s) { return known_.contains(s.id()); });
}

Slot Sizes::constant(int64_t value) {
  auto [at, fresh] = constants_.try_emplace(value);
  if (fresh) {
    at->second = new_slot();
    entry_.emplace(at->second, true);
    entry_steps_.push_back({.op = SizeStep::Op::constant, .to = at->second, .value = value});
  }
  return at->second;
}

Slot Sizes::apply(SizeStep::Op op, Slot a, Slot b) {
  auto [at, fresh] = applied_.try_emplace({op, a, b});
  if (fresh) {
    bool early = at_entry(a) && at_entry(b);
    at->second = new_slot();
    if (early) entry_.emplace(at->second, true);
    if (!early && !scopes_.empty()) scopes_.back().applied.push_back(at->first);
    (early ? entry_steps_ : later_steps_).push_back({.op = op, .to = at->second, .a = a, .b = b});
  }
  return at->second;
}

Slot Sizes::slot(sym::Expr e) {
  Slot result = compute(e.node());
  held_.emplace(result, e);
  return result;
}

std::vector<sym::Expr> Sizes::expressions() const {
  std::vector<sym::Expr> out(program_.slots);
  for (const auto& [slot, e] : held_) out[slot] = e;
  return out;
}

Slot Sizes::compute(const sym::Node* node) {
  if (auto at = known_.find(sym::Expr(node).id()); at != known_.end()) return at->second;
  Slot result = 0;
  switch (node->kind) {
    case sym::Kind::constant:
      return constant(node->value);
    case sym::Kind::symbol:
      CHECK(false, "size {} is not known yet", node->name());
      break;
    case sym::Kind::floordiv: {
      Slot a = compute(node->operands()[0]);
      result = apply(SizeStep::Op::divide, a, compute(node->operands()[1]));
      break;
    }
    case sym::Kind::mod: {
      Slot a = compute(node->operands()[0]);
      result = apply(SizeStep::Op::modulo, a, compute(node->operands()[1]));
      break;
    }
    case sym::Kind::min:
    case sym::Kind::max: {
      auto op = node->kind == sym::Kind::min ? SizeStep::Op::minimum : SizeStep::Op::maximum;
      result = compute(node->operands()[0]);
      for (size_t i = 1; i < node->operands().size(); ++i) result = apply(op, result, compute(node->operands()[i]));
      break;
    }
    case sym::Kind::product: {
      std::optional<Slot> product;
      for (const sym::Factor& factor : node->factors())
        for (int64_t i = 0; i < factor.power; ++i) {
          Slot next = compute(factor.atom);
          product = product ? apply(SizeStep::Op::multiply, *product, next) : next;
        }
      result = *product;
      break;
    }
    case sym::Kind::sum: {
      std::optional<Slot> sum;
      for (const sym::Term& term : node->terms()) {
        Slot next = compute(term.monomial);
        bool minus = sum && term.coefficient < 0;
        int64_t factor = minus ? -term.coefficient : term.coefficient;
        if (factor != 1) next = apply(SizeStep::Op::multiply, next, constant(factor));
        sum = sum ? apply(minus ? SizeStep::Op::subtract : SizeStep::Op::add, *sum, next) : next;
      }
      result = node->value == 0 ? *sum : apply(SizeStep::Op::add, *sum, constant(node->value));
      break;
    }
  }
  remember(sym::Expr(node).id(), result);
  return result;
}

}  // namespace selkie::compiler
