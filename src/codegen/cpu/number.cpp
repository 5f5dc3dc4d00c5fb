#include "codegen/cpu/number.h"

#include <llvm/IR/Intrinsics.h>

namespace selkie::codegen::cpu {

using llvm::CmpInst;

unsigned Number::lanes() const {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type());
  return vector ? vector->getNumElements() : 1;
}

llvm::Type* Number::with_element(llvm::Type* element) const {
  return is_vector() ? llvm::FixedVectorType::get(element, lanes()) : element;
}

Number Number::constant(double literal) const {
  if (is_real()) return {*builder_, llvm::ConstantFP::get(type(), literal)};
  return {*builder_, llvm::ConstantInt::getSigned(type(), static_cast<int64_t>(literal))};
}

Number Number::integer(uint64_t literal) const {
  return {*builder_, llvm::ConstantInt::get(with_element(builder_->getIntNTy(bits())), literal)};
}

Number Number::as_integer() const {
  return {*builder_, builder_->CreateBitCast(value_, with_element(builder_->getIntNTy(bits())))};
}

Number Number::as_real() const {
  llvm::Type* element = bits() == 64 ? builder_->getDoubleTy() : builder_->getFloatTy();
  return {*builder_, builder_->CreateBitCast(value_, with_element(element))};
}

Number Number::convert(llvm::Type* element) const {
  return {*builder_, builder_->CreateFPCast(value_, with_element(element))};
}

Number Number::splat(unsigned lanes) const {
  return is_vector() || lanes == 1 ? *this : Number(*builder_, builder_->CreateVectorSplat(lanes, value_));
}

Number Number::lane(unsigned index) const {
  return is_vector() ? Number(*builder_, builder_->CreateExtractElement(value_, index)) : *this;
}

Number Number::with_lane(unsigned index, Number element) const {
  return is_vector() ? Number(*builder_, builder_->CreateInsertElement(value_, element.value(), index)) : element;
}

void unify(Number& a, Number& b) {
  a = a.splat(b.lanes());
  b = b.splat(a.lanes());
}

Number operator+(Number a, Number b) {
  unify(a, b);
  Builder& builder = a.builder();
  return {builder, a.is_real() ? builder.CreateFAdd(a.value(), b.value()) : builder.CreateAdd(a.value(), b.value())};
}

Number operator-(Number a, Number b) {
  unify(a, b);
  Builder& builder = a.builder();
  return {builder, a.is_real() ? builder.CreateFSub(a.value(), b.value()) : builder.CreateSub(a.value(), b.value())};
}

Number operator*(Number a, Number b) {
  unify(a, b);
  Builder& builder = a.builder();
  return {builder, a.is_real() ? builder.CreateFMul(a.value(), b.value()) : builder.CreateMul(a.value(), b.value())};
}

Number operator/(Number a, Number b) {
  unify(a, b);
  return {a.builder(), a.builder().CreateFDiv(a.value(), b.value())};
}

Number operator-(Number a) {
  return {a.builder(), a.is_real() ? a.builder().CreateFNeg(a.value()) : a.builder().CreateNeg(a.value())};
}

Number operator&(Number a, Number b) {
  unify(a, b);
  return {a.builder(), a.builder().CreateAnd(a.value(), b.value())};
}

Number operator|(Number a, Number b) {
  unify(a, b);
  return {a.builder(), a.builder().CreateOr(a.value(), b.value())};
}

Number operator^(Number a, Number b) {
  unify(a, b);
  return {a.builder(), a.builder().CreateXor(a.value(), b.value())};
}

Number operator<<(Number a, uint64_t count) { return {a.builder(), a.builder().CreateShl(a.value(), count)}; }
Number operator>>(Number a, uint64_t count) { return {a.builder(), a.builder().CreateLShr(a.value(), count)}; }
Number shift_signed(Number a, uint64_t count) { return {a.builder(), a.builder().CreateAShr(a.value(), count)}; }

namespace {

Number compare(CmpInst::Predicate real, CmpInst::Predicate whole, Number a, Number b) {
  unify(a, b);
  return {a.builder(), a.builder().CreateCmp(a.is_real() ? real : whole, a.value(), b.value())};
}

}  // namespace

Number operator<(Number a, Number b) { return compare(CmpInst::FCMP_OLT, CmpInst::ICMP_SLT, a, b); }
Number operator==(Number a, Number b) { return compare(CmpInst::FCMP_OEQ, CmpInst::ICMP_EQ, a, b); }
Number operator!=(Number a, Number b) { return compare(CmpInst::FCMP_UNE, CmpInst::ICMP_NE, a, b); }

Number select(Number condition, Number a, Number b) {
  unify(a, b);
  a = a.splat(condition.lanes());
  b = b.splat(condition.lanes());
  return {a.builder(), a.builder().CreateSelect(condition.value(), a.value(), b.value())};
}

Number absolute(Number a) { return call(llvm::Intrinsic::fabs, a); }

Number is_nan(Number a) { return {a.builder(), a.builder().CreateFCmpUNO(a.value(), a.value())}; }

Number copy_sign(Number magnitude, Number sign) {
  unify(magnitude, sign);
  return {sign.builder(), sign.builder().CreateCopySign(magnitude.value(), sign.value())};
}

Number call(llvm::Intrinsic::ID function, Number a) {
  return {a.builder(), a.builder().CreateUnaryIntrinsic(function, a.value())};
}

Number multiply_add(const Isa& isa, Number a, Number b, Number c) {
  if (!isa.has_fma) return a * b + c;
  unify(a, b);
  unify(a, c);
  unify(b, c);
  return {a.builder(),
          a.builder().CreateIntrinsic(llvm::Intrinsic::fma, {a.type()}, {a.value(), b.value(), c.value()})};
}

Number polynomial(const Isa& isa, Number x, std::span<const double> coefficients) {
  Number sum = x.constant(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = multiply_add(isa, sum, x, x.constant(coefficients[i]));
  return sum;
}

Number any(Number condition) {
  return {condition.builder(),
          condition.is_vector() ? condition.builder().CreateOrReduce(condition.value()) : condition.value()};
}

}  // namespace selkie::codegen::cpu
