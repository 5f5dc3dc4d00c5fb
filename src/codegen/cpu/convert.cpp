#include "codegen/cpu/convert.h"

#include <llvm/IR/Intrinsics.h>

#include "base/error.h"

namespace selkie::codegen::cpu {
namespace {

Number resize(Number value, unsigned bits) {
  Builder& builder = value.builder();
  return {builder, builder.CreateZExtOrTrunc(value.value(), value.with_element(builder.getIntNTy(bits)))};
}

// Bit by bit, after Fabian Giesen's float_to_half_fast3_rtne and half_to_float.
Number half_to_single(Number code) {
  Number wide = resize(code, 32);
  Number sign = (wide & wide.integer(0x8000)) << 16;
  Number scaled = ((wide & wide.integer(0x7fff)) << 13).as_real() * 0x1p112;
  Number bits = scaled.as_integer();
  bits = select(scaled < 65536, bits, bits | bits.integer(0x7f800000));
  return (bits | sign).as_real();
}

Number single_to_half(Number value) {
  Number bits = value.as_integer();
  Number sign = bits & bits.integer(0x80000000);
  Number magnitude = bits ^ sign;
  Number special = select(magnitude > bits.integer(0x7f800000), bits.integer(0x7e00), bits.integer(0x7c00));
  Number lift = bits.integer(uint64_t{127 - 15 + 23 - 10 + 1} << 23);
  Number subnormal = (magnitude.as_real() + lift.as_real()).as_integer() - lift;
  Number odd = (magnitude >> 13) & bits.integer(1);
  Number normal = (magnitude + bits.integer(0xc8000fff) + odd) >> 13;
  Number code = select(magnitude < bits.integer(113 << 23), subnormal, normal);
  code = select(magnitude < bits.integer((127 + 16) << 23), code, special);
  return resize(code | (sign >> 16), 16);
}

Number bfloat_to_single(Number code) { return (resize(code, 32) << 16).as_real(); }

Number single_to_bfloat(Number value) {
  Number bits = value.as_integer();
  Number odd = (bits >> 16) & bits.integer(1);
  Number rounded = (bits + bits.integer(0x7fff) + odd) >> 16;
  Number quiet = (bits >> 16) | bits.integer(0x40);
  return resize(select(is_nan(value), quiet, rounded), 16);
}

Number decode(const Isa& isa, DType dtype, Number code) {
  if (dtype == DType::bf16) return bfloat_to_single(code);
  if (!isa.converts_half) return half_to_single(code);
  Builder& builder = code.builder();
  llvm::Value* half = builder.CreateBitCast(code.value(), code.with_element(builder.getHalfTy()));
  return {builder, builder.CreateFPExt(half, code.with_element(builder.getFloatTy()))};
}

Number encode(const Isa& isa, DType dtype, Number value) {
  if (dtype == DType::bf16) return single_to_bfloat(value);
  if (!isa.converts_half) return single_to_half(value);
  Builder& builder = value.builder();
  llvm::Value* half = builder.CreateFPTrunc(value.value(), value.with_element(builder.getHalfTy()));
  return {builder, builder.CreateBitCast(half, value.with_element(builder.getInt16Ty()))};
}

// f64 to f32, to the neighbour with an odd last bit if not exact, so that rounding it further rounds once.
Number single_to_odd(Number value) {
  Number single = value.convert(value.builder().getFloatTy());
  Number back = single.convert(value.builder().getDoubleTy());
  Number code = single.as_integer();
  Number beyond = absolute(back) > absolute(value);
  code = code - Number(code.builder(), code.builder().CreateZExt(beyond.value(), code.type()));
  Number inexact = (back < value) | (back > value);
  return (code | Number(code.builder(), code.builder().CreateZExt(inexact.value(), code.type()))).as_real();
}

Number real_from_whole(DType from, llvm::Type* element, Number value) {
  Builder& builder = value.builder();
  llvm::Type* type = value.with_element(element);
  return {builder,
          is_signed(from) ? builder.CreateSIToFP(value.value(), type) : builder.CreateUIToFP(value.value(), type)};
}

Number whole_from_real(DType to, Number value) {
  Builder& builder = value.builder();
  llvm::Type* type = value.with_element(register_type(builder.getContext(), to));
  auto function = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return {builder, builder.CreateIntrinsic(function, {type, value.type()}, {value.value()})};
}

}  // namespace

llvm::Type* register_type(llvm::LLVMContext& context, DType dtype) {
  if (dtype == DType::f64) return llvm::Type::getDoubleTy(context);
  if (is_float(dtype)) return llvm::Type::getFloatTy(context);
  if (dtype == DType::boolean) return llvm::Type::getInt1Ty(context);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(8 * element_size(dtype)));
}

llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype) {
  if (is_narrow(dtype)) return llvm::Type::getInt16Ty(context);
  return dtype == DType::boolean ? llvm::Type::getInt8Ty(context) : register_type(context, dtype);
}

Number from_memory(const Isa& isa, DType dtype, Number value) {
  if (is_narrow(dtype)) return decode(isa, dtype, value);
  return dtype == DType::boolean ? value != value.integer(0) : value;
}

Number to_memory(const Isa& isa, DType dtype, Number value) {
  if (is_narrow(dtype)) return encode(isa, dtype, value);
  return dtype == DType::boolean ? resize(value, 8) : value;
}

Number round_to(const Isa& isa, DType dtype, Number value) {
  return is_narrow(dtype) ? decode(isa, dtype, encode(isa, dtype, value)) : value;
}

Number cast(const Isa& isa, DType from, DType to, Number value) {
  if (from == to) return value;
  Builder& builder = value.builder();
  llvm::Type* single = builder.getFloatTy();
  llvm::Type* wide = builder.getDoubleTy();
  if (to == DType::boolean) return value != (value.is_real() ? value.constant(0) : value.integer(0));
  if (is_float(from) && is_float(to)) {
    if (is_narrow(to)) return round_to(isa, to, from == DType::f64 ? single_to_odd(value) : value);
    return value.convert(register_type(builder.getContext(), to));
  }
  if (is_float(from)) return whole_from_real(to, value);
  if (is_float(to)) {
    if (!is_narrow(to)) return real_from_whole(from, to == DType::f64 ? wide : single, value);
    if (value.bits() <= 16) return round_to(isa, to, real_from_whole(from, single, value));
    return round_to(isa, to, single_to_odd(real_from_whole(from, wide, value)));
  }
  llvm::Type* type = value.with_element(register_type(builder.getContext(), to));
  return {builder, builder.CreateIntCast(value.value(), type, is_signed(from))};
}

Number reinterpret(const Isa& isa, DType from, DType to, Number value) {
  Number code = to_memory(isa, from, value);
  llvm::Type* type = code.with_element(memory_type(code.builder().getContext(), to));
  return from_memory(isa, to, Number(code.builder(), code.builder().CreateBitCast(code.value(), type)));
}

}  // namespace selkie::codegen::cpu
