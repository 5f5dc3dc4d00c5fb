// Vector loops: explicit vectors over the loop's variable, unrolled, with a tail of the remaining iterations.
#include <algorithm>

#include "codegen/cpu/emit_counted.h"

namespace selkie::codegen::cpu {

using kir::Op;

namespace {

// Loops of less work are unrolled, so that the latency of one vector's operations is hidden behind the other's.
constexpr unsigned light = 8;
constexpr unsigned medium = 32;
constexpr unsigned lane_by_lane = 12;

}  // namespace

unsigned weight(Op op, DType dtype) {
  switch (op) {
    case Op::integer:
    case Op::constant:
    case Op::local:
      return 0;
    case Op::exp:
    case Op::log:
    case Op::tanh:
    case Op::erf:
    case Op::sigmoid:
    case Op::sin:
    case Op::cos:
    case Op::pow:
      return 20;
    case Op::mod:
      return 20;
    case Op::div:
      return is_float(dtype) ? 2 : 20;
    default:
      return is_narrow(dtype) ? 3 : 1;
  }
}

void Emitter::find_varying(const Statement& s) {
  std::set<uint32_t> declared;
  auto find_declared = [&](auto& self, const kir::Block& block) -> void {
    for (const Statement& part : block) {
      if (part.kind == Statement::Kind::declare) declared.insert(part.slot);
      self(self, part.body);
    }
  };
  find_declared(find_declared, s.body);
  varies_.assign(kernel_.expressions.size(), false);
  for (ExprId id = 0; id < varies_.size(); ++id) {
    const kir::Expr& e = kernel_[id];
    bool varies = (e.op == Op::integer && depends_on(e.integer.node(), variable_)) ||
                  (e.op == Op::local && declared.contains(e.slot));
    for (ExprId operand : e.operands) varies = varies || (operand != kir::no_expr && varies_[operand]);
    varies_[id] = varies;
  }
}

// visit(id, is_index) for every expression that the loop evaluates, once.
template <class Visit>
void Emitter::visit_reachable(const Statement& s, Visit visit) {
  std::set<ExprId> seen;
  auto walk = [&](auto& self, ExprId id, bool is_index) -> void {
    if (id == kir::no_expr || !seen.insert(id).second) return;
    visit(id, is_index);
    const kir::Expr& e = kernel_[id];
    bool is_load = e.op == Op::load || e.op == Op::load_if;
    for (size_t i = 0; i < e.operands.size(); ++i) self(self, e.operands[i], is_index || (is_load && i == 0));
  };
  auto walk_block = [&](auto& self, const kir::Block& block) -> void {
    for (const Statement& part : block) {
      walk(walk, part.value, false);
      walk(walk, part.index, true);
      self(self, part.body);
    }
  };
  walk_block(walk_block, s.body);
}

Emitter::Shape Emitter::choose_shape(const Statement& s) {
  size_t widest = 1;
  unsigned work = 0;
  bool masks = isa_.masks_words;
  auto contiguous = [&](ExprId index) {
    std::optional<Stride> step = stride(index);
    return step && !step->rest && step->constant == 1;
  };
  visit_reachable(s, [&](ExprId id, bool is_index) {
    const kir::Expr& e = kernel_[id];
    if (!varies_[id]) return;
    work += weight(e.op, e.dtype);
    if (e.op == Op::load || e.op == Op::load_if) {
      if (contiguous(e.operands[0]))
        masks = masks && is_maskable(e.dtype);
      else
        work += lane_by_lane;
    }
    if (!is_index) widest = std::max(widest, is_float(e.dtype) ? size_t{4} : element_size(e.dtype));
  });
  for (const Statement& part : s.body) {
    if (part.kind == Statement::Kind::store) {
      DType dtype = kernel_.buffers[part.slot].dtype;
      work += contiguous(part.index) ? 1 : lane_by_lane;
      masks = masks && (!contiguous(part.index) || is_maskable(dtype));
      widest = std::max(widest, is_float(dtype) ? size_t{4} : element_size(dtype));
    }
    if (part.kind == Statement::Kind::accumulate) {
      ++work;
      widest = std::max(widest, element_size(kernel_.locals[part.slot].dtype));
    }
  }
  return {.lanes = isa_.vector_bytes / static_cast<unsigned>(std::min(widest, size_t{4})),
          .unroll = work <= light    ? 4U
                    : work <= medium ? 2U
                                     : 1U,
          .masked_tail = masks};
}

// Evaluates, before the loop, what is the same in all iterations. Inputs do not change while a loop runs whose
// iterations are independent: an element that one iteration overwrites is read by no other.
void Emitter::hoist(ExprId id, std::set<ExprId>& seen) {
  if (id == kir::no_expr || !seen.insert(id).second) return;
  if (!varies_[id] && !reads_output_[id]) {
    value(id, root_);
    return;
  }
  for (ExprId operand : kernel_[id].operands) hoist(operand, seen);
}

void Emitter::emit_vector_loop(const Statement& s) {
  variable_ = s.variable.node();
  find_varying(s);
  bool is_range = s.loop_kind == Statement::LoopKind::range;
  Number begin = is_range ? range_bound(2 * range_depth_) : Number(builder_, builder_.getInt64(0));
  Number end = is_range ? range_bound(2 * range_depth_ + 1) : integers_.lower(s.extent.node());
  llvm::BasicBlock* inside = new_block("vector");
  llvm::BasicBlock* after = new_block("after_vector");
  builder_.CreateCondBr(builder_.CreateICmpSGT(end.value(), begin.value()), inside, after);
  builder_.SetInsertPoint(inside);
  auto outside = root_.values;
  forget(&Emitter::reads_output, root_);
  std::set<ExprId> seen;
  for (const Statement& part : s.body) {
    hoist(part.value, seen);
    hoist(part.index, seen);
  }
  Shape shape = choose_shape(s);
  accumulators_.clear();
  for (const Statement& part : s.body) {
    bool known = std::ranges::any_of(accumulators_, [&](const Accumulator& a) { return a.slot == part.slot; });
    bool declared = std::ranges::any_of(
        s.body, [&](const Statement& t) { return t.kind == Statement::Kind::declare && t.slot == part.slot; });
    if (part.kind != Statement::Kind::accumulate || known || declared) continue;
    Number start = identity(builder_, part.combine, kernel_.locals[part.slot].dtype).splat(shape.lanes);
    Accumulator accumulator{.slot = part.slot, .combine = part.combine, .parts = {}};
    for (unsigned i = 0; i < shape.unroll; ++i) {
      accumulator.parts.push_back(new_slot(start.type()));
      builder_.CreateStore(start.value(), accumulator.parts.back());
    }
    accumulators_.push_back(std::move(accumulator));
  }

  llvm::Value* at = new_slot(builder_.getInt64Ty());
  builder_.CreateStore(begin.value(), at);
  auto hoisted = root_.values;
  auto emit_whole = [&](unsigned unroll) {
    unsigned step = shape.lanes * unroll;
    Number whole = (end - begin) & end.integer(~uint64_t{step - 1});
    Number limit = is_range ? begin + whole : whole;
    emit_counted(at, limit, step, [&](Number index) {
      std::vector<Part> parts(unroll);
      for (unsigned i = 0; i < unroll; ++i)
        parts[i] = {.lanes = shape.lanes, .first = i == 0 ? index : index + index.integer(uint64_t{i} * shape.lanes)};
      emit_parts(s, parts);
    });
    root_.values = hoisted;
  };
  if (shape.unroll > 1) emit_whole(shape.unroll);
  emit_whole(1);
  emit_tail(s, shape, at, end);
  finish_accumulators(shape.lanes);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
  root_.values = std::move(outside);
  forget(&Emitter::reads_memory, root_);
  forget(&Emitter::reads_local, root_);
  variable_ = nullptr;
}

void Emitter::emit_tail(const Statement& s, const Shape& shape, llvm::Value* at, Number end) {
  if (!shape.masked_tail) {
    emit_counted(at, end, 1, [&](Number index) {
      std::vector<Part> parts(1);
      parts[0].first = index;
      emit_parts(s, parts);
    });
    return;
  }
  llvm::BasicBlock* tail = new_block("tail");
  llvm::BasicBlock* done = new_block("done");
  Number index(builder_, builder_.CreateLoad(builder_.getInt64Ty(), at));
  builder_.CreateCondBr((index < end).value(), tail, done);
  builder_.SetInsertPoint(tail);
  Number left(builder_, builder_.CreateTrunc((end - index).value(), builder_.getInt32Ty()));
  std::vector<Part> parts(1);
  parts[0] = {.lanes = shape.lanes, .first = index, .mask = iota(shape.lanes, builder_.getInt32Ty()) < left};
  emit_parts(s, parts);
  builder_.CreateBr(done);
  builder_.SetInsertPoint(done);
}

// Statement by statement, all parts of each: iterations are independent, and the parts' instructions can overlap. All
// loads of a statement come before its stores, so that an output may be the memory of an input.
void Emitter::emit_parts(const Statement& s, std::vector<Part>& parts) {
  for (const Statement& statement : s.body) {
    if (statement.kind == Statement::Kind::loop) {
      emit_inner_loop(statement, parts);
      continue;
    }
    if (statement.kind == Statement::Kind::accumulate) {
      emit_accumulate(statement, parts);
      continue;
    }
    std::vector<Number> values;
    for (Part& part : parts) values.push_back(value(statement.value, part));
    for (size_t i = 0; i < parts.size(); ++i) {
      if (statement.kind == Statement::Kind::store) {
        store(statement.slot, statement.index, values[i], parts[i]);
      } else {
        set_local(statement.slot, values[i], parts[i]);
      }
    }
    if (statement.kind != Statement::Kind::store) continue;
    for (Part& part : parts) forget(&Emitter::reads_memory, part);
    forget(&Emitter::reads_output, root_);
  }
}

void Emitter::set_local(uint32_t slot, Number value, Part& part) {
  value = value.splat(part.lanes);
  auto [at, fresh] = part.locals.try_emplace(slot);
  if (fresh) at->second = new_slot(value.type());
  builder_.CreateStore(value.value(), at->second);
  forget(&Emitter::reads_local, part);
}

// A serial loop that all lanes of all parts run together.
void Emitter::emit_inner_loop(const Statement& s, std::vector<Part>& parts) {
  llvm::Value* at = new_slot(builder_.getInt64Ty());
  builder_.CreateStore(builder_.getInt64(0), at);
  Number limit = integers_.lower(s.extent.node());
  auto forget_written = [&](Part& part) {
    forget(&Emitter::reads_memory, part);
    forget(&Emitter::reads_local, part);
  };
  forget_written(root_);
  auto outside = root_.values;
  std::vector<std::unordered_map<ExprId, Number>> values;
  for (Part& part : parts) {
    forget_written(part);
    values.push_back(part.values);
  }
  emit_counted(at, limit, 1, [&](Number index) {
    integers_.bind(s.variable.node(), index);
    emit_parts(s, parts);
  });
  root_.values = std::move(outside);
  for (size_t i = 0; i < parts.size(); ++i) parts[i].values = std::move(values[i]);
}

void Emitter::emit_accumulate(const Statement& s, std::vector<Part>& parts) {
  DType dtype = kernel_.locals[s.slot].dtype;
  auto accumulator = std::ranges::find(accumulators_, s.slot, &Accumulator::slot);
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    Number next = value(s.value, part);
    if (part.locals.contains(s.slot)) {
      llvm::Value* place = part.locals.at(s.slot);
      next = next.splat(part.lanes);
      Number present(builder_, builder_.CreateLoad(next.type(), place));
      set_local(s.slot, combine(s.combine, dtype, present, next), part);
      continue;
    }
    // A single lane adds to the local itself.
    llvm::Value* place = part.lanes == 1 ? locals_[s.slot] : accumulator->parts[i];
    next = next.splat(part.lanes);
    Number present(builder_, builder_.CreateLoad(next.type(), place));
    Number sum = combine(s.combine, dtype, present, next);
    if (part.mask.value()) sum = select(part.mask, sum, present);
    builder_.CreateStore(sum.value(), place);
  }
}

Number Emitter::reduce(Op op, DType dtype, Number vector) {
  unsigned lanes = vector.lanes();
  for (unsigned half = lanes / 2; half > 0; half /= 2) {
    std::vector<int> upper(lanes, -1);
    for (unsigned i = 0; i < half; ++i) upper[i] = static_cast<int>(half + i);
    Number moved(builder_, builder_.CreateShuffleVector(vector.value(), upper));
    vector = combine(op, dtype, vector, moved);
  }
  return vector.lane(0);
}

void Emitter::finish_accumulators(unsigned lanes) {
  for (const Accumulator& accumulator : accumulators_) {
    DType dtype = kernel_.locals[accumulator.slot].dtype;
    llvm::Type* element = register_type(module_.getContext(), dtype);
    std::vector<Number> parts;
    for (llvm::Value* place : accumulator.parts)
      parts.emplace_back(builder_, builder_.CreateLoad(llvm::FixedVectorType::get(element, lanes), place));
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
      for (size_t i = 0; i < parts.size() / 2; ++i)
        parts[i] = combine(accumulator.combine, dtype, parts[i], parts[i + parts.size() / 2]);
    Number present(builder_, builder_.CreateLoad(element, locals_[accumulator.slot]));
    Number total = combine(accumulator.combine, dtype, present, reduce(accumulator.combine, dtype, parts[0]));
    builder_.CreateStore(total.value(), locals_[accumulator.slot]);
  }
}

}  // namespace selkie::codegen::cpu
