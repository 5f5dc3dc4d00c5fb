// A bounded search for a proof that an expression is natural under facts. Private to sym/.
#pragma once

#include <unordered_set>

#include "sym/facts.h"
#include "sym/simplifier.h"

namespace selkie::sym {

// To prove d >= 0 the search subtracts multiples of known naturals f from d so that a troublesome term cancels, and
// goes on with the rest: d = k*f + rest. The naturals come from order facts and from the definitions of the atoms in d.
class Prover {
 public:
  explicit Prover(const Facts& facts) : facts_(facts), simplifier_(facts) {}

  bool proves_natural(Expr d);  // d must be simplified.
  // The order facts that the last proof rests on, as indices.
  const std::vector<uint32_t>& used() const { return used_; }

 private:
  bool search(Expr d, int depth);
  bool by_facts(Expr d, const Term& term, int depth);
  bool by_atom(Expr d, const Term& term, int depth);
  bool by_floordiv(Expr d, const Term& term, const Node* atom, int depth);
  bool by_lattice(Expr d, const Term& term, int depth);
  bool cancel(Expr d, const Term& term, Expr natural, int depth);
  bool troubles(const Term& term);
  Expr strip(Expr d);

  const Facts& facts_;
  Simplifier simplifier_;
  int budget_ = 0;
  std::unordered_set<uint64_t> visited_;
  std::vector<uint32_t> used_;
};

}  // namespace selkie::sym
