// Generates the LLVM function of one kernel.
#pragma once

#include <set>
#include <unordered_map>

#include "codegen/cpu/integers.h"
#include "codegen/cpu/operations.h"

namespace selkie::codegen::cpu {

class Emitter {
 public:
  Emitter(llvm::Module& module, const kir::Kernel& kernel, const Isa& isa);

  // Adds the function to the module under this name.
  void run(const std::string& name);

 private:
  using ExprId = kir::ExprId;
  using Statement = kir::Statement;

  // One vector's worth of iterations of a vector loop, or the scalar code around it.
  struct Part {
    unsigned lanes = 1;
    Number first = {};  // the variable of the vector loop in lane 0
    Number mask = {};   // the lanes that are within the loop; none if all are
    std::unordered_map<ExprId, Number> values = {};
    std::unordered_map<uint32_t, llvm::Value*> locals = {};  // where those are that the vector loop declares
  };

  // How a vector loop is cut.
  struct Shape {
    unsigned lanes = 1;
    unsigned unroll = 1;
    bool masked_tail = false;
  };

  struct Accumulator {
    uint32_t slot;
    kir::Op combine;
    std::vector<llvm::Value*> parts;  // where the vectors are, one for each unrolled part
  };

  // Where the elements of an access are.
  struct Access {
    Number first;                  // index of lane 0
    std::optional<Stride> stride;  // none if `indices` must be asked
    Number indices = {};
    bool is_contiguous(int64_t step) const { return stride && !stride->rest && stride->constant == step; }
  };

  // emit.cpp: statements that are not in vector loops.
  void begin_function(const std::string& name);
  void emit_block(const kir::Block& block);
  void emit_statement(const Statement& s);
  void emit_scalar_loop(const Statement& s);
  void emit_branch(const Statement& s);
  // body(…) for `at`, a place in memory, from its present value in steps while it is below the limit.
  template <class Body>
  void emit_counted(llvm::Value* at, Number limit, int64_t step, Body body);
  llvm::BasicBlock* new_block(const char* name);
  llvm::AllocaInst* new_slot(llvm::Type* type);
  Number range_bound(unsigned index);
  void forget(bool (Emitter::*reads)(ExprId) const, Part& part);
  bool reads_memory(ExprId id) const { return reads_memory_[id]; }
  bool reads_output(ExprId id) const { return reads_output_[id]; }
  bool reads_local(ExprId id) const { return reads_local_[id]; }

  // emit_vector.cpp: vector loops.
  void emit_vector_loop(const Statement& s);
  void find_varying(const Statement& s);
  Shape choose_shape(const Statement& s);
  template <class Visit>
  void visit_reachable(const Statement& s, Visit visit);
  void hoist(ExprId id, std::set<ExprId>& seen);
  void emit_parts(const Statement& s, std::vector<Part>& parts);
  void emit_inner_loop(const Statement& s, std::vector<Part>& parts);
  void set_local(uint32_t slot, Number value, Part& part);
  void emit_accumulate(const Statement& s, std::vector<Part>& parts);
  void emit_tail(const Statement& s, const Shape& shape, llvm::Value* at, Number end);
  void finish_accumulators(unsigned lanes);
  Number reduce(kir::Op combine, DType dtype, Number vector);

  // emit_expression.cpp
  Number value(ExprId id, Part& part);
  Number new_value(ExprId id, Part& part);
  Number integer_value(const kir::Expr& e, Part& part);
  Number combine(kir::Op op, DType dtype, Number a, Number b);
  Access access(ExprId index, Part& part);
  std::optional<Stride> stride(ExprId index);
  Number first_index(ExprId index, Part& part);
  Number load(uint32_t buffer, ExprId index, Number condition, Part& part);
  Number load_lanes(uint32_t buffer, const Access& place, Number condition, unsigned lanes);
  void store(uint32_t buffer, ExprId index, Number stored, Part& part);
  void store_lanes(uint32_t buffer, const Access& place, Number raw, Number condition);
  bool is_maskable(DType dtype) const { return element_size(dtype) >= 4 ? isa_.masks_words : isa_.masks_bytes; }
  llvm::Value* address(uint32_t buffer, Number index);
  Number lane_index(const Access& place, unsigned lane);
  Number iota(unsigned lanes, llvm::Type* element);

  llvm::Module& module_;
  const kir::Kernel& kernel_;
  const Isa& isa_;
  Builder builder_;
  Operations operations_;
  Integers integers_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;  // of slots; code begins in the block after it
  std::vector<llvm::Value*> buffers_;
  std::vector<llvm::Value*> locals_;
  llvm::Value* ranges_ = nullptr;
  unsigned range_depth_ = 0;
  llvm::Value* spare_ = nullptr;  // where lanes that must not store do
  llvm::Value* zeros_ = nullptr;  // where lanes that must not load do

  std::vector<bool> reads_memory_;
  std::vector<bool> reads_output_;  // a buffer that may be written
  std::vector<bool> reads_local_;

  Part root_;
  // Of the present vector loop.
  const sym::Node* variable_ = nullptr;
  std::vector<bool> varies_;
  std::vector<Accumulator> accumulators_;
};

// At most this many instructions' worth of work is unrolled.
unsigned weight(kir::Op op, DType dtype);

}  // namespace selkie::codegen::cpu
