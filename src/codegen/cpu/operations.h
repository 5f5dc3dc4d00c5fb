// The scalar operations of the kernel IR on numbers in registers.
#pragma once

#include "codegen/cpu/convert.h"
#include "codegen/cpu/math.h"

namespace selkie::codegen::cpu {

// Operations from neg to fma; `dtype` is that of the operands (of the last one for select).
class Operations {
 public:
  Operations(llvm::Module& module, const Isa& isa) : isa_(isa), math_(module, isa) {}

  Number apply(kir::Op op, DType dtype, std::span<const Number> operands);

 private:
  Number apply_real(kir::Op op, std::span<const Number> operands);
  Number apply_whole(kir::Op op, DType dtype, Number a, Number b);

  const Isa& isa_;
  Math math_;
};

// What an accumulation may start with, without changing the result: combine(identity, x) = x for every x.
Number identity(Builder& builder, kir::Op combine, DType dtype);

}  // namespace selkie::codegen::cpu
