// Emits the program of a module, step by step. Private to the compiler.
#pragma once

#include <functional>

#include "base/memory.h"
#include "codegen/stitch.h"
#include "compiler/compile.h"
#include "compiler/sizes.h"
#include "plan/groups.h"

namespace selkie::compiler {

// The three spatial axes from those that there are, `fill` before them.
template <class T, class Items>
std::array<T, 3> spatial(const Items& items, size_t first, T fill) {
  std::array<T, 3> out{fill, fill, fill};
  size_t count = items.size() - first;
  for (size_t i = 0; i < count; ++i) out[3 - count + i] = items[first + i];
  return out;
}

class Emitter {
 public:
  Emitter(ir::Module& module, const analysis::Rdp& rdp, std::vector<EntryCheck> checks, Options options);
  Compiled run();

 private:
  using Node = ir::Node;
  using Value = ir::Value;
  using Layout = codegen::Layout;
  using Register = program::Register;
  using Slot = program::Slot;

  program::Program& program() { return out_.program; }

  // compile.cpp: the frame of a program and what is not a library call.
  void parameters();
  void entry_checks();
  bool can_check(const analysis::Check& check) const;
  void add_check(const analysis::Check& check);
  void flush_checks();
  void flush_steps();
  void find_computable();
  bool fits(const Value& stored, const std::set<const Node*>& inlined);
  void emit(const plan::Step& step);
  bool is_sized(const codegen::StitchedKernel& kernel) const;
  void emit_view(const Node& node);
  bool emit_parts(const Value& stored, const std::set<const Node*>& inlined);
  // Whether element-wise work leads to the results of a library call, whose epilogue it can be.
  bool follows_library_call(const Node& node, int most_steps);
  void emit_kernel(const Value& stored, codegen::StitchedKernel kernel, const Node& node);
  void emit_host(const Node& node);
  void results();
  void assemble();
  void describe();
  // fn(register) for all that an instruction uses.
  template <class Function>
  void for_each_register(const program::Instruction& in, Function fn);

  void instruction(program::Opcode op, uint32_t a = 0, uint32_t b = 0);
  Register add_register(program::RegisterInfo info);
  // The register of a value as it lies, and in another layout: a copy where it is not yet.
  Register register_of(const Value& value);
  Register register_in(const Value& value, const Layout& layout);
  Register constant_register(Tensor tensor, std::string name);
  // A tensor that a kernel writes: in the arena if its size is known at entry, and an output on the heap.
  Register new_stored(const Value& value);
  Register new_tensor(const Value& value, bool may_be_planned);
  void bind_symbols(const Value& value, Register r, bool at_entry);
  Slot slot(sym::Expr e) { return sizes_.slot(e); }
  Slot slot(int64_t value) { return sizes_.slot(module_.symbols().constant(value)); }
  // Of the spatial axes of dims.
  std::array<Slot, 3> spatial_slots(const ir::SymDims& dims, size_t first, int64_t fill);
  sym::Expr elements(const Value& value);
  uint32_t kernel_index(kir::Kernel kernel);
  // Sizes that must be equal for a node to run.
  void add_size_check(const codegen::SizeCheck& check, const std::string& node);
  // The launch of a kernel that writes `output`.
  uint32_t add_launch(Register output, codegen::StitchedKernel kernel, std::string name);
  const ir::SymDims& dims_of(const Value& value) { return *rdp_.known(value).type.dims; }

  // library_calls.cpp: instructions that are library kernels, with what is computed on their results in cache.
  bool is_library_call(const Node& node);
  const Node* library_call(const std::set<const Node*>& inlined);
  size_t column_axis(const Node& node);
  void emit_library_call(const Node& node, const Value& stored, const std::set<const Node*>& inlined);
  // Says where the results go and what is done with them there.
  struct Destination {
    Register output;
    std::optional<uint32_t> epilogue = {};
    program::Finish finish = {};
  };
  // What the kernel can do as it stores its results.
  struct Finishes {
    bool adds;
    bool clamps;
  };
  Destination destination(const Node& node, const Value& stored, const std::set<const Node*>& inlined,
                          Finishes finishes);
  std::optional<program::Finish> finish_of(const codegen::StitchedKernel& epilogue, Finishes finishes);
  // The memory that a library kernel writes, which its epilogue turns into what is stored.
  Register producer_register(const Value& produced, const Value& stored, Register output);
  // A factor of a product as its layout has it, or copied if no strides describe that.
  using Factor = program::MatrixProduct::Factor;
  Factor factor(const Value& value, const ir::ProductForm::Matrix& matrix);
  Factor strided(Register r, const Layout& layout, const ir::SymDims& dims, const ir::ProductForm::Matrix& matrix);
  void emit_product(const Node& node, const Value& stored, const std::set<const Node*>& inlined);
  std::optional<Register> packed_factor(const Value& b, const ir::ProductForm& form);
  // Packs all weights that calls take, on several threads.
  void pack_all();
  void pack_weights(const ir::Constant& weights, const std::array<sym::Expr, 3>& output, const std::string& name,
                    program::Convolution& call);
  void emit_convolution(const Node& node, const Value& stored, const std::set<const Node*>& inlined);
  void emit_attention(const Node& node);
  // integer_calls.cpp: the same of bytes.
  bool is_integer_call(const Node& node);
  void emit_integer(const Node& node, const Value& stored, const std::set<const Node*>& inlined);
  program::IntegerProduct integer_product(const Node& node);
  program::IntegerProduct integer_convolution(const Node& node);
  Register packed_bytes(const Node& node, const program::IntegerProduct& call);
  program::Attention::Heads heads(const Value& value);
  // Weights, biases and peepholes of a recurrent layer are packed before the run.
  bool has_constant_weights(const Node& node);
  // All results at once.
  bool emits_whole(const Node& node) { return computable_.contains(&node) && stitcher_.form(node).recurrent; }
  void emit_recurrent(const Node& node);

  Options options_;
  std::vector<EntryCheck> given_checks_;
  ir::Module& module_;
  const analysis::Rdp& rdp_;
  const ir::Function& main_;
  codegen::Stitcher stitcher_;
  Compiled out_;
  Slab packed_;                                  // weights as the library wants them,
  std::vector<std::function<void()>> packings_;  // once these have run
  Sizes sizes_;
  std::map<const Value*, Register> registers_;
  std::map<std::pair<const Value*, Layout>, Register> copies_;
  std::set<const Value*> outputs_;
  std::set<const Node*> computable_;
  std::vector<analysis::Check> later_checks_;
  std::vector<codegen::SizeCheck> made_size_checks_;
  size_t entry_check_count_ = 0;
  std::map<std::string, uint32_t> kernels_by_text_;
  std::vector<program::Instruction> code_;
  std::vector<program::Instruction> entry_code_;
};

}  // namespace selkie::compiler
