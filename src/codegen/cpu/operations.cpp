#include "codegen/cpu/operations.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "base/error.h"

namespace selkie::codegen::cpu {
namespace {

using kir::Op;
using llvm::CmpInst;

bool is_ordinary_constant(Number a) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(a.value());
  if (!constant) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* real = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return real && !real->isNaN();
}

// NaN if either is. A comparison with NaN is false, so that the second operand of the choice comes through: where one
// operand cannot be NaN it goes first, and a single instruction does.
Number extreme(Op op, Number a, Number b) {
  unify(a, b);
  auto first_if_beyond = [&](Number x, Number y) { return select(op == Op::max ? x > y : x < y, x, y); };
  if (is_ordinary_constant(b)) return first_if_beyond(b, a);
  Number chosen = first_if_beyond(a, b);
  return is_ordinary_constant(a) ? chosen : select(is_nan(a), a, chosen);
}

Number divide(Op op, DType dtype, Number a, Number b) {
  Builder& builder = a.builder();
  unify(a, b);
  Number zero = b.integer(0);
  Number by_zero = b == zero;
  if (!is_signed(dtype)) {
    Number safe = select(by_zero, b.integer(1), b);
    Number result(builder, op == Op::div ? builder.CreateUDiv(a.value(), safe.value())
                                         : builder.CreateURem(a.value(), safe.value()));
    return select(by_zero, zero, result);
  }
  // The least number divided by -1 traps on some machines.
  Number by_minus_one = b == b.constant(-1);
  Number safe = select(by_zero | by_minus_one, b.integer(1), b);
  Number result(builder, op == Op::div ? builder.CreateSDiv(a.value(), safe.value())
                                       : builder.CreateSRem(a.value(), safe.value()));
  result = select(by_minus_one, op == Op::div ? -a : zero, result);
  return select(by_zero, zero, result);
}

Number shift(Op op, DType dtype, Number a, Number b) {
  Builder& builder = a.builder();
  unify(a, b);
  Number inside(builder, builder.CreateICmpULT(b.value(), b.integer(b.bits()).value()));
  Number count = select(inside, b, b.integer(0));
  llvm::Value* shifted = op == Op::shift_left ? builder.CreateShl(a.value(), count.value())
                         : is_signed(dtype)   ? builder.CreateAShr(a.value(), count.value())
                                              : builder.CreateLShr(a.value(), count.value());
  return select(inside, Number(builder, shifted), a.integer(0));
}

Number compare(Op op, DType dtype, Number a, Number b) {
  unify(a, b);
  Builder& builder = a.builder();
  CmpInst::Predicate predicate{};
  switch (op) {
    case Op::equal:
      predicate = a.is_real() ? CmpInst::FCMP_OEQ : CmpInst::ICMP_EQ;
      break;
    case Op::less:
      predicate = a.is_real() ? CmpInst::FCMP_OLT : is_signed(dtype) ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT;
      break;
    default:
      predicate = a.is_real() ? CmpInst::FCMP_OLE : is_signed(dtype) ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE;
  }
  return {builder, builder.CreateCmp(predicate, a.value(), b.value())};
}

Number binary_intrinsic(llvm::Intrinsic::ID function, Number a, Number b) {
  unify(a, b);
  return {a.builder(), a.builder().CreateBinaryIntrinsic(function, a.value(), b.value())};
}

// Whether the result of a narrow float operation is a value of its dtype without rounding.
bool is_exact(Op op) {
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round:
    case Op::min:
    case Op::max:
    case Op::mod:
      return true;
    default:
      return false;
  }
}

}  // namespace

Number Operations::apply(Op op, DType dtype, std::span<const Number> operands) {
  switch (op) {
    case Op::is_nan:
      return is_nan(operands[0]);
    case Op::equal:
    case Op::less:
    case Op::less_equal:
      return compare(op, dtype, operands[0], operands[1]);
    case Op::select:
      return select(operands[0], operands[1], operands[2]);
    default:
      break;
  }
  if (!is_float(dtype)) return apply_whole(op, dtype, operands[0], operands.size() > 1 ? operands[1] : operands[0]);
  Number result = apply_real(op, operands);
  return is_exact(op) ? result : round_to(isa_, dtype, result);
}

Number Operations::apply_real(Op op, std::span<const Number> operands) {
  Number a = operands[0];
  switch (op) {
    case Op::neg:
      return -a;
    case Op::abs:
      return absolute(a);
    case Op::sqrt:
      return call(llvm::Intrinsic::sqrt, a);
    case Op::floor:
      return call(llvm::Intrinsic::floor, a);
    case Op::ceil:
      return call(llvm::Intrinsic::ceil, a);
    case Op::trunc:
      return call(llvm::Intrinsic::trunc, a);
    case Op::round:
      return call(llvm::Intrinsic::roundeven, a);
    case Op::exp:
      return math_.exp(a);
    case Op::log:
      return math_.log(a);
    case Op::tanh:
      return math_.tanh(a);
    case Op::erf:
      return math_.erf(a);
    case Op::sigmoid:
      return math_.sigmoid(a);
    case Op::sin:
      return math_.sin(a);
    case Op::cos:
      return math_.cos(a);
    case Op::add:
      return a + operands[1];
    case Op::sub:
      return a - operands[1];
    case Op::mul:
      return a * operands[1];
    case Op::div:
      return a / operands[1];
    case Op::mod:
      return math_.mod(a, operands[1]);
    case Op::pow:
      return math_.pow(a, operands[1]);
    case Op::min:
    case Op::max:
      return extreme(op, a, operands[1]);
    case Op::fma:
      return math_.fma(a, operands[1], operands[2]);
    default:
      CHECK(false, "{} of floats", kir::info(op).name);
      return a;
  }
}

Number Operations::apply_whole(Op op, DType dtype, Number a, Number b) {
  Builder& builder = a.builder();
  bool negatives = is_signed(dtype);
  switch (op) {
    case Op::neg:
      return -a;
    case Op::abs:
      return negatives ? select(a < a.integer(0), -a, a) : a;
    case Op::bit_not:
      return {builder, builder.CreateNot(a.value())};
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
    case Op::mod:
      return divide(op, dtype, a, b);
    case Op::min:
      return binary_intrinsic(negatives ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case Op::max:
      return binary_intrinsic(negatives ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case Op::bit_and:
      return a & b;
    case Op::bit_or:
      return a | b;
    case Op::bit_xor:
      return a ^ b;
    case Op::shift_left:
    case Op::shift_right:
      return shift(op, dtype, a, b);
    default:
      CHECK(false, "{} of integers", kir::info(op).name);
      return a;
  }
}

Number identity(Builder& builder, Op combine, DType dtype) {
  llvm::Type* type = register_type(builder.getContext(), dtype);
  if (type->isFloatingPointTy()) {
    // Negative zero, since 0 + -0 = 0 would lose the sign of -0; infinities, since NaN comes through them.
    double value = combine == Op::add ? -0.0 : combine == Op::mul ? 1.0 : combine == Op::min ? HUGE_VAL : -HUGE_VAL;
    return {builder, llvm::ConstantFP::get(type, value)};
  }
  unsigned bits = type->getIntegerBitWidth();
  bool negatives = is_signed(dtype);
  llvm::APInt value(bits, 0);
  if (combine == Op::mul) value = llvm::APInt(bits, 1);
  if (combine == Op::bit_and) value = llvm::APInt::getAllOnes(bits);
  if (combine == Op::min) value = negatives ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  if (combine == Op::max) value = negatives ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getMinValue(bits);
  return {builder, llvm::ConstantInt::get(type, value)};
}

}  // namespace selkie::codegen::cpu
