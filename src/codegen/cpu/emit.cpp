// The function of a kernel and its scalar statements.
#include "codegen/cpu/emit.h"

#include <algorithm>

#include "codegen/cpu/emit_counted.h"
#include "codegen/cpu/quotients.h"

namespace selkie::codegen::cpu {

Emitter::Emitter(llvm::Module& module, const kir::Kernel& kernel, const Isa& isa)
    : module_(module),
      kernel_(kernel),
      isa_(isa),
      builder_(module.getContext()),
      operations_(module, isa),
      integers_(builder_) {
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  builder_.setFastMathFlags(flags);
  size_t count = kernel.expressions.size();
  reads_memory_.resize(count);
  reads_output_.resize(count);
  reads_local_.resize(count);
  for (ExprId id = 0; id < count; ++id) {
    const kir::Expr& e = kernel[id];
    bool is_load = e.op == kir::Op::load || e.op == kir::Op::load_if;
    reads_memory_[id] = is_load;
    reads_output_[id] = is_load && kernel.buffers[e.slot].role != kir::Buffer::Role::input;
    reads_local_[id] = e.op == kir::Op::local;
    for (ExprId operand : e.operands) {
      if (operand == kir::no_expr) continue;
      reads_memory_[id] = reads_memory_[id] || reads_memory_[operand];
      reads_output_[id] = reads_output_[id] || reads_output_[operand];
      reads_local_[id] = reads_local_[id] || reads_local_[operand];
    }
  }
}

void Emitter::run(const std::string& name) {
  begin_function(name);
  emit_block(kernel_.body);
  builder_.CreateRetVoid();
}

void Emitter::begin_function(const std::string& name) {
  llvm::LLVMContext& context = module_.getContext();
  auto* pointer = llvm::PointerType::getUnqual(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function_->setDSOLocal(true);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("no-builtins");
  std::string width = std::to_string(8 * isa_.vector_bytes);
  function_->addFnAttr("prefer-vector-width", width);
  function_->addFnAttr("min-legal-vector-width", width);
  for (llvm::Argument& argument : function_->args()) {
    argument.addAttr(llvm::Attribute::NoAlias);
    argument.addAttr(llvm::Attribute::ReadOnly);
  }
  entry_ = new_block("entry");
  builder_.SetInsertPoint(entry_);
  builder_.SetInsertPoint(builder_.CreateBr(new_block("body"))->getSuccessor(0));
  auto element = [&](llvm::Value* array, llvm::Type* element_type, size_t index) {
    return builder_.CreateLoad(element_type, builder_.CreateConstInBoundsGEP1_64(element_type, array, index));
  };
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) buffers_.push_back(element(function_->getArg(0), pointer, i));
  for (size_t i = 0; i < kernel_.sizes.size(); ++i)
    integers_.bind(kernel_.sizes[i].node(), {builder_, element(function_->getArg(1), builder_.getInt64Ty(), i)});
  for (const kir::Local& local : kernel_.locals) locals_.push_back(new_slot(register_type(context, local.dtype)));
  ranges_ = function_->getArg(2);
}

llvm::BasicBlock* Emitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

llvm::AllocaInst* Emitter::new_slot(llvm::Type* type) {
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(entry_, entry_->begin());
  return builder_.CreateAlloca(type);
}

void Emitter::forget(bool (Emitter::*reads)(ExprId) const, Part& part) {
  std::erase_if(part.values, [&](const auto& entry) { return (this->*reads)(entry.first); });
}

void Emitter::emit_block(const kir::Block& block) {
  for (const Statement& s : block) emit_statement(s);
}

namespace {

bool is_simple(const kir::Statement& s) {
  return s.kind != kir::Statement::Kind::loop && s.kind != kir::Statement::Kind::branch;
}

}  // namespace

Number Emitter::range_bound(unsigned index) {
  llvm::Value* place = builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), ranges_, index);
  return {builder_, builder_.CreateLoad(builder_.getInt64Ty(), place)};
}

void Emitter::emit_statement(const Statement& s) {
  switch (s.kind) {
    case Statement::Kind::loop: {
      // The iterations of a range are independent, so that the second one is as good as a vector loop.
      bool is_vector =
          s.loop_kind == Statement::LoopKind::vector ||
          (range_depth_ == 1 && s.loop_kind == Statement::LoopKind::range && std::ranges::all_of(s.body, is_simple));
      return is_vector ? emit_vector_loop(s) : emit_scalar_loop(s);
    }
    case Statement::Kind::branch:
      return emit_branch(s);
    case Statement::Kind::store:
      store(s.slot, s.index, value(s.value, root_), root_);
      return forget(&Emitter::reads_memory, root_);
    default: {
      Number set = value(s.value, root_);
      if (s.kind == Statement::Kind::accumulate) {
        DType dtype = kernel_.locals[s.slot].dtype;
        llvm::Value* present = builder_.CreateLoad(set.type(), locals_[s.slot]);
        set = combine(s.combine, dtype, Number(builder_, present), set);
      }
      builder_.CreateStore(set.value(), locals_[s.slot]);
      return forget(&Emitter::reads_local, root_);
    }
  }
}

void Emitter::emit_scalar_loop(const Statement& s) {
  llvm::Value* at = new_slot(builder_.getInt64Ty());
  Number limit;
  bool is_range = s.loop_kind == Statement::LoopKind::range;
  if (is_range) {
    builder_.CreateStore(range_bound(2 * range_depth_).value(), at);
    limit = range_bound(2 * range_depth_ + 1);
    ++range_depth_;
  } else {
    builder_.CreateStore(builder_.getInt64(0), at);
    limit = integers_.lower(s.extent.node());
  }
  // What the body writes is not known when its next iteration begins.
  forget(&Emitter::reads_memory, root_);
  forget(&Emitter::reads_local, root_);
  auto outside = root_.values;
  Number first(builder_, builder_.CreateLoad(builder_.getInt64Ty(), at));
  Quotients quotients(builder_, integers_, kernel_, s, first, [&](llvm::Type* type) { return new_slot(type); });
  emit_counted(at, limit, 1, [&](Number index) {
    integers_.bind(s.variable.node(), index);
    quotients.begin_iteration();
    emit_block(s.body);
    quotients.end_iteration();
  });
  quotients.end_loop();
  root_.values = std::move(outside);
  if (is_range) --range_depth_;
}

void Emitter::emit_branch(const Statement& s) {
  llvm::BasicBlock* body = new_block("then");
  llvm::BasicBlock* after = new_block("after");
  builder_.CreateCondBr(value(s.value, root_).value(), body, after);
  auto outside = root_.values;
  builder_.SetInsertPoint(body);
  emit_block(s.body);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
  root_.values = std::move(outside);
  forget(&Emitter::reads_memory, root_);
  forget(&Emitter::reads_local, root_);
}

}  // namespace selkie::codegen::cpu
