#include "program/verify.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "program/uses.h"

namespace selkie::program {
namespace {

using Storage = RegisterInfo::Storage;

// More sizes than any model has, and few enough that a frame of them is no burden.
constexpr uint32_t most_slots = 1u << 24;
constexpr size_t most_rank = 1024;

class Verifier {
 public:
  // A program, or one of the functions of `whole`.
  Verifier(const Program& program, const Program& whole, std::span<const Program> functions)
      : p_(program), whole_(whole), functions_(functions) {}

  void run() {
    if (p_.slots > most_slots) bad("{} sizes are too many", p_.slots);
    if (p_.entry_slots > p_.slots) bad("{} of {} sizes are known at entry", p_.entry_slots, p_.slots);
    for (size_t r = 0; r < p_.registers.size(); ++r) check_register(static_cast<Register>(r));
    for (const SizeStep& step : p_.steps) slots({step.to, step.a, step.b});
    for (const Check& check : p_.checks) check_check(check);
    for (const IndexCheck& check : p_.index_checks) check_index_check(check);
    for (const Launch& launch : p_.launches) check_launch(launch);
    for (const MatrixProduct& product : p_.products) check_product(product);
    for (const Convolution& convolution : p_.convolutions) check_convolution(convolution);
    for (const IntegerProduct& product : p_.integer_products) check_integer_product(product);
    for (const Attention& attention : p_.attentions) check_attention(attention);
    for (const Recurrent& recurrent : p_.recurrents) check_recurrent(recurrent);
    for (const HostCall& call : p_.host_calls) check_host_call(call);
    for (const FunctionCall& call : p_.calls) check_call(call);
    for (const Bind& bind : p_.binds) check_bind(bind);
    for (const SliceCopy& copy : p_.slice_copies) check_slice_copy(copy);
    for (const Replacement& replacement : p_.replacements) check_replacement(replacement);
    for (const Growth& growth : p_.growths) check_growth(growth);
    for (const Item& item : p_.items) check_item(item);
    for (const Insertion& insertion : p_.insertions) check_insertion(insertion);
    check_inputs();
    for (const Instruction& i : p_.code) check_instruction(i);
    if (p_.results.size() != p_.outputs.size()) bad("{} outputs have {} results", p_.outputs.size(), p_.results.size());
    for (Register r : p_.results) info(r);
    pointed_to_ = pointed_to(p_, p_.code);
    check_flow();
  }

 private:
  template <class... Args>
  [[noreturn]] static void bad(fmt::format_string<Args...> format, Args&&... args) {
    fail("the program is not well formed: {}", fmt::format(format, std::forward<Args>(args)...));
  }

  void slots(std::span<const Slot> list) const {
    for (Slot s : list)
      if (s >= p_.slots) bad("size {} of {}", s, p_.slots);
  }
  void slots(std::initializer_list<Slot> list) const { slots(std::span(list.begin(), list.size())); }
  void slots(const std::vector<std::pair<uint32_t, Slot>>& list) const {
    for (const auto& [at, slot] : list) slots({slot});
  }

  static void index(uint32_t at, size_t count, std::string_view what) {
    if (at >= count) bad("{} {} of {}", what, at, count);
  }

  const RegisterInfo& info(Register r) const {
    index(r, p_.registers.size(), "register");
    return p_.registers[r];
  }

  const RegisterInfo& tensor(Register r) const {
    const RegisterInfo& about = info(r);
    if (!about.is_tensor) bad("register {} must be a tensor", r);
    return about;
  }

  // Library kernels work on these.
  void floats(Register r) const {
    if (tensor(r).dtype != DType::f32) bad("register {} must be of f32", r);
  }
  void optional_floats(Register r) const {
    if (r != no_register) floats(r);
  }

  void check_register(Register r) const {
    const RegisterInfo& about = p_.registers[r];
    slots(about.dims);
    if (about.dims.size() > most_rank) bad("register {} has rank {}", r, about.dims.size());
    if (about.first > about.last || about.last > p_.code.size())
      bad("register {} lives from {} to {}", r, about.first, about.last);
    if (about.storage == Storage::arena || about.storage == Storage::state) {
      tensor(r);
      slots({about.bytes});
    }
    if (about.alternates && about.storage != Storage::arena) bad("register {} has no two places", r);
    if (about.offset) slots({*about.offset});
    if (about.storage == Storage::constant) check_constant(r, about);
    if (about.storage == Storage::view) {
      tensor(r);
      base(r);
    }
  }

  void check_constant(Register r, const RegisterInfo& about) const {
    index(about.constant, whole_.constants.size(), "constant");
    const Tensor& constant = whole_.constants[about.constant];
    if (about.is_tensor && (constant.dtype() != about.dtype || constant.dims().size() != about.dims.size()))
      bad("register {} is not what its constant is", r);
  }

  // The register whose memory a register is seen in.
  Register base(Register r) const {
    for (size_t steps = 0; info(r).storage == Storage::view; ++steps) {
      if (steps > p_.registers.size()) bad("register {} is a view of itself", r);
      r = p_.registers[r].viewed;
    }
    return r;
  }

  void check_check(const Check& check) const {
    slots({check.a, check.b});
    try {
      static_cast<void>(fmt::format(fmt::runtime(check.text), fmt::arg("a", int64_t{0}), fmt::arg("b", int64_t{0})));
    } catch (const fmt::format_error& error) {
      bad("'{}' is not a text of a check: {}", check.text, error.what());
    }
  }

  void check_index_check(const IndexCheck& check) const {
    slots({check.extent});
    DType dtype = tensor(check.indices).dtype;
    if (dtype != DType::i32 && dtype != DType::i64) bad("register {} holds no indices", check.indices);
  }

  void check_launch(const Launch& launch) const {
    index(launch.kernel, whole_.kernels.size(), "kernel");
    if (launch.buffers.empty() || launch.buffers.size() > most_kernel_operands ||
        launch.sizes.size() > most_kernel_operands)
      bad("a kernel is given {} buffers and {} sizes", launch.buffers.size(), launch.sizes.size());
    for (Register r : launch.buffers) tensor(r);
    slots(launch.sizes);
    if (launch.range) slots({*launch.range});
  }

  void check_epilogue(const std::optional<uint32_t>& epilogue) const {
    if (epilogue) index(*epilogue, p_.launches.size(), "launch");
  }

  void check_finish(const Finish& finish, bool can_add) const {
    optional_floats(finish.addend);
    if (finish.addend != no_register && !can_add) bad("a library kernel is to add what it cannot");
    if (!(finish.low <= finish.high)) bad("a clamp from {} to {}", finish.low, finish.high);
  }

  void check_product(const MatrixProduct& product) const {
    for (const MatrixProduct::Factor* factor : {&product.a, &product.b, &product.c}) {
      bool is_packed = product.packed && factor == &product.b;
      DType dtype = tensor(factor->value).dtype;
      if (!is_packed || (dtype != DType::f16 && dtype != DType::bf16)) floats(factor->value);
      slots({factor->row_stride, factor->column_stride});
      slots(factor->batch_strides);
      if (!is_packed && factor->batch_strides.size() != product.batch.size())
        bad("a product over {} axes has {} strides", product.batch.size(), factor->batch_strides.size());
    }
    if (product.packed && (!product.batch.empty() || info(product.b.value).storage != Storage::constant))
      bad("a packed factor must be a constant of one product");
    slots({product.m, product.n, product.k});
    slots(product.batch);
    optional_floats(product.bias);
    check_finish(product.finish, product.batch.empty());
    check_epilogue(product.epilogue);
  }

  void check_convolution(const Convolution& c) const {
    for (Register r : {c.input, c.output}) floats(r);
    optional_floats(c.weights);
    optional_floats(c.winograd);
    bool one_kernel = c.depthwise || c.grouped;
    if (c.weights == no_register && (one_kernel || c.winograd == no_register)) bad("a convolution has no weights");
    if (c.depthwise && c.grouped) bad("a convolution's weights are packed for two kernels");
    if (c.wide_winograd && (c.winograd == no_register || c.stride[1] != 1)) bad("tiles of 6x6 outputs have no weights");
    optional_floats(c.bias);
    if (c.packs_weights && c.winograd != no_register) bad("weights are packed in the call and before");
    for (Register r : {c.packs_weights ? no_register : c.weights, c.winograd})
      if (r != no_register && info(r).storage != Storage::constant) bad("weights must be a constant");
    check_shape(c);
    check_finish(c.finish, !c.depthwise);
    check_epilogue(c.epilogue);
  }

  // Of bytes, by bytes, into i32.
  void check_integer_product(const IntegerProduct& product) const {
    auto bytes = [&](Register r) { return tensor(r).dtype == DType::u8 || tensor(r).dtype == DType::i8; };
    if (!bytes(product.input) || tensor(product.output).dtype != DType::i32)
      bad("an integer product must be of bytes and give 32 bits");
    if (!bytes(product.weights) || info(product.weights).storage != Storage::constant)
      bad("weights must be a constant of bytes");
    if (product.zero != no_register && tensor(product.zero).dtype != tensor(product.input).dtype)
      bad("zero points must be of the type of what they belong to");
    check_shape(product);
    check_epilogue(product.epilogue);
  }

  // Of a convolution of floats or integers.
  void check_shape(const auto& c) const {
    bool whole = c.groups > 0 && c.input_channels > 0 && c.output_channels > 0 && c.input_channels % c.groups == 0 &&
                 c.output_channels % c.groups == 0;
    for (const auto& numbers : {c.kernel, c.stride, c.dilation})
      whole = whole && std::ranges::all_of(numbers, [](int64_t n) { return n > 0; });
    if (!whole) bad("a convolution of {} to {} channels", c.input_channels, c.output_channels);
    slots({c.batch});
    for (const auto& list : {c.input_dims, c.output_dims, c.pads}) slots(list);
  }

  void check_attention(const Attention& a) const {
    for (const Attention::Heads* heads : {&a.query, &a.key, &a.value, &a.output}) {
      floats(heads->value);
      slots(heads->strides);
    }
    slots({a.batch, a.heads, a.key_heads, a.queries, a.keys, a.depth, a.columns});
    if (a.mask == no_register) return;
    slots(a.mask_strides);
    if (tensor(a.mask).dtype != DType::boolean) floats(a.mask);
  }

  void check_recurrent(const Recurrent& r) const {
    floats(r.x);
    floats(r.weights);
    for (Register optional : {r.initial_h, r.initial_c, r.y, r.y_h, r.y_c}) optional_floats(optional);
    if (info(r.weights).storage != Storage::constant) bad("weights must be a constant");
    if (r.lengths != no_register && tensor(r.lengths).dtype != DType::i32) bad("lengths must be of i32");
    if (r.directions < 1 || r.directions > 2 || r.input < 1 || r.hidden < 1)
      bad("a recurrent layer of {} directions from {} to {}", r.directions, r.input, r.hidden);
    slots({r.steps, r.batch});
  }

  void check_host_call(const HostCall& call) const {
    for (Register r : call.operands)
      if (r != no_register) info(r);
    for (Register r : call.results)
      if (r != no_register && info(r).storage != Storage::heap) bad("register {} is no place for a host value", r);
    for (const auto& [name, slot] : call.symbols) slots({slot});
  }

  void check_call(const FunctionCall& call) const {
    index(call.function, functions_.size(), "function");
    const Program& callee = functions_[call.function];
    if (call.operands.size() != callee.inputs.size() || call.results.size() > callee.results.size())
      bad("a call of function {} with {} operands and {} results", call.function, call.operands.size(),
          call.results.size());
    for (Register r : call.operands)
      if (r != no_register) info(r);
    for (Register r : call.results)
      if (r != no_register && info(r).storage != Storage::heap) bad("register {} is no place for a host value", r);
  }

  void check_bind(const Bind& bind) const {
    info(bind.value);
    slots(bind.dims);
    slots(bind.elements);
    slots(bind.negative);
  }

  void check_inputs() const {
    if (p_.parameters.size() != p_.inputs.size())
      bad("{} inputs have {} parameters", p_.inputs.size(), p_.parameters.size());
    for (size_t i = 0; i < p_.inputs.size(); ++i) {
      const Input& input = p_.inputs[i];
      const RegisterInfo& about = info(p_.parameters[i]);
      if (about.storage != Storage::input) bad("parameter {} is no input", i);
      bool is_ranked = input.is_tensor && input.rank;
      if (about.is_tensor != is_ranked ||
          (is_ranked && (about.dtype != input.dtype || about.dims.size() != *input.rank)))
        bad("parameter {} is not what input '{}' is", i, input.name);
    }
  }

  void check_slice_copy(const SliceCopy& copy) const {
    tensor(copy.from);
    tensor(copy.to);
    slots({copy.rows, copy.row_bytes, copy.from_offset, copy.from_stride, copy.to_offset, copy.to_stride});
  }

  void check_replacement(const Replacement& r) const {
    const RegisterInfo& to = tensor(r.to);
    if (to.storage == Storage::constant || to.storage == Storage::input) bad("register {} cannot be changed", r.to);
    if (to.dtype == DType::str || tensor(r.slices).dtype != to.dtype)
      bad("slices of register {} are of another type", r.to);
    if (tensor(r.indices).dtype != DType::i64 || tensor(r.indices).dims.empty())
      bad("register {} does not hold tuples of indices", r.indices);
  }

  void check_growth(const Growth& growth) const {
    slots(growth.empty);
    info(growth.from);
    if (growth.stacks) tensor(growth.from);
    is_host_place(growth.to);
  }

  void check_item(const Item& item) const {
    slots({item.index});
    info(item.sequence);
    is_host_place(item.to);
  }

  void check_insertion(const Insertion& insertion) const {
    info(insertion.item);
    is_host_place(insertion.to);
    info(insertion.sequence);
    if (insertion.takes) is_host_place(insertion.sequence);
    if (insertion.index) slots({*insertion.index});
  }

  void is_host_place(Register r) const {
    if (info(r).storage != Storage::heap) bad("register {} is not on the heap", r);
  }

  void check_move(Register to, Register from) const {
    const RegisterInfo& a = info(to);
    const RegisterInfo& b = info(from);
    if (a.storage == Storage::constant || a.storage == Storage::input) bad("register {} cannot be moved to", to);
    if (a.storage == Storage::heap) return;
    if (!a.is_tensor || !b.is_tensor || a.dtype != b.dtype || a.dtype == DType::str)
      bad("register {} cannot become register {}", to, from);
  }

  // Whether what an instruction names is there.
  void check_instruction(const Instruction& i) const {
    switch (i.op) {
      case Opcode::sizes:
        if (i.a > i.b || i.b > p_.steps.size()) bad("size steps {} to {} of {}", i.a, i.b, p_.steps.size());
        return;
      case Opcode::allocate:
        tensor(i.a);
        return is_host_place(i.a);
      case Opcode::release:
        if (info(i.a).storage != Storage::heap && info(i.a).storage != Storage::state)
          bad("register {} is not on the heap", i.a);
        return;
      case Opcode::jump:
      case Opcode::branch:
        if (i.a > p_.code.size()) bad("a jump to {} of {}", i.a, p_.code.size());
        if (i.op == Opcode::branch) slots({i.b});
        return;
      case Opcode::trip:
        return slots({i.a});
      case Opcode::take:
        is_host_place(i.a);
        return is_host_place(i.b);
      case Opcode::move:
        return check_move(i.a, i.b);
      case Opcode::alternate:
        if (!info(i.a).alternates) bad("register {} has no two places", i.a);
        return;
      case Opcode::scalar:
        if (tensor(i.a).dtype != DType::i64 || !info(i.a).dims.empty()) bad("register {} is no scalar", i.a);
        return slots({i.b});
      case Opcode::length:
        info(i.b);
        return slots({i.a});
      default: {
        auto [count, name] = table(i.op);
        return index(i.a, count, name);
      }
    }
  }

  // What the number in an instruction counts, and how many there are.
  std::pair<size_t, std::string_view> table(Opcode op) const {
    switch (op) {
      case Opcode::check:
      case Opcode::fail:
        return {p_.checks.size(), "check"};
      case Opcode::check_indices:
        return {p_.index_checks.size(), "index check"};
      case Opcode::launch:
        return {p_.launches.size(), "launch"};
      case Opcode::product:
        return {p_.products.size(), "product"};
      case Opcode::convolution:
        return {p_.convolutions.size(), "convolution"};
      case Opcode::integer:
        return {p_.integer_products.size(), "integer product"};
      case Opcode::attention:
        return {p_.attentions.size(), "attention"};
      case Opcode::recurrent:
        return {p_.recurrents.size(), "recurrent layer"};
      case Opcode::host:
        return {p_.host_calls.size(), "host call"};
      case Opcode::call:
        return {p_.calls.size(), "function call"};
      case Opcode::bind:
        return {p_.binds.size(), "bind"};
      case Opcode::copy_slice:
        return {p_.slice_copies.size(), "slice copy"};
      case Opcode::replace:
        return {p_.replacements.size(), "replacement"};
      case Opcode::item:
        return {p_.items.size(), "item"};
      case Opcode::insert:
        return {p_.insertions.size(), "insertion"};
      default:
        return {p_.growths.size(), "growth"};
    }
  }

  // Which registers are set, on every path to an instruction.
  using Set = std::vector<bool>;

  // Follows all paths until nothing changes, then holds every instruction that can be reached against what is set
  // there.
  void check_flow() {
    for (const Instruction& i : p_.code) {
      if (i.op != Opcode::sizes && i.op != Opcode::check && i.op != Opcode::bind) break;
      ++arena_from_;  // as in the virtual machine
    }
    std::vector<bool> is_target(p_.code.size() + 1);
    for (const Instruction& i : p_.code)
      if (jumps(i)) is_target[i.a] = true;
    std::map<size_t, Set> at_target;  // at instructions that others jump to, and at the first
    std::vector<size_t> open;
    auto arrive = [&](size_t at, const Set& set) {
      auto [known, fresh] = at_target.try_emplace(at, set);
      if (!fresh && !keep_common(known->second, set)) return;
      open.push_back(at);
    };
    Set given(p_.registers.size());
    for (Register r : p_.parameters) given[r] = true;
    arrive(0, given);
    while (!open.empty()) {
      size_t at = open.back();
      open.pop_back();
      follow(at, at_target.at(at), is_target, arrive, false);
    }
    auto nowhere = [](size_t, const Set&) {};
    for (const auto& [at, set] : at_target) follow(at, set, is_target, nowhere, true);
  }

  // Whether that took something away.
  static bool keep_common(Set& set, const Set& other) {
    bool changed = false;
    for (size_t r = 0; r < set.size(); ++r)
      if (set[r] && !other[r]) {
        set[r] = false;
        changed = true;
      }
    return changed;
  }

  // From an instruction to the next that others jump to; arrive(instruction, what is set) wherever that leads.
  template <class Arrive>
  void follow(size_t at, Set set, const std::vector<bool>& is_target, Arrive& arrive, bool checks) const {
    for (bool first = true;; ++at, first = false) {
      if (!first && is_target[at]) return arrive(at, set);
      if (at == p_.code.size()) {
        if (checks)
          for (Register r : p_.results) use(r, at, set);
        return;
      }
      const Instruction& i = p_.code[at];
      if (checks) check_uses(i, at, set);
      apply(i, set);
      if (jumps(i)) arrive(i.a, set);
      if (!falls_through(i)) return;
    }
  }

  void apply(const Instruction& i, Set& set) const {
    if (i.op == Opcode::release) {
      set[i.a] = false;
      return;
    }
    if (i.op == Opcode::take) set[i.b] = false;
    if (i.op == Opcode::insert && p_.insertions[i.a].takes) set[p_.insertions[i.a].sequence] = false;
    constexpr Opcode setting[] = {Opcode::host, Opcode::call,   Opcode::allocate, Opcode::collect,
                                  Opcode::item, Opcode::insert, Opcode::move,     Opcode::take};
    if (std::ranges::find(setting, i.op) == std::end(setting)) return;
    for_each_register(p_, i, [&](Register r) {
      if (sets(p_, i, r)) set[r] = true;
    });
  }

  // What an instruction both reads and sets is used before it is set.
  void check_uses(const Instruction& i, size_t at, const Set& set) const {
    for_each_register(p_, i, [&](Register r) {
      if (!sets(p_, i, r) || reads(i, r)) use(r, at, set);
    });
  }

  bool reads(const Instruction& i, Register r) const {
    switch (i.op) {
      case Opcode::host:
        return std::ranges::find(p_.host_calls[i.a].operands, r) != p_.host_calls[i.a].operands.end();
      case Opcode::call:
        return std::ranges::find(p_.calls[i.a].operands, r) != p_.calls[i.a].operands.end();
      case Opcode::move:
      case Opcode::take:
        return r == i.b;
      case Opcode::item:
        return r == p_.items[i.a].sequence;
      case Opcode::insert:
        return r == p_.insertions[i.a].sequence || r == p_.insertions[i.a].item;
      default:
        return false;
    }
  }

  // Constants are there from the start, the arena as soon as the first instruction needs it.
  void use(Register r, size_t at, const Set& set) const {
    Register memory = base(r);
    const RegisterInfo& about = p_.registers[memory];
    if (about.storage == Storage::constant) return;
    if (about.storage == Storage::arena) return lives(memory, at);
    if (!set[memory]) bad("register {} is used at {} before it is set", memory, at);
    for (Register other : pointed_to_[memory])
      if (p_.registers[other].storage == Storage::arena) lives(other, at);
  }

  void lives(Register r, size_t at) const {
    const RegisterInfo& about = p_.registers[r];
    if (at < arena_from_ || at < about.first || at > about.last)
      bad("register {} is used at {}, but lives from {} to {}", r, at, about.first, about.last);
  }

  const Program& p_;
  const Program& whole_;
  std::span<const Program> functions_;
  std::vector<std::vector<Register>> pointed_to_;
  size_t arena_from_ = 0;
};

}  // namespace

void verify(const Program& program, std::span<const Program> functions) {
  Verifier(program, program, functions).run();
  for (const Program& function : functions) {
    if (!function.constants.empty() || !function.kernels.empty() || !function.host_calls.empty())
      fail("the program is not well formed: a function has constants, kernels or host calls of its own");
    Verifier(function, program, functions).run();
  }
}

}  // namespace selkie::program
