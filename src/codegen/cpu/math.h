// The functions of one operand that are no instructions, as formulas on vectors of f32 or f64, and their errors.
// math_test.cpp measures them: at most 2 units in the last place for exp, log, sin and cos (3 beyond |x| = 1e4), 3 for
// tanh, erf and sigmoid, 4 for pow. All are right for infinities, NaN, zeros and subnormal numbers.
#pragma once

#include <llvm/IR/Module.h>

#include "codegen/cpu/number.h"

namespace selkie::codegen::cpu {

class Math {
 public:
  Math(llvm::Module& module, const Isa& isa) : module_(module), isa_(isa) {}

  Number exp(Number x);
  Number log(Number x);
  Number tanh(Number x);
  Number erf(Number x);
  Number sigmoid(Number x);
  Number sin(Number x) { return sine(x, 0); }
  Number cos(Number x) { return sine(x, 1); }
  Number pow(Number x, Number y);
  Number mod(Number x, Number y);            // as C's fmod: exact
  Number fma(Number a, Number b, Number c);  // rounded once on every instruction set

 private:
  // x = n * ln2 + r with |r| <= ln2 / 2.
  struct ExpReduced {
    Number n;       // as an integer,
    Number real_n;  // and as what it is
    Number r;
    Number remainder;  // e^r - 1 - r
  };
  // A sum of two numbers, the second much smaller.
  struct Pair {
    Number high;
    Number low;
  };

  ExpReduced reduce_exp(Number x, Number low);
  Number erf_of_double(Number x);
  Number reciprocal_of_next(Number e);
  Number sigmoid_by_guess(Number x);
  Number power_of_two(Number n);  // from an integer
  // Whether one instruction multiplies x by powers of two.
  bool fills_scaling_vector(Number x) const;
  Number scale_at_once(Number x, Number n);
  Number exp_of_sum(Number x, Number low);
  Number exp_between(Number x, Number low);  // where e^x is neither infinite nor far below all numbers
  Number exp_by_sixteenths(Number x, Number low);
  Number split_log(Number x, Number& exponent);
  Pair log_pair(Number x);
  Number sine(Number x, unsigned quarter);
  Number sine_of_reduced(Number r, Number quadrant, unsigned quarter);
  llvm::Function* large_reduction();
  llvm::Function* mod_function();
  Number pow_special(Number x, Number y, Number magnitude);
  Number product_error(Number a, Number b, Number product);
  Number add_to_odd(Number a, Number b);
  Number multiply_add(Number a, Number b, Number c) { return cpu::multiply_add(isa_, a, b, c); }

  llvm::Module& module_;
  const Isa& isa_;
};

}  // namespace selkie::codegen::cpu
