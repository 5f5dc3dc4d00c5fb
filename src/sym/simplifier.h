// Views of an expression under facts: replaced definitions, ranges, residues. Private to sym/.
#pragma once

#include "sym/facts.h"
#include "sym/node.h"

namespace selkie::sym {

// e = scale * form + offset, with content 1 and a positive first coefficient in form; e must not be constant.
struct NormalForm {
  Expr form;
  int64_t scale;
  int64_t offset;
};
NormalForm normal_form(Expr e);

// value + modulus * (some integer); modulus 0 is exactly the value, modulus 1 says nothing.
struct Residue {
  int64_t modulus;
  int64_t value;
};

// floordiv(e, divisor) where the residue of e is known, and so on, need no search: this class is used by simplify().
class Simplifier {
 public:
  explicit Simplifier(const Facts& facts) : facts_(facts) {}

  Expr simplify(const Node* node);
  Range range(const Node* node);  // Of an expression that is simplified already.
  Residue residue(const Node* node);

 private:
  Expr rebuild(const Node* node);
  Expr rebuild_product(const Node* node);
  Expr rebuild_sum(const Node* node);
  Expr rebuild_division(const Node* node);
  Expr rebuild_lattice(const Node* node);
  Expr apply_product_definitions(Expr product);
  Expr split_known_residues(Kind kind, Expr x, int64_t divisor);
  Expr undo_exact_divisions(Expr sum);
  Expr join_quotient_and_remainder(Expr sum);
  Range range_of_parts(const Node* node);
  Residue residue_of_parts(const Node* node);

  const Facts& facts_;
  int depth_ = 0;
};

}  // namespace selkie::sym
