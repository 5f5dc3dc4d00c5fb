#include "program/verify.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace selkie::program {
namespace {

using Storage = RegisterInfo::Storage;

// More sizes than any model has, and few enough that a frame of them is no burden.
constexpr uint32_t most_slots = 1u << 24;
constexpr size_t most_rank = 1024;

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_(program), is_set_(program.registers.size()) {}

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
    for (const Bind& bind : p_.binds) check_bind(bind);
    check_inputs();
    for (size_t i = 0; i < p_.code.size(); ++i) check_instruction(i);
    if (p_.results.size() != p_.outputs.size()) bad("{} outputs have {} results", p_.outputs.size(), p_.results.size());
    for (Register r : p_.results) use(r, p_.code.size());
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
    if (about.storage == Storage::arena) {
      tensor(r);
      slots({about.bytes});
    }
    if (about.storage == Storage::constant) check_constant(r, about);
    if (about.storage == Storage::view) {
      tensor(r);
      base(r);
    }
  }

  void check_constant(Register r, const RegisterInfo& about) const {
    index(about.constant, p_.constants.size(), "constant");
    const Tensor& constant = p_.constants[about.constant];
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
    index(launch.kernel, p_.kernels.size(), "kernel");
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
    if (c.weights == no_register && (c.depthwise || c.winograd == no_register)) bad("a convolution has no weights");
    optional_floats(c.bias);
    for (Register r : {c.weights, c.winograd})
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

  void check_bind(const Bind& bind) const {
    info(bind.value);
    slots(bind.dims);
    slots(bind.elements);
    slots(bind.negative);
  }

  void check_inputs() {
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
      is_set_[p_.parameters[i]] = true;
    }
  }

  void set(Register r) {
    if (info(r).storage != Storage::heap) bad("register {} is not on the heap", r);
    is_set_[r] = true;
  }

  // Constants are there from the start, the arena as soon as the first instruction needs it.
  void use(Register r, size_t at) const {
    Register memory = base(r);
    const RegisterInfo& about = p_.registers[memory];
    if (about.storage == Storage::constant) return;
    if (about.storage == Storage::arena) {
      if (!arena_is_bound_ || at < about.first || at > about.last)
        bad("register {} is used at {}, but lives from {} to {}", memory, at, about.first, about.last);
      return;
    }
    if (!is_set_[memory]) bad("register {} is used at {} before it is set", memory, at);
  }

  void use(std::span<const Register> registers, size_t at) const {
    for (Register r : registers)
      if (r != no_register) use(r, at);
  }
  void use(std::initializer_list<Register> registers, size_t at) const {
    use(std::span(registers.begin(), registers.size()), at);
  }
  void use_epilogue(const std::optional<uint32_t>& launch, size_t at) const {
    if (launch) use(p_.launches[*launch].buffers, at);
  }

  void check_instruction(size_t at) {
    const Instruction& i = p_.code[at];
    // As in the virtual machine.
    if (i.op != Opcode::sizes && i.op != Opcode::check && i.op != Opcode::bind) arena_is_bound_ = true;
    switch (i.op) {
      case Opcode::sizes:
        if (i.a > i.b || i.b > p_.steps.size()) bad("size steps {} to {} of {}", i.a, i.b, p_.steps.size());
        return;
      case Opcode::check:
        return index(i.a, p_.checks.size(), "check");
      case Opcode::check_indices:
        index(i.a, p_.index_checks.size(), "index check");
        return use(p_.index_checks[i.a].indices, at);
      case Opcode::launch:
        index(i.a, p_.launches.size(), "launch");
        return use(p_.launches[i.a].buffers, at);
      case Opcode::bind:
        index(i.a, p_.binds.size(), "bind");
        return use(p_.binds[i.a].value, at);
      case Opcode::allocate:
        tensor(i.a);
        return set(i.a);
      case Opcode::release:
        set(i.a);
        is_set_[i.a] = false;
        return;
      default:
        return check_call(i, at);
    }
  }

  void check_call(const Instruction& i, size_t at) {
    if (i.op == Opcode::product) {
      index(i.a, p_.products.size(), "product");
      const MatrixProduct& m = p_.products[i.a];
      use({m.a.value, m.b.value, m.c.value, m.bias, m.finish.addend}, at);
      use_epilogue(m.epilogue, at);
    } else if (i.op == Opcode::convolution) {
      index(i.a, p_.convolutions.size(), "convolution");
      const Convolution& c = p_.convolutions[i.a];
      use({c.input, c.output, c.weights, c.winograd, c.bias, c.finish.addend}, at);
      use_epilogue(c.epilogue, at);
    } else if (i.op == Opcode::integer) {
      index(i.a, p_.integer_products.size(), "integer product");
      const IntegerProduct& c = p_.integer_products[i.a];
      use({c.input, c.output, c.weights, c.zero}, at);
      use_epilogue(c.epilogue, at);
    } else if (i.op == Opcode::attention) {
      index(i.a, p_.attentions.size(), "attention");
      const Attention& a = p_.attentions[i.a];
      use({a.query.value, a.key.value, a.value.value, a.output.value, a.mask}, at);
    } else if (i.op == Opcode::recurrent) {
      index(i.a, p_.recurrents.size(), "recurrent layer");
      const Recurrent& r = p_.recurrents[i.a];
      use({r.x, r.weights, r.lengths, r.initial_h, r.initial_c, r.y, r.y_h, r.y_c}, at);
    } else {
      index(i.a, p_.host_calls.size(), "host call");
      use(p_.host_calls[i.a].operands, at);
      for (Register r : p_.host_calls[i.a].results)
        if (r != no_register) set(r);
    }
  }

  const Program& p_;
  std::vector<bool> is_set_;
  bool arena_is_bound_ = false;
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace selkie::program
