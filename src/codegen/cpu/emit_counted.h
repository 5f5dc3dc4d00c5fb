// The loop that all loops of a kernel are made of. Private to the emitter.
#pragma once

#include "codegen/cpu/emit.h"

namespace selkie::codegen::cpu {

// The check stands at the end, with a copy before the first iteration, so that what is invariant can move out.
template <class Body>
void Emitter::emit_counted(llvm::Value* at, Number limit, int64_t step, Body body) {
  llvm::Type* word = builder_.getInt64Ty();
  llvm::BasicBlock* loop = new_block("loop");
  llvm::BasicBlock* after = new_block("done");
  builder_.CreateCondBr(builder_.CreateICmpSLT(builder_.CreateLoad(word, at), limit.value()), loop, after);
  builder_.SetInsertPoint(loop);
  Number index(builder_, builder_.CreateLoad(word, at));
  body(index);
  llvm::Value* next = builder_.CreateNSWAdd(index.value(), builder_.getInt64(static_cast<uint64_t>(step)));
  builder_.CreateStore(next, at);
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, limit.value()), loop, after);
  builder_.SetInsertPoint(after);
}

}  // namespace selkie::codegen::cpu
