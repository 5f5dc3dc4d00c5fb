// The rewrite rules of floordiv, ceildiv, mod, min and max as tables: one file per root operation, best rows first.
// The constructors walk these rows and so does the rule fuzzer. Laws for a new row: the right side is never worse,
// it is defined wherever the left side is, and no row may undo another (no general commutativity).
#pragma once

#include <span>
#include <string_view>

#include "sym/node.h"

namespace selkie::sym {

// Rewrites op(x, y) for canonical x and y; a null result means that the row does not match.
struct BinaryRule {
  std::string_view equation;
  Expr (*rewrite)(Expr x, Expr y);
};

// Rewrites min or max over sorted distinct operands; `kind` says which. Equations are written for min.
struct LatticeRule {
  std::string_view equation;
  Expr (*rewrite)(Kind kind, std::span<const Expr> operands);
};

std::span<const BinaryRule> floordiv_rules();
std::span<const BinaryRule> ceildiv_rules();
std::span<const BinaryRule> mod_rules();
std::span<const LatticeRule> lattice_rules();

// Builds min or max of one or more expressions.
Expr lattice(Kind kind, std::span<const Expr> operands);

}  // namespace selkie::sym
