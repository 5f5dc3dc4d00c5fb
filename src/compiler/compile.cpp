#include "compiler/compile.h"

#include <algorithm>

#include "analysis/checks.h"
#include "compiler/emitter.h"
#include "compiler/layouts.h"

namespace selkie::compiler {
namespace {

using analysis::SymbolInfo;
using ir::Known;
using program::Opcode;
using program::RegisterInfo;
using Storage = RegisterInfo::Storage;

std::string check_text(const std::string& required) { return escaped(required) + ", but the sides are {a} and {b}"; }

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
  return out;
}

Emitter::Emitter(ir::Module& module, const analysis::Rdp& rdp, std::vector<EntryCheck> checks, Options options)
    : options_(options),
      given_checks_(std::move(checks)),
      module_(module),
      rdp_(rdp),
      main_(module.main()),
      stitcher_(module, rdp),
      sizes_(out_.program) {
  ir::for_each_node(module.main().body, [&](Node& node, ir::Region& region) { homes_[&node] = &region; });
}

Compiled Emitter::run() {
  parameters();
  entry_checks();
  out_.nodes = main_.body.nodes.size();
  find_computable();
  stitcher_.set_placement(
      choose_layouts(main_.body, computable_, [&](const Node& n) { return is_compiled(n); }, rdp_, stitcher_));
  emit_steps(main_.body);
  results();
  pack_convolutions();
  assemble();
  describe();
  return std::move(out_);
}

void Emitter::emit_steps(const ir::Region& region) {
  const ir::Region* outer = std::exchange(region_, &region);
  plan::FusionRules rules{
      .is_view = [&](const Node& node) { return stitcher_.placement().views.contains(&node); },
      .has_kernel = [&](const Node& node) { return computable_.contains(&node) && !emits_whole(node); },
      .may_be_inlined =
          [&](const Node& node) {
            // Elsewhere each element would have to be looked for among the parts.
            return !stitcher_.form(node).concatenation || !is_float(rdp_.known(*node.results[0]).type.dtype);
          },
      .fits = [&](const Value& stored, const auto& inlined) { return fits(stored, inlined); }};
  flush_checks();
  emit_ordered(plan::form_steps(region, rules), region);
  region_ = outer;
}

sym::Expr Emitter::elements(const Value& value) {
  sym::Expr product = module_.symbols().constant(1);
  for (sym::Expr d : *rdp_.known(value).type.dims) product = product * d;
  return product;
}

// Steps of sizes that were needed for an instruction come before it.
void Emitter::instruction(Opcode op, uint32_t a, uint32_t b) {
  flush_steps();
  code_.push_back({.op = op, .a = a, .b = b});
}

void Emitter::flush_steps() {
  std::vector<program::SizeStep> steps = sizes_.take_later_steps();
  if (steps.empty()) return;
  auto begin = static_cast<uint32_t>(program().steps.size());
  program().steps.insert(program().steps.end(), steps.begin(), steps.end());
  code_.push_back({.op = Opcode::sizes, .a = begin, .b = static_cast<uint32_t>(program().steps.size())});
}

void Emitter::parameters() {
  for (const Value* value : main_.body.yields) outputs_.insert(value);
  program().outputs = main_.result_names;
  for (const auto& parameter : main_.body.parameters) {
    const Known& known = rdp_.known(*parameter);
    program::Input input{.name = parameter->name};
    RegisterInfo info{.name = parameter->name, .storage = Storage::input};
    input.is_tensor = known.type.is_tensor();
    input.dtype = info.dtype = known.type.dtype;
    if (known.type.is_tensor() && known.type.dims) {
      info.is_tensor = true;
      input.rank = static_cast<uint32_t>(known.type.dims->size());
      for (size_t i = 0; i < known.type.dims->size(); ++i) info.dims.push_back(sizes_.new_slot());
    }
    Register r = registers_[parameter.get()] = add_register(std::move(info));
    program().inputs.push_back(std::move(input));
    program().parameters.push_back(r);
  }
  for (const auto& parameter : main_.body.parameters) bind_symbols(*parameter, registers_[parameter.get()], true);
  for (const auto& parameter : main_.body.parameters) bind_declared_dims(*parameter);
  program().entry_slots = program().slots;
  entry_code_ = std::exchange(code_, {});
}

// Where the analysis says a dim of an input by others, checks may still be told by its own name.
void Emitter::bind_declared_dims(const Value& parameter) {
  const RegisterInfo& info = program().registers[registers_[&parameter]];
  if (!info.is_tensor || !parameter.type.dims || parameter.type.dims->size() != info.dims.size()) return;
  for (size_t i = 0; i < info.dims.size(); ++i) {
    sym::Expr dim = (*parameter.type.dims)[i];
    if (dim.is_symbol() && !sizes_.knows(dim)) sizes_.bind(dim, info.dims[i], true);
  }
}

// Every dim of an input must be what the analysis found it to be; then what relates the inputs to each other.
void Emitter::entry_checks() {
  for (const auto& parameter : main_.body.parameters) {
    const Known& known = rdp_.known(*parameter);
    if (!known.type.is_tensor() || !known.type.dims) continue;
    const RegisterInfo& info = program().registers[registers_[parameter.get()]];
    for (size_t i = 0; i < info.dims.size(); ++i) {
      sym::Expr dim = (*known.type.dims)[i];
      if (!sizes_.knows(dim) || slot(dim) == info.dims[i]) continue;
      program().checks.push_back({.equal = true,
                                  .a = info.dims[i],
                                  .b = slot(dim),
                                  .text = fmt::format("input '{}' dim {} is {{a}}, but must be {} = {{b}}",
                                                      parameter->name, i, escaped(to_string(dim)))});
    }
  }
  add_entry_checks(given_checks_);
  // Passes may have brought out of a region what it requires, so that it is required of every run.
  add_entry_checks(compiler::entry_checks(rdp_));
  later_checks_ = rdp_.later_checks();
  entry_check_count_ = program().checks.size();
}

void Emitter::add_entry_checks(const std::vector<EntryCheck>& checks) {
  for (const EntryCheck& check : checks) {
    if (!sizes_.knows(check.a) || !sizes_.knows(check.b)) continue;
    program::Check made{.equal = check.equal, .a = slot(check.a), .b = slot(check.b), .text = check_text(check.text)};
    bool is_made = std::ranges::any_of(program().checks, [&](const program::Check& other) {
      return other.equal == made.equal && other.a == made.a && other.b == made.b;
    });
    if (!is_made) program().checks.push_back(std::move(made));
  }
}

bool Emitter::can_check(const analysis::Check& check) const {
  return check.kind != analysis::Check::Kind::rank && sizes_.knows(check.a) && sizes_.knows(check.b);
}

void Emitter::add_check(const analysis::Check& check) {
  program().checks.push_back({.equal = check.kind == analysis::Check::Kind::equal,
                              .a = slot(check.a),
                              .b = slot(check.b),
                              .text = check_text(analysis::to_string(check, rdp_))});
}

// Checks are made as soon as the run has told what they need.
void Emitter::flush_checks() {
  std::erase_if(later_checks_, [&](const analysis::Check& check) {
    if (!can_check(check)) return false;
    add_check(check);
    instruction(Opcode::check, static_cast<uint32_t>(program().checks.size() - 1));
    return true;
  });
}

// Dims and elements of a value that stand for themselves: symbols that are known once the value is.
void Emitter::bind_symbols(const Value& value, Register r, bool at_entry) {
  const Known& known = rdp_.known(value);
  if (!known.type.is_tensor() || !known.type.dims) return;
  const RegisterInfo& info = program().registers[r];
  for (size_t i = 0; i < known.type.dims->size(); ++i) {
    sym::Expr dim = (*known.type.dims)[i];
    if (dim.is_symbol() && !sizes_.knows(dim)) sizes_.bind(dim, info.dims[i], at_entry);
  }
  if (is_loose(r)) bind_own_symbols(value, r);
  if (!known.contents) return;
  program::Bind bind{.value = r};
  std::vector<sym::Expr> symbols;
  for (sym::Expr e : known.contents->elements)
    if (e) sym::collect_symbols(e, symbols);
  for (sym::Expr s : symbols) {
    const SymbolInfo* about = rdp_.symbol(s);
    if (about == nullptr || !about->is_element() || about->value != &value || sizes_.knows(s)) continue;
    Slot to = sizes_.new_slot();
    sizes_.bind(s, to, at_entry);
    (about->negative_part ? bind.negative : bind.elements).emplace_back(static_cast<uint32_t>(about->axis), to);
  }
  if (bind.elements.empty() && bind.negative.empty()) return;
  program().binds.push_back(std::move(bind));
  instruction(Opcode::bind, static_cast<uint32_t>(program().binds.size() - 1));
}

// The run tells the dims of a value. Where a node that comes later requires what they are, the analysis says them by
// others; their own symbols are bound all the same, so that the requirement is checked before anything relies on it.
void Emitter::bind_own_symbols(const Value& value, Register r) {
  const std::vector<Slot>& told = program().registers[r].dims;
  for (sym::Expr s : rdp_.symbols_of(value)) {
    const SymbolInfo* about = rdp_.symbol(s);
    bool is_dim = about->kind == SymbolInfo::Kind::dim && about->axis < told.size();
    if (is_dim && !sizes_.knows(s)) sizes_.bind(s, told[about->axis], false);
  }
}

bool Emitter::fits(const Value& stored, const std::set<const Node*>& inlined) {
  if (is_library_call(*stored.node)) return false;
  if (const Node* call = library_call(inlined)) {
    bool only = std::ranges::count_if(inlined, [&](const Node* node) { return is_library_call(*node); }) == 1;
    const auto& product = stitcher_.form(*call).product;
    // What the call itself reads is stored before it.
    for (const Value* operand : call->operands)
      if (operand != nullptr && operand->node != nullptr && inlined.contains(operand->node)) return false;
    bool whole =
        product ? product->batch.empty() && !product->c.columns.empty() : stitcher_.form(*call).convolution.has_value();
    return only && whole && stitcher_.stitch_epilogue(stored, inlined, *call->results[0], column_axis(*call));
  }
  if (stitcher_.form(*stored.node).concatenation) {
    for (const Node* node : inlined)
      if (node != stored.node && follows_library_call(*node, 4)) return false;
    return stitcher_.stitch_parts(stored, inlined).has_value();
  }
  auto together = stitcher_.stitch(stored, inlined, "trial");
  if (!together || together->kernel.buffers.size() > 16) return false;
  if (together->vectorised) return true;
  auto alone = stitcher_.stitch(stored, {stored.node}, "trial");
  return alone && !alone->vectorised;
}

bool Emitter::follows_library_call(const Node& node, int most_steps) {
  if (is_library_call(node)) return true;
  if (most_steps == 0 || node.op->mapping != ir::Mapping::one_to_one) return false;
  return std::ranges::any_of(node.operands, [&](const Value* operand) {
    return operand != nullptr && operand->node != nullptr && follows_library_call(*operand->node, most_steps - 1);
  });
}

Emitter::Register Emitter::add_register(RegisterInfo info) {
  info.is_conditional = block_ != SIZE_MAX;
  program().registers.push_back(std::move(info));
  return static_cast<Register>(program().registers.size() - 1);
}

Emitter::Register Emitter::constant_register(Tensor tensor, std::string name) {
  RegisterInfo info{.name = std::move(name),
                    .storage = Storage::constant,
                    .is_tensor = true,
                    .dtype = tensor.dtype(),
                    .constant = static_cast<uint32_t>(program().constants.size())};
  for (int64_t d : tensor.dims()) info.dims.push_back(slot(d));
  program().constants.push_back(std::move(tensor));
  return add_register(std::move(info));
}

Emitter::Register Emitter::register_of(const Value& value) {
  auto at = registers_.find(&value);
  if (at != registers_.end()) return at->second;
  CHECK(value.constant != nullptr, "%{} is used before it is made", value.name);
  return registers_[&value] = constant_register(stored_constant(*value.constant, packed_, packings()), value.name);
}

Emitter::Register Emitter::register_in(const Value& value, const Layout& layout) {
  if (stitcher_.placement().layout(value) == layout) return register_of(value);
  auto [at, fresh] = copies_.try_emplace({&value, layout});
  if (!fresh) return at->second;
  copies_in_order_.emplace_back(&value, layout);
  codegen::StitchedKernel copy = stitcher_.stitch_copy(value, layout);
  at->second = new_tensor(value, !(outputs_.contains(&value) && layout.empty()));
  uint32_t launch = add_launch(at->second, std::move(copy), value.name + " in another layout");
  instruction(Opcode::launch, launch);
  ++out_.copies;
  return at->second;
}

bool Emitter::may_be_planned(const Value& value) const {
  return !(outputs_.contains(&value) && stitcher_.placement().layout(value).empty());
}

Emitter::Register Emitter::new_stored(const Value& value) {
  auto given = destinations_.find(&value);
  if (given == destinations_.end()) return registers_[&value] = new_tensor(value, may_be_planned(value));
  Register r = registers_[&value] = given->second;
  if (program().registers[r].storage == Storage::heap) instruction(Opcode::allocate, r);
  return r;
}

RegisterInfo Emitter::tensor_info(const Value& value, Storage storage) {
  const Known& known = rdp_.known(value);
  RegisterInfo info{.name = value.name, .storage = storage, .is_tensor = true, .dtype = known.type.dtype};
  for (sym::Expr d : *known.type.dims) info.dims.push_back(slot(d));
  return info;
}

Emitter::Register Emitter::place_tensor(const Value& value, bool may_be_planned) {
  RegisterInfo info = tensor_info(value, Storage::heap);
  info.bytes = slot(elements(value) * static_cast<int64_t>(element_size(info.dtype)));
  if (may_be_planned && sizes_.at_entry(info.bytes)) {
    info.storage = Storage::arena;
    info.alternates = escaping_.contains(&value);
  }
  return add_register(std::move(info));
}

Emitter::Register Emitter::new_tensor(const Value& value, bool may_be_planned) {
  Register r = place_tensor(value, may_be_planned);
  const RegisterInfo& info = program().registers[r];
  if (info.storage == Storage::heap) instruction(Opcode::allocate, r);
  if (info.alternates) instruction(Opcode::alternate, r);
  return r;
}

void Emitter::emit(const plan::Step& step) {
  if (step.stored == nullptr) {
    if (is_compiled(*step.node) && !is_dead_) return emit_control(*step.node);
    return emits_whole(*step.node) ? emit_recurrent(*step.node) : emit_host(*step.node);
  }
  if (is_view(step)) return emit_view(*step.node);
  if (const Node* call = library_call(step.inlined)) return emit_library_call(*call, *step.stored, step.inlined);
  if (stitcher_.form(*step.node).concatenation && emit_parts(*step.stored, step.inlined)) return;
  auto kernel = stitcher_.stitch(*step.stored, step.inlined, "kernel");
  if (kernel && is_sized(*kernel)) {
    emit_kernel(*step.stored, std::move(*kernel), *step.node);
    return;
  }
  // What one node gives may tell the size of the next.
  for (const auto& node : region_->nodes)
    if (step.inlined.contains(node.get())) emit_alone(*node, step.inlined.size() > 1);
}

void Emitter::emit_alone(const Node& node, bool may_be_kernel) {
  if (may_be_kernel && node.results.size() == 1) {
    if (stitcher_.placement().views.contains(&node)) return emit_view(node);
    auto kernel = stitcher_.stitch(*node.results[0], {&node}, "kernel");
    if (kernel && is_sized(*kernel)) return emit_kernel(*node.results[0], std::move(*kernel), node);
  }
  emit_host(node);
}

// Whether all that the kernel must be told is known by now.
bool Emitter::is_sized(const codegen::StitchedKernel& kernel) const {
  return std::ranges::all_of(kernel.kernel.sizes, [&](sym::Expr s) { return sizes_.knows(s); }) &&
         std::ranges::all_of(kernel.index_checks, [&](const auto& check) { return sizes_.knows(check.extent); }) &&
         std::ranges::all_of(kernel.size_checks, [&](const codegen::SizeCheck& check) {
           return sizes_.knows(check.first) && sizes_.knows(check.second);
         });
}

// The same memory seen under other dims needs no kernel.
void Emitter::emit_view(const Node& node) {
  const Value& value = *node.results[0];
  RegisterInfo info = tensor_info(value, Storage::view);
  info.viewed = register_of(*node.operands[0]);
  Register r = registers_[&value] = add_register(std::move(info));
  bind_symbols(value, r, false);
}

// Kernels of equal structure are one.
uint32_t Emitter::kernel_index(kir::Kernel kernel) {
  kernel.name = "k";
  kir::make_canonical(kernel, module_.symbols());
  auto [at, fresh] = kernels_by_text_.try_emplace(kir::print(kernel), static_cast<uint32_t>(out_.kernels.size()));
  if (!fresh) return at->second;
  kernel.name = "k" + std::to_string(at->second);
  program().kernels.push_back(kernel.name);
  out_.kernels.push_back(std::move(kernel));
  return at->second;
}

// Sizes that an earlier node had checked are not checked again.
void Emitter::add_size_check(const codegen::SizeCheck& check, const std::string& node) {
  if (std::ranges::find(made_size_checks_, check) != made_size_checks_.end()) return;
  made_size_checks_.push_back(check);
  program().checks.push_back(
      {.equal = true,
       .a = slot(check.first),
       .b = slot(check.second),
       .text = escaped(fmt::format("{}: dims do not broadcast: one is ", node)) + "{a}, but must be 1 or {b}"});
  instruction(Opcode::check, static_cast<uint32_t>(program().checks.size() - 1));
}

// Whether it is known now that all indices lie in the extent.
bool Emitter::is_in_range(const codegen::IndexCheck& check) const {
  const std::optional<ir::Contents>& indices = rdp_.known(*check.indices).contents;
  std::optional<int64_t> extent = check.extent.constant();
  return extent && indices && indices->complete() && std::ranges::all_of(indices->elements, [&](sym::Expr e) {
           std::optional<int64_t> index = e.constant();
           return index && *index >= -*extent && *index < *extent;
         });
}

uint32_t Emitter::add_launch(Register output, codegen::StitchedKernel stitched, std::string name) {
  if (name.empty()) name = program().registers[output].name;
  for (const codegen::SizeCheck& check : stitched.size_checks) add_size_check(check, name);
  program::Launch launch{.kernel = 0, .buffers = {output}, .sizes = {}, .range = {}, .node = std::move(name)};
  for (const codegen::IndexCheck& check : stitched.index_checks) {
    if (is_in_range(check)) continue;
    program().index_checks.push_back(
        {.indices = register_of(*check.indices), .extent = slot(check.extent), .node = check.node->describe()});
    instruction(Opcode::check_indices, static_cast<uint32_t>(program().index_checks.size() - 1));
  }
  for (const Value* input : stitched.inputs) launch.buffers.push_back(register_of(*input));
  for (sym::Expr s : stitched.kernel.sizes) launch.sizes.push_back(slot(s));
  std::vector<sym::Expr> ranges = kir::range_extents(stitched.kernel);
  if (!ranges.empty()) launch.range = slot(ranges[0]);
  launch.kernel = kernel_index(std::move(stitched.kernel));
  program().launches.push_back(std::move(launch));
  return static_cast<uint32_t>(program().launches.size() - 1);
}

bool Emitter::emit_parts(const Value& stored, const std::set<const Node*>& inlined) {
  auto parts = stitcher_.stitch_parts(stored, inlined);
  if (!parts || !std::ranges::all_of(*parts, [&](const auto& part) { return is_sized(part); })) return false;
  Register output = new_stored(stored);
  for (codegen::StitchedKernel& part : *parts)
    instruction(Opcode::launch, add_launch(output, std::move(part), stored.node->source));
  bind_symbols(stored, output, false);
  return true;
}

void Emitter::emit_kernel(const Value& stored, codegen::StitchedKernel stitched, const Node& node) {
  Register output = new_stored(stored);
  uint32_t launch = add_launch(output, std::move(stitched), node.source);
  instruction(Opcode::launch, launch);
  bind_symbols(stored, output, false);
}

void Emitter::emit_host(const Node& node) {
  HostNode host{.node = &node, .captured = {}};
  program::HostCall call{
      .operands = {}, .results = {}, .symbols = {}, .node = node.source, .why = stitcher_.form(node).refusal};
  if (auto refused = refused_control_.find(&node); refused != refused_control_.end()) call.why = refused->second;
  if (call.why.empty())
    call.why = has_constant_weights(node) ? "a size is not known before it runs" : "its weights are no constants";
  for (const Value* operand : node.operands)
    call.operands.push_back(operand == nullptr ? program::no_register : register_in(*operand, {}));
  auto capture = [&](const Value* value) {
    if (value == nullptr || value->constant != nullptr || !registers_.contains(value)) return;
    if (std::ranges::find(host.captured, value) != host.captured.end()) return;
    host.captured.push_back(value);
    call.operands.push_back(register_in(*value, {}));
  };
  for (const auto& region : node.regions) {
    ir::for_each_node(std::as_const(*region), [&](const Node& inner) {
      for (const Value* operand : inner.operands) capture(operand);
      for (const auto& nested : inner.regions)
        for (const Value* yield : nested->yields) capture(yield);
    });
    for (const Value* yield : region->yields) capture(yield);
  }
  std::vector<sym::Expr> symbols;
  auto static_symbols = [&](const Node& n) {
    for (size_t i = 0; i < n.operands.size(); ++i)
      if (const ir::SymbolicInts* given = n.static_operand(i))
        for (sym::Expr e : given->elements) sym::collect_symbols(e, symbols);
  };
  static_symbols(node);
  for (const auto& region : node.regions) ir::for_each_node(std::as_const(*region), static_symbols);
  for (sym::Expr s : symbols)
    if (sizes_.knows(s)) call.symbols.emplace_back(std::string(s.symbol_name()), slot(s));
  std::vector<Register> results;
  for (const auto& result : node.results) {
    Register r = registers_[result.get()] = loose_place(*result);
    call.results.push_back(r);
  }
  program().host_calls.push_back(std::move(call));
  out_.host_nodes.push_back(std::move(host));
  instruction(Opcode::host, static_cast<uint32_t>(program().host_calls.size() - 1));
  if (is_dead_) return;
  for (const auto& result : node.results) bind_symbols(*result, registers_[result.get()], false);
}

void Emitter::results() {
  for (const Value* value : main_.body.yields) program().results.push_back(register_in(*value, {}));
  flush_steps();  // a view that is a result has no instruction of its own
}

void Emitter::describe() {
  out_.slots = sizes_.expressions();
  out_.stored_bytes.resize(program().registers.size());
  auto describe = [&](const Value& value, Register r) {
    Storage storage = program().registers[r].storage;
    if (storage == Storage::arena || storage == Storage::heap)
      if (std::optional<sym::Expr> bytes = bytes_of(rdp_.known(value).type, module_.symbols()))
        out_.stored_bytes[r] = *bytes;
  };
  for (const auto& [value, r] : registers_) describe(*value, r);
  for (const auto& [key, r] : copies_) describe(*key.first, r);
}

std::optional<sym::Expr> bytes_of(const ir::Type& type, sym::Context& symbols) {
  if (!type.is_tensor() || !type.dims) return std::nullopt;
  try {
    sym::Expr bytes = symbols.constant(static_cast<int64_t>(element_size(type.dtype)));
    for (sym::Expr dim : *type.dims) bytes = bytes * dim;
    return bytes;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<EntryCheck> entry_checks(const analysis::Rdp& rdp) {
  std::vector<EntryCheck> checks;
  for (const analysis::Check& check : rdp.entry_checks())
    if (check.kind != analysis::Check::Kind::rank)
      checks.push_back({.equal = check.kind == analysis::Check::Kind::equal,
                        .a = check.a,
                        .b = check.b,
                        .text = analysis::to_string(check, rdp)});
  return checks;
}

Compiled compile(ir::Module& module, const analysis::Rdp& rdp, std::vector<EntryCheck> checks, Options options) {
  return Emitter(module, rdp, std::move(checks), options).run();
}

}  // namespace selkie::compiler
