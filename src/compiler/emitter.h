// Emits the program of a module, step by step. Private to the compiler.
#pragma once

#include <functional>

#include "base/memory.h"
#include "codegen/stitch.h"
#include "compiler/compile.h"
#include "compiler/sizes.h"
#include "compiler/winograd_layers.h"
#include "ir/control.h"
#include "kernels/recurrent.h"
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
  Packings& packings() { return out_.packings; }

  // compile.cpp: the frame of a program and what is not a library call.
  void parameters();
  void bind_declared_dims(const Value& parameter);
  void entry_checks();
  void add_entry_checks(const std::vector<EntryCheck>& checks);
  bool can_check(const analysis::Check& check) const;
  void add_check(const analysis::Check& check);
  void flush_checks();
  void flush_steps();
  // The nodes of a region, in order; what is required inside it is checked there.
  void emit_steps(const ir::Region& region);
  // ordering.cpp: the order of steps.
  struct Ordering;
  void emit_ordered(const std::vector<plan::Step>& steps, const ir::Region& region);
  Ordering look_at(const std::vector<plan::Step>& steps, const ir::Region& region);
  std::vector<size_t> order_of(const Ordering& all, size_t begin, size_t end);
  bool is_view(const plan::Step& step) const;
  bool may_be_moved(const plan::Step& step);
  std::vector<int64_t> representative_bytes(const Value& value);
  template <class Function>
  void for_each_read(const plan::Step& step, Function fn) const;
  bool fits(const Value& stored, const std::set<const Node*>& inlined);
  void emit(const plan::Step& step);
  // A node of a step whose kernel needs sizes that are not known yet.
  void emit_alone(const Node& node, bool may_be_kernel);
  bool is_sized(const codegen::StitchedKernel& kernel) const;
  void emit_view(const Node& node);
  bool emit_parts(const Value& stored, const std::set<const Node*>& inlined);
  // Whether element-wise work leads to the results of a library call, whose epilogue it can be.
  bool follows_library_call(const Node& node, int most_steps);
  void emit_kernel(const Value& stored, codegen::StitchedKernel kernel, const Node& node);
  void emit_host(const Node& node);
  void results();
  void describe();

  // computable.cpp: which nodes have kernels, and which regions are compiled.
  struct KnownSymbols;
  void find_computable();
  void find_computable(const ir::Region& region, KnownSymbols& known);
  void find_in_regions(const Node& node, KnownSymbols& known);
  void learn(const Value& value, KnownSymbols& known) const;
  bool is_sized(const Value& value, const KnownSymbols& known) const;
  std::string control_refusal(const Node& node, const KnownSymbols& known) const;
  std::string loop_refusal(const Node& node, const ir::ControlForm& form, const KnownSymbols& known) const;
  KnownSymbols at_first_trip(const Node& node, const ir::ControlForm& form, KnownSymbols known) const;
  bool has_shape_without_trips(const Node& node, const ir::ControlForm& form, size_t output,
                               const KnownSymbols& known) const;
  std::string map_refusal(const Node& node) const;
  bool is_compiled(const Node& node) const { return node.op->control != nullptr && !refused_control_.contains(&node); }
  bool is_possible(const ir::Region& region) const { return rdp_.region(region).entry == analysis::Entry::possible; }

  // assemble.cpp: the whole program from its parts, with lifetimes.
  struct Lifetimes;
  struct Releases;
  void assemble();
  std::vector<program::Instruction> whole_code();
  Lifetimes find_lifetimes(const std::vector<program::Instruction>& code, const std::vector<size_t>& block_of);
  Releases find_releases(const Lifetimes& lifetimes, const std::vector<size_t>& block_of);
  void place_code(const std::vector<program::Instruction>& code, Releases releases, const Lifetimes& lifetimes);
  void extend_over_loops(Lifetimes& lifetimes, const std::vector<size_t>& block_of) const;
  void find_taken(const std::vector<program::Instruction>& code);
  bool is_overwritten(const std::vector<program::Instruction>& code, size_t after, Register r) const;

  // regions.cpp: control flow.
  class Scope;
  struct Trips;
  void emit_control(const Node& node);
  void emit_branch(const Node& node);
  void emit_arm(const Node& node, size_t index, const std::vector<Register>& places);
  void emit_dead(const ir::Region& region);
  void emit_loop(const Node& node, const ir::ControlForm& form);
  // Sequences that are mapped: the parameters that get their items, and how many there are.
  struct Items {
    std::vector<std::pair<const Value*, Register>> sequences;
    Slot count = 0;
  };
  Items map_operands(const Node& node);
  void map_items(const Items& items, Slot index, const Node& node);
  void emit_map(const Node& node);
  void emit_item(const Node& node);
  void emit_call(const Node& node, const std::string& callee);
  void check_constant_dims(const Value& result, Register r, const std::string& callee);
  void emit_insert(const Node& node);
  void emit_length(const Node& node);
  // replacements.cpp
  std::string replacement_refusal(const Node& node, const KnownSymbols& known) const;
  void emit_replacement(const Node& node);
  void add_replacement(const Node& node, Register to, Register indices, Register slices);
  void copy_whole(const Value& like, Register to, Register from);
  bool is_replaced_in_place(const Trips& loop, size_t state);
  Register begin_in_place(const Trips& loop, size_t state);
  void replace_in_place(Trips& loop);
  bool is_known_true(const Value& value) const;
  void count_trips(Trips& loop);
  bool keeps_size(const Trips& loop, size_t state);
  bool keeps_rank(const Trips& loop, size_t state);
  Register ranked(const Value& value, Register r);
  void begin_states(Trips& loop);
  void begin_outputs(Trips& loop);
  uint32_t begin_growth(program::Growth growth);
  std::vector<Slot> empty_dims(const Trips& loop, const Value& result, const Value& yield);
  void begin_trip(Trips& loop);
  void slice_inputs(Trips& loop);
  void plan_yields(Trips& loop);
  void end_trip(Trips& loop);
  void store_outputs(Trips& loop);
  void move_states(Trips& loop);
  void end_loop(Trips& loop);
  // Where a slice of a tensor lies that is cut along an axis.
  struct SliceForm;
  SliceForm slice_form(const ir::SymDims& whole, DType dtype, ir::ControlForm::Slices slices);
  Slot slice_position(const Trips& loop, const SliceForm& form);
  Slot step(program::SizeStep::Op op, Slot a, Slot b);
  void set_slot(Slot to, Slot from);
  // Of a value of one element, which is checked; a negative one may count as 0.
  Slot number(const Value& value, bool is_signed = false);
  // The same of an operand, which a pass may have written on the node; none where it is left out.
  std::optional<Slot> operand_number(const Node& node, size_t operand, bool is_signed = false);
  void bind_index(const Node& node, const ir::Region& body, Slot index);
  void bind_trips(const Node& node, Slot trips);
  bool has_dims(const Value& yield, const ir::Region& region, std::span<const sym::Expr> dims) const;
  bool stacks_as_known(const Node& node, const ir::ControlForm& form, size_t output) const;
  // Where the result of a node with regions goes: a place whose size is known now, or a loose one, for a host value.
  Register result_place(const Value& value);
  Register loose_place(const Value& value);
  bool is_loose(Register r) const { return loose_.contains(r); }
  bool may_be_written_to(const Value& value, const ir::Region& region, Register place, const Layout& layout) const;
  // A place in the arena with what the register holds, which the next trip leaves alone.
  Register kept_copy(Register like, Register from);
  Register moved_aside(Register from);
  size_t jump_instruction(program::Opcode op, Slot condition = 0);
  uint32_t here();
  void land(size_t jump) { code_[jump].a = here(); }
  // Code that does not always run, or runs more than once: what is made inside is used inside.
  struct Block {
    bool is_loop;
    uint32_t begin = 0, end = 0;  // the instruction after the last
    uint32_t join = 0;            // where all paths come together again
    Register first_register = 0, last_register = 0;
    size_t parent = SIZE_MAX;
    std::vector<Register> states = {};
  };
  size_t open_block(bool is_loop);
  void close_block(size_t block);

  void instruction(program::Opcode op, uint32_t a = 0, uint32_t b = 0);
  Register add_register(program::RegisterInfo info);
  // The register of a value as it lies, and in another layout: a copy where it is not yet.
  Register register_of(const Value& value);
  Register register_in(const Value& value, const Layout& layout);
  Register constant_register(Tensor tensor, std::string name);
  // A tensor that a kernel writes: in the arena if its size is known at entry, and an output on the heap.
  Register new_stored(const Value& value);
  Register new_tensor(const Value& value, bool may_be_planned);
  Register place_tensor(const Value& value, bool may_be_planned);
  // A register of a tensor whose dims are known.
  program::RegisterInfo tensor_info(const Value& value, program::RegisterInfo::Storage storage);
  bool may_be_planned(const Value& value) const;
  void bind_symbols(const Value& value, Register r, bool at_entry);
  void bind_own_symbols(const Value& value, Register r);
  Slot slot(sym::Expr e) { return sizes_.slot(e); }
  Slot slot(int64_t value) { return sizes_.slot(module_.symbols().constant(value)); }
  // Of the spatial axes of dims.
  std::array<Slot, 3> spatial_slots(const ir::SymDims& dims, size_t first, int64_t fill);
  sym::Expr elements(const Value& value);
  uint32_t kernel_index(kir::Kernel kernel);
  // Sizes that must be equal for a node to run.
  void add_size_check(const codegen::SizeCheck& check, const std::string& node);
  bool is_in_range(const codegen::IndexCheck& check) const;
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
  Register pack_factor(const Value& b, int64_t k, int64_t n, bool swapped);
  // Without subnormals, which weights lose when they are packed.
  Register bias_of(const Value& bias);
  // A constant is packed once in each form, however many nodes use it: what `pack` gives, or gave before.
  Register packed_once(const ir::Constant& constant, std::vector<int64_t> form, const std::function<Register()>& pack);
  // Weights of a convolution, which are packed when all are known, since those that are transformed share a bound.
  struct Unpacked {
    uint32_t call;
    const ir::Constant* weights;
    std::array<sym::Expr, 3> output;
    std::string name;
  };
  enum class WeightForm : int64_t { depthwise, grouped, direct, winograd, wide_winograd };
  // How filters are packed: all of them, or some, which then lie behind each other as those of a smaller convolution.
  struct FilterPacking {
    WeightForm form;
    std::function<size_t(const kernels::ConvolutionShape&)> elements;
    std::function<void(const kernels::ConvolutionShape&, const float*, float*)> pack;
    int64_t filters_at_once;
  };
  Register packed_weights(const Unpacked& unpacked, const FilterPacking& packing);
  void pack_convolutions();
  void pack_dense(const Unpacked& unpacked, const KeptWeights& kept);
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
  // Its weights, those of the state, biases and peepholes: null where there are none.
  Register pack_recurrent(const kernels::RecurrentShape& shape, const std::array<const ir::Constant*, 4>& weights,
                          const std::string& name);

  Options options_;
  std::vector<EntryCheck> given_checks_;
  ir::Module& module_;
  const analysis::Rdp& rdp_;
  const ir::Function& main_;
  codegen::Stitcher stitcher_;
  Compiled out_;
  std::map<std::pair<const ir::Constant*, std::vector<int64_t>>, Register> packed_forms_;
  std::vector<Unpacked> unpacked_;
  Slab packed_;  // weights as the library wants them, once they are packed
  Sizes sizes_;
  std::map<const Value*, Register> registers_;
  std::map<std::pair<const Value*, Layout>, Register> copies_;
  std::vector<std::pair<const Value*, Layout>> copies_in_order_;
  std::set<const Value*> outputs_;
  std::set<const Node*> computable_;
  std::map<const Node*, std::string> refused_control_;  // regions that are not compiled, and why
  std::map<const Node*, const ir::Region*> homes_;
  const ir::Region* region_ = nullptr;             // that is emitted
  bool is_dead_ = false;                           // it never runs to its end, so that nothing is known of its values
  std::map<const Value*, Register> destinations_;  // where values are to be stored
  std::set<Register> loose_;                       // places of values whose size is known only when they are there
  std::set<const Value*> escaping_;                // values that the next trip of their loop reads
  std::set<const Node*> in_place_;                 // what these replace is a state of their loop, which they change
  std::vector<Block> blocks_;
  size_t block_ = SIZE_MAX;
  std::vector<analysis::Check> later_checks_;
  std::vector<codegen::SizeCheck> made_size_checks_;
  size_t entry_check_count_ = 0;
  std::map<std::string, uint32_t> kernels_by_text_;
  std::vector<program::Instruction> code_;
  std::vector<program::Instruction> entry_code_;
};

// Text that a format string prints as it is.
std::string escaped(const std::string& text);

}  // namespace selkie::compiler
