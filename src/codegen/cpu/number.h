// Numbers of the code being generated, scalars or vectors, with the operators that formulas are written in.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/cpu/compile.h"

namespace selkie::codegen::cpu {

using Builder = llvm::IRBuilder<>;

// A value with the place where operations on it are generated. An operand that is a scalar where the other is a vector
// is broadcast; a double or integer literal takes the type of the other operand.
class Number {
 public:
  Number() = default;
  Number(Builder& builder, llvm::Value* value) : builder_(&builder), value_(value) {}

  llvm::Value* value() const { return value_; }
  Builder& builder() const { return *builder_; }
  llvm::Type* type() const { return value_->getType(); }
  llvm::Type* element() const { return type()->getScalarType(); }
  bool is_real() const { return type()->isFPOrFPVectorTy(); }
  bool is_vector() const { return type()->isVectorTy(); }
  unsigned lanes() const;
  unsigned bits() const { return element()->getPrimitiveSizeInBits(); }

  // The type of this number's shape with other elements.
  llvm::Type* with_element(llvm::Type* element) const;
  Number constant(double literal) const;      // of this number's type
  Number integer(uint64_t literal) const;     // of this number's shape, as an integer of as many bits
  Number as_integer() const;                  // the same bits
  Number as_real() const;                     // the same bits
  Number convert(llvm::Type* element) const;  // between f32 and f64
  Number splat(unsigned lanes) const;
  Number lane(unsigned index) const;
  Number with_lane(unsigned index, Number element) const;

  friend Number operator+(Number a, Number b);
  friend Number operator-(Number a, Number b);
  friend Number operator*(Number a, Number b);
  friend Number operator/(Number a, Number b);
  friend Number operator-(Number a);
  friend Number operator&(Number a, Number b);
  friend Number operator|(Number a, Number b);
  friend Number operator^(Number a, Number b);
  friend Number operator<<(Number a, uint64_t count);
  friend Number operator>>(Number a, uint64_t count);  // fills with zeros
  friend Number operator<(Number a, Number b);         // of integers: as signed ones
  friend Number operator>(Number a, Number b) { return b < a; }
  friend Number operator==(Number a, Number b);
  friend Number operator!=(Number a, Number b);

  friend Number operator+(Number a, double b) { return a + a.constant(b); }
  friend Number operator-(Number a, double b) { return a - a.constant(b); }
  friend Number operator-(double a, Number b) { return b.constant(a) - b; }
  friend Number operator*(Number a, double b) { return a * a.constant(b); }
  friend Number operator/(double a, Number b) { return b.constant(a) / b; }
  friend Number operator<(Number a, double b) { return a < a.constant(b); }
  friend Number operator>(Number a, double b) { return a.constant(b) < a; }
  friend Number operator==(Number a, double b) { return a == a.constant(b); }

 private:
  Builder* builder_ = nullptr;
  llvm::Value* value_ = nullptr;
};

// Makes vectors of both if one is.
void unify(Number& a, Number& b);

Number shift_signed(Number a, uint64_t count);  // to the right, filling with the sign
Number select(Number condition, Number a, Number b);
Number absolute(Number a);
Number is_nan(Number a);
Number copy_sign(Number magnitude, Number sign);
Number call(llvm::Intrinsic::ID function, Number a);
// a * b + c, rounded once where the instruction set can; for polynomials, not for kir::Op::fma.
Number multiply_add(const Isa& isa, Number a, Number b, Number c);
Number polynomial(const Isa& isa, Number x, std::span<const double> coefficients);  // lowest power first
Number any(Number condition);                                                       // whether one of the lanes holds

}  // namespace selkie::codegen::cpu
