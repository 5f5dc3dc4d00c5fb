// Symbolic integers as steps of a program: each expression is computed once, as early as its symbols are known.
#pragma once

#include <map>
#include <optional>

#include "program/program.h"
#include "sym/expr.h"

namespace selkie::compiler {

class Sizes {
 public:
  explicit Sizes(program::Program& program) : program_(program) {}

  program::Slot new_slot() { return program_.slots++; }
  // From now on the symbol is known. At entry: before anything else runs.
  void bind(sym::Expr symbol, program::Slot slot, bool at_entry);
  bool knows(sym::Expr e) const;

  // The slot that holds e, with steps that compute it if there is none; all symbols of e are known.
  program::Slot slot(sym::Expr e);
  // Whether the slot is computed at entry.
  bool at_entry(program::Slot slot) const { return entry_.contains(slot); }

  // What each slot holds, by the first expression that it was asked for; null where it was for none.
  std::vector<sym::Expr> expressions() const;

  // Between the two, what is bound and computed holds only there: in an arm that may not be taken, or in a trip.
  void enter();
  void leave();

  // A step that is not about an expression: loops count and decide with these. `to` is no slot of an expression.
  void step(program::SizeStep step) { later_steps_.push_back(step); }

  // Steps that were not asked for yet, in order.
  std::vector<program::SizeStep> take_entry_steps() { return std::exchange(entry_steps_, {}); }
  std::vector<program::SizeStep> take_later_steps() { return std::exchange(later_steps_, {}); }

 private:
  program::Slot constant(int64_t value);
  program::Slot apply(program::SizeStep::Op op, program::Slot a, program::Slot b);
  program::Slot compute(const sym::Node* node);
  void remember(uint64_t expression, program::Slot slot);

  using Application = std::tuple<program::SizeStep::Op, program::Slot, program::Slot>;
  struct Scope {
    std::vector<uint64_t> known;
    std::vector<Application> applied;
  };

  program::Program& program_;
  std::map<uint64_t, program::Slot> known_;  // by the id of the expression
  std::map<program::Slot, sym::Expr> held_;
  std::map<int64_t, program::Slot> constants_;
  std::map<Application, program::Slot> applied_;
  std::map<program::Slot, bool> entry_;
  std::vector<program::SizeStep> entry_steps_;
  std::vector<program::SizeStep> later_steps_;
  std::vector<Scope> scopes_;
};

}  // namespace selkie::compiler
