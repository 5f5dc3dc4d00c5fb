// Quotients and remainders of a loop's variable, which are counted up with it: a division takes longer than much else
// that an iteration does.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "codegen/cpu/integers.h"
#include "kir/kernel.h"

namespace selkie::codegen::cpu {

class Quotients {
 public:
  using NewSlot = std::function<llvm::AllocaInst*(llvm::Type*)>;

  // Before the loop, whose variable begins with `first`. Divisors are what is bound there.
  Quotients(Builder& builder, Integers& integers, const kir::Kernel& kernel, const kir::Statement& loop, Number first,
            const NewSlot& new_slot);

  void begin_iteration();
  void end_iteration();
  void end_loop();

 private:
  // One dividend by one divisor.
  struct Counter {
    const sym::Node* quotient = nullptr;  // null where nothing asks for it
    const sym::Node* remainder = nullptr;
    Number divisor = {};
    llvm::AllocaInst* quotient_slot = nullptr;
    llvm::AllocaInst* remainder_slot = nullptr;
    std::vector<Counter> of_quotient = {};  // what divides it
  };

  std::vector<Counter> counters_of(const sym::Node* dividend, Number first, const NewSlot& new_slot);
  void collect(const kir::Kernel& kernel, const kir::Block& block, std::set<kir::ExprId>& seen);
  void collect(const sym::Node* node);
  void advance(Counter& counter, Number step);
  template <class F>
  void for_each(std::vector<Counter>& counters, F f);
  Number load(llvm::AllocaInst* slot) { return {builder_, builder_.CreateLoad(builder_.getInt64Ty(), slot)}; }

  Builder& builder_;
  Integers& integers_;
  std::vector<const sym::Node*> divisions_;  // of naturals, in the loop
  std::vector<Counter> counters_;
};

}  // namespace selkie::codegen::cpu
