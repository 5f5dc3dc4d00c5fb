// Expressions, loads and stores, for one lane or for a vector of them.
#include <numeric>

#include "base/error.h"
#include "codegen/cpu/emit.h"
#include "kir/scalar.h"

namespace selkie::codegen::cpu {

using kir::Op;

Number Emitter::value(ExprId id, Part& part) {
  if (&part != &root_ && !varies_[id]) return value(id, root_);
  if (auto it = part.values.find(id); it != part.values.end()) return it->second;
  Number result = new_value(id, part);
  part.values[id] = result;
  return result;
}

Number Emitter::new_value(ExprId id, Part& part) {
  const kir::Expr& e = kernel_[id];
  auto operand = [&](size_t i) { return value(e.operands[i], part); };
  switch (e.op) {
    case Op::integer:
      return integer_value(e, part);
    case Op::constant: {
      kir::Scalar constant = kir::constant_scalar(e.dtype, e.bits);
      llvm::Type* type = register_type(module_.getContext(), e.dtype);
      if (is_float(e.dtype)) return {builder_, llvm::ConstantFP::get(type, constant.real)};
      return {builder_, llvm::ConstantInt::get(type, static_cast<uint64_t>(constant.whole), true)};
    }
    case Op::local:
      if (auto it = part.locals.find(e.slot); it != part.locals.end()) {
        llvm::Type* type = register_type(module_.getContext(), e.dtype);
        if (part.lanes > 1) type = llvm::FixedVectorType::get(type, part.lanes);
        return {builder_, builder_.CreateLoad(type, it->second)};
      }
      return {builder_, builder_.CreateLoad(register_type(module_.getContext(), e.dtype), locals_[e.slot])};
    case Op::load:
      return load(e.slot, e.operands[0], {}, part);
    case Op::load_if: {
      Number condition = operand(1);
      return select(condition, load(e.slot, e.operands[0], condition, part), operand(2));
    }
    case Op::cast:
      return cast(isa_, kernel_[e.operands[0]].dtype, e.dtype, operand(0));
    case Op::bits:
      return reinterpret(isa_, kernel_[e.operands[0]].dtype, e.dtype, operand(0));
    default: {
      size_t count = kir::info(e.op).operands;
      Number operands[3];
      for (size_t i = 0; i < count; ++i) operands[i] = operand(i);
      return operations_.apply(e.op, kernel_[e.operands[count - 1]].dtype, {operands, count});
    }
  }
}

Number Emitter::integer_value(const kir::Expr& e, Part& part) {
  const sym::Node* node = e.integer.node();
  if (part.lanes == 1) return integers_.lower(node, variable_, part.first);
  Number lanes = iota(part.lanes, builder_.getInt64Ty());
  std::optional<Stride> step = integers_.stride(node, variable_);
  if (!step) return integers_.lower(node, variable_, part.first + lanes);
  Number offsets = lanes;
  if (step->constant != 1 || step->rest)
    offsets = lanes * lane_index({.first = part.first.integer(0), .stride = step}, 1);
  return integers_.lower(node, variable_, part.first) + offsets;
}

Number Emitter::combine(Op op, DType dtype, Number a, Number b) {
  Number operands[] = {a, b};
  return operations_.apply(op, dtype, operands);
}

Number Emitter::iota(unsigned lanes, llvm::Type* element) {
  std::vector<llvm::Constant*> values;
  for (unsigned i = 0; i < lanes; ++i) values.push_back(llvm::ConstantInt::get(element, i));
  return {builder_, llvm::ConstantVector::get(values)};
}

// Sums and differences of symbolic integers and of what the same for all lanes is have strides, too.
std::optional<Stride> Emitter::stride(ExprId index) {
  if (!varies_[index]) return Stride{};
  const kir::Expr& e = kernel_[index];
  if (e.op == Op::integer) return integers_.stride(e.integer.node(), variable_);
  if (e.op != Op::add && e.op != Op::sub) return std::nullopt;
  std::optional<Stride> a = stride(e.operands[0]);
  std::optional<Stride> b = stride(e.operands[1]);
  if (!a || !b || (a->rest && b->rest) || (b->rest && e.op == Op::sub)) return std::nullopt;
  return Stride{.constant = e.op == Op::add ? a->constant + b->constant : a->constant - b->constant,
                .rest = a->rest ? a->rest : b->rest};
}

Number Emitter::first_index(ExprId index, Part& part) {
  if (!varies_[index]) return value(index, root_);
  const kir::Expr& e = kernel_[index];
  if (e.op == Op::integer) return integers_.lower(e.integer.node(), variable_, part.first);
  Number a = first_index(e.operands[0], part);
  Number b = first_index(e.operands[1], part);
  return e.op == Op::add ? a + b : a - b;
}

Emitter::Access Emitter::access(ExprId index, Part& part) {
  if (part.lanes == 1) return {.first = value(index, part), .stride = Stride{}};
  if (std::optional<Stride> step = stride(index)) return {.first = first_index(index, part), .stride = step};
  Number indices = value(index, part);
  return {.first = indices.lane(0), .stride = std::nullopt, .indices = indices};
}

// Not inbounds: lanes that a condition keeps from loading may point anywhere.
llvm::Value* Emitter::address(uint32_t buffer, Number index) {
  llvm::Type* type = memory_type(module_.getContext(), kernel_.buffers[buffer].dtype);
  return builder_.CreateGEP(type, buffers_[buffer], index.value());
}

Number Emitter::lane_index(const Access& place, unsigned lane) {
  if (!place.stride) return place.indices.lane(lane);
  Number index = place.first;
  if (place.stride->constant != 0) index = index + index.integer(static_cast<uint64_t>(place.stride->constant) * lane);
  if (place.stride->rest && lane > 0) index = index + Number(builder_, place.stride->rest) * index.integer(lane);
  return index;
}

Number Emitter::load(uint32_t buffer, ExprId index, Number condition, Part& part) {
  DType dtype = kernel_.buffers[buffer].dtype;
  Access place = access(index, part);
  Number wanted = part.mask;
  if (condition.value()) {
    condition = condition.splat(part.lanes);
    wanted = wanted.value() ? wanted & condition : condition;
  }
  llvm::Type* element = memory_type(module_.getContext(), dtype);
  llvm::Align alignment(element_size(dtype));
  if (part.lanes == 1 && !wanted.value())
    return from_memory(isa_, dtype,
                       {builder_, builder_.CreateAlignedLoad(element, address(buffer, place.first), alignment)});
  auto* type = llvm::FixedVectorType::get(element, part.lanes);
  bool masks = wanted.value() && is_maskable(dtype);
  llvm::Value* raw = nullptr;
  if (part.lanes > 1 && place.is_contiguous(1) && masks) {
    raw = builder_.CreateMaskedLoad(type, address(buffer, place.first), alignment, wanted.value(),
                                    llvm::Constant::getNullValue(type));
  } else if (place.is_contiguous(1) && !wanted.value()) {
    raw = builder_.CreateAlignedLoad(type, address(buffer, place.first), alignment);
  } else if (place.is_contiguous(-1) && !wanted.value()) {
    Number last = place.first - place.first.integer(part.lanes - 1);
    raw = builder_.CreateVectorReverse(builder_.CreateAlignedLoad(type, address(buffer, last), alignment));
  } else {
    return from_memory(isa_, dtype, load_lanes(buffer, place, wanted, part.lanes));
  }
  return from_memory(isa_, dtype, {builder_, raw});
}

// Lane by lane; lanes that must not touch the buffer read zeros elsewhere, so that no branch is needed.
Number Emitter::load_lanes(uint32_t buffer, const Access& place, Number condition, unsigned lanes) {
  DType dtype = kernel_.buffers[buffer].dtype;
  llvm::Type* element = memory_type(module_.getContext(), dtype);
  if (condition.value() && !zeros_) {
    auto* type = builder_.getInt64Ty();
    zeros_ = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                      llvm::ConstantInt::get(type, 0));
  }
  auto load_one = [&](unsigned lane) {
    llvm::Value* from = address(buffer, lane_index(place, lane));
    if (condition.value()) from = builder_.CreateSelect(condition.lane(lane).value(), from, zeros_);
    return builder_.CreateAlignedLoad(element, from, llvm::Align(element_size(dtype)));
  };
  if (lanes == 1) return {builder_, load_one(0)};
  llvm::Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, lanes));
  for (unsigned i = 0; i < lanes; ++i) vector = builder_.CreateInsertElement(vector, load_one(i), i);
  return {builder_, vector};
}

void Emitter::store(uint32_t buffer, ExprId index, Number stored, Part& part) {
  DType dtype = kernel_.buffers[buffer].dtype;
  Access place = access(index, part);
  Number raw = to_memory(isa_, dtype, stored).splat(part.lanes);
  llvm::Align alignment(element_size(dtype));
  if (part.lanes == 1) {
    builder_.CreateAlignedStore(raw.value(), address(buffer, place.first), alignment);
  } else if (place.is_contiguous(1) && !part.mask.value()) {
    builder_.CreateAlignedStore(raw.value(), address(buffer, place.first), alignment);
  } else if (place.is_contiguous(1) && is_maskable(dtype)) {
    builder_.CreateMaskedStore(raw.value(), address(buffer, place.first), alignment, part.mask.value());
  } else {
    store_lanes(buffer, place, raw, part.mask);
  }
}

void Emitter::store_lanes(uint32_t buffer, const Access& place, Number raw, Number condition) {
  if (condition.value() && !spare_) spare_ = new_slot(builder_.getInt64Ty());
  llvm::Align alignment(element_size(kernel_.buffers[buffer].dtype));
  for (unsigned i = 0; i < raw.lanes(); ++i) {
    llvm::Value* to = address(buffer, lane_index(place, i));
    if (condition.value()) to = builder_.CreateSelect(condition.lane(i).value(), to, spare_);
    builder_.CreateAlignedStore(raw.lane(i).value(), to, alignment);
  }
}

}  // namespace selkie::codegen::cpu
