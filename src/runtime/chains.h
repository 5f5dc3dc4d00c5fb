// Which convolutions of a run are made together (kernels/chain.h), and what that means for its memory.
#pragma once

#include <span>
#include <vector>

#include "program/chains.h"
#include "runtime/arena.h"
#include "runtime/versions.h"

namespace selkie::runtime {

class Chains {
 public:
  explicit Chains(const program::Program& program);

  // Those that are worth it at these sizes, in order.
  std::vector<program::Chain> choose(std::span<const int64_t> slots, int threads, Versions& chosen) const;

  // When the tensors of the arena are in use if these are made: what a chain reads until its end, and its result from
  // its beginning on.
  std::vector<Lifetime> lifetimes(std::span<const program::Register> planned,
                                  std::span<const program::Chain> chosen) const;
  // Registers that need no memory: results that only the next link reads.
  std::vector<program::Register> never_stored(std::span<const program::Chain> chosen) const;

 private:
  const program::Program& program_;
  std::vector<program::Chain> all_;
};

}  // namespace selkie::runtime
