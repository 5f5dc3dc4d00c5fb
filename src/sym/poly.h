// Questions about and edits of the polynomial form that several rules need. Private to sym/.
#pragma once

#include "sym/node.h"

namespace selkie::sym {

// The greatest common divisor of the coefficients, without the constant part; 0 for a constant.
int64_t content(const SumView& view);

// The coefficient that decides the sign of the canonical form: of the first term, or the constant itself.
int64_t leading_coefficient(const SumView& view);

// The quotient of two monomials, or null; the empty quotient is the constant 1.
const Node* divide_monomial(Interner& interner, const Node* dividend, const Node* divisor);

// The product of all atoms that divide every term, or null if there is none or a constant part stands alone.
const Node* common_monomial(Expr e);

// Both must be non-null; null if they share no atom.
const Node* common_monomial(Interner& interner, const Node* a, const Node* b);

// e / monomial, for a monomial that divides every term.
Expr divide_exact(Expr e, const Node* monomial);

// e / divisor, for a divisor of all coefficients and the constant.
Expr divide_exact(Expr e, int64_t divisor);

// dividend = divisor * quotient + remainder; null quotient if the division would not make the dividend shorter.
struct Division {
  Expr quotient;
  Expr remainder;
};
Division divide(Expr dividend, Expr divisor);

// A lower bound of b - a that holds for all naturals, without building the difference.
std::optional<int64_t> lower_bound_of_difference(Expr b, Expr a);

}  // namespace selkie::sym
