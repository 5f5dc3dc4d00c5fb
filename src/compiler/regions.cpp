// Control flow as instructions: branches, loops over trips, slices and items.
//
// What a region makes is used inside it. Results leave it by moves into registers that were made outside, or are stored
// there right away. The state of a loop is a register that points to what the last trip made: that lies in one of two
// places that alternate, in the slice of an output, or on the heap.
#include <algorithm>

#include "compiler/emitter.h"
#include "compiler/trips.h"
#include "program/uses.h"

namespace selkie::compiler {

using ir::ControlForm;
using ir::Known;
using program::Opcode;
using program::RegisterInfo;
using program::SizeStep;
using Storage = RegisterInfo::Storage;

// What holds in code that may not run, or runs again: sizes, copies and checks that are made there serve nothing else.
class Emitter::Scope {
 public:
  Scope(Emitter& emitter, const ir::Region& region, bool is_loop)
      : emitter_(emitter),
        block_(emitter.open_block(is_loop)),
        copies_(emitter.copies_in_order_.size()),
        size_checks_(emitter.made_size_checks_.size()),
        outer_checks_(std::exchange(emitter.later_checks_, emitter.rdp_.region(region).checks)) {
    emitter.sizes_.enter();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() {
    emitter_.sizes_.leave();
    emitter_.later_checks_ = std::move(outer_checks_);
    emitter_.made_size_checks_.resize(size_checks_);
    for (; emitter_.copies_in_order_.size() > copies_; emitter_.copies_in_order_.pop_back())
      emitter_.copies_.erase(emitter_.copies_in_order_.back());
  }
  size_t block() const { return block_; }

 private:
  Emitter& emitter_;
  size_t block_;
  size_t copies_;
  size_t size_checks_;
  std::vector<analysis::Check> outer_checks_;
};

size_t Emitter::open_block(bool is_loop) {
  blocks_.push_back({.is_loop = is_loop,
                     .begin = here(),
                     .first_register = static_cast<Register>(program().registers.size()),
                     .parent = block_});
  return block_ = blocks_.size() - 1;
}

void Emitter::close_block(size_t block) {
  blocks_[block].end = here();
  blocks_[block].last_register = static_cast<Register>(program().registers.size());
  block_ = blocks_[block].parent;
}

uint32_t Emitter::here() {
  flush_steps();
  return static_cast<uint32_t>(code_.size());
}

size_t Emitter::jump_instruction(Opcode op, Slot condition) {
  instruction(op, 0, condition);
  return code_.size() - 1;
}

Emitter::Slot Emitter::step(SizeStep::Op op, Slot a, Slot b) {
  Slot to = sizes_.new_slot();
  sizes_.step({.op = op, .to = to, .a = a, .b = b});
  return to;
}

void Emitter::set_slot(Slot to, Slot from) {
  sizes_.step({.op = SizeStep::Op::add, .to = to, .a = from, .b = slot(0)});
}

Emitter::Slot Emitter::number(const Value& value, bool is_signed) {
  const Known& known = rdp_.known(value);
  Register r = register_in(value, {});
  for (size_t i = 0; known.type.dims && i < known.type.dims->size(); ++i) {
    if ((*known.type.dims)[i].constant() == 1) continue;
    program().checks.push_back(
        {.equal = true,
         .a = program().registers[r].dims[i],
         .b = slot(1),
         .text = escaped(fmt::format("'{}' must have one element, but dim {} is ", value.name, i)) + "{a}"});
    instruction(Opcode::check, static_cast<uint32_t>(program().checks.size() - 1));
  }
  bool is_said = known.contents && known.contents->denominator == 1 && known.contents->elements.size() == 1;
  if (is_said && known.contents->elements[0] && sizes_.knows(known.contents->elements[0]))
    return slot(known.contents->elements[0]);
  Slot to = sizes_.new_slot();
  program().binds.push_back({.value = r, .dims = {}, .elements = {{0, to}}, .negative = {}});
  Slot negative = is_signed ? sizes_.new_slot() : 0;
  if (is_signed) program().binds.back().negative.emplace_back(0, negative);
  instruction(Opcode::bind, static_cast<uint32_t>(program().binds.size() - 1));
  return is_signed ? step(SizeStep::Op::subtract, to, negative) : to;
}

std::optional<Emitter::Slot> Emitter::operand_number(const Node& node, size_t operand, bool is_signed) {
  if (operand >= node.operands.size()) return std::nullopt;
  if (node.operands[operand] != nullptr) return number(*node.operands[operand], is_signed);
  const ir::SymbolicInts* given = node.static_operand(operand);
  if (given == nullptr) return std::nullopt;
  return slot(given->elements.at(0));
}

Emitter::Register Emitter::loose_place(const Value& value) {
  RegisterInfo info{.name = value.name, .storage = Storage::heap};
  const ir::Type& type = rdp_.known(value).type;
  if (type.is_tensor() && type.dims && !is_dead_) {
    info.is_tensor = true;
    info.dtype = type.dtype;
    for (size_t i = 0; i < type.dims->size(); ++i) info.dims.push_back(sizes_.new_slot());
  }
  Register r = add_register(std::move(info));
  loose_.insert(r);
  return r;
}

// What a node that comes later requires of a result is checked only once there is the result: what a region yields
// has the dims that the analysis gives the result where that follows inside.
bool Emitter::has_dims(const Value& yield, const ir::Region& region, std::span<const sym::Expr> dims) const {
  const ir::Type& type = rdp_.known(yield).type;
  const sym::Facts& facts = rdp_.region(region).facts;
  return type.is_tensor() && type.dims && std::ranges::equal(*type.dims, dims, [&](sym::Expr a, sym::Expr b) {
           return facts.prove_equal(a, b) == sym::Truth::yes;
         });
}

Emitter::Register Emitter::result_place(const Value& value) {
  if (auto given = destinations_.find(&value); given != destinations_.end()) return given->second;
  const ir::Type& type = rdp_.known(value).type;
  bool is_sized = type.dtype != DType::str && bytes_of(type, module_.symbols()) &&
                  std::ranges::all_of(*type.dims, [&](sym::Expr d) { return sizes_.knows(d); });
  return is_sized ? place_tensor(value, may_be_planned(value)) : loose_place(value);
}

bool Emitter::may_be_written_to(const Value& value, const ir::Region& region, Register place,
                                const Layout& layout) const {
  if (value.node == nullptr || homes_.at(value.node) != &region || destinations_.contains(&value)) return false;
  const ir::Type& type = rdp_.known(value).type;
  const RegisterInfo& info = out_.program.registers[place];
  return !is_loose(place) && type.is_tensor() && type.dims && type.dtype == info.dtype &&
         type.dims->size() == info.dims.size() && stitcher_.placement().layout(value) == layout;
}

void Emitter::emit_control(const Node& node) {
  ControlForm form = node.op->control(node);
  switch (form.kind) {
    case ControlForm::Kind::branch:
      return emit_branch(node);
    case ControlForm::Kind::loop:
      return emit_loop(node, form);
    case ControlForm::Kind::map:
      return emit_map(node);
    case ControlForm::Kind::item:
      return emit_item(node);
    case ControlForm::Kind::insert:
      return emit_insert(node);
    case ControlForm::Kind::length:
      return emit_length(node);
    case ControlForm::Kind::replace:
      return emit_replacement(node);
    case ControlForm::Kind::call:
      return emit_call(node, form.callee);
  }
}

void Emitter::emit_call(const Node& node, const std::string& callee) {
  auto function = std::ranges::find(options_.functions, callee) - options_.functions.begin();
  program::FunctionCall call{
      .function = static_cast<uint32_t>(function), .operands = {}, .results = {}, .node = node.source};
  for (const Value* operand : node.operands)
    call.operands.push_back(operand == nullptr ? program::no_register : register_in(*operand, {}));
  for (const auto& result : node.results) call.results.push_back(registers_[result.get()] = loose_place(*result));
  program().calls.push_back(std::move(call));
  instruction(Opcode::call, static_cast<uint32_t>(program().calls.size() - 1));
  for (const auto& result : node.results) {
    Register r = registers_[result.get()];
    check_constant_dims(*result, r, callee);
    bind_symbols(*result, r, false);
  }
}

// What a function declares is true of what it returns, or the call fails.
void Emitter::check_constant_dims(const Value& result, Register r, const std::string& callee) {
  const RegisterInfo& info = program().registers[r];
  for (size_t i = 0; i < info.dims.size(); ++i) {
    sym::Expr dim = dims_of(result)[i];
    if (!dim.constant()) continue;
    program().checks.push_back(
        {.equal = true,
         .a = info.dims[i],
         .b = slot(dim),
         .text = escaped(fmt::format("dim {} of what @{} returns is ", i, callee)) + "{a}, but is declared {b}"});
    instruction(Opcode::check, static_cast<uint32_t>(program().checks.size() - 1));
  }
}

void Emitter::emit_branch(const Node& node) {
  Slot condition = *operand_number(node, 0);
  std::vector<Register> places;
  for (size_t i = 0; i < node.results.size(); ++i) {
    const Value& result = *node.results[i];
    const ir::Type& type = rdp_.known(result).type;
    bool is_certain = type.is_tensor() && type.dims && std::ranges::all_of(node.regions, [&](const auto& arm) {
                        return !is_possible(*arm) || has_dims(*arm->yields[i], *arm, *type.dims);
                      });
    places.push_back(is_certain ? result_place(result) : loose_place(result));
    if (program().registers[places.back()].alternates && !destinations_.contains(&result))
      instruction(Opcode::alternate, places.back());
  }
  size_t to_else = jump_instruction(Opcode::branch, condition);
  size_t then_block = blocks_.size();
  emit_arm(node, 0, places);
  size_t to_join = jump_instruction(Opcode::jump);
  land(to_else);
  size_t else_block = blocks_.size();
  emit_arm(node, 1, places);
  land(to_join);
  blocks_[then_block].join = blocks_[else_block].join = here();
  for (size_t i = 0; i < node.results.size(); ++i) {
    registers_[node.results[i].get()] = places[i];
    bind_symbols(*node.results[i], places[i], false);
  }
}

void Emitter::emit_arm(const Node& node, size_t index, const std::vector<Register>& places) {
  const ir::Region& region = *node.regions[index];
  Scope scope(*this, region, false);
  if (is_possible(region)) {
    for (size_t i = 0; i < places.size(); ++i) {
      const Value& yield = *region.yields[i];
      const Layout& layout = stitcher_.placement().layout(*node.results[i]);
      if (may_be_written_to(yield, region, places[i], layout)) destinations_.emplace(&yield, places[i]);
      if (is_loose(places[i])) outputs_.insert(&yield);
    }
    emit_steps(region);
    for (size_t i = 0; i < places.size(); ++i) {
      Register from = register_in(*region.yields[i], stitcher_.placement().layout(*node.results[i]));
      if (program().registers[places[i]].storage != Storage::heap) from = ranked(*node.results[i], from);
      if (from != places[i]) instruction(Opcode::move, places[i], from);
    }
  } else {
    emit_dead(region);
  }
  close_block(scope.block());
}

// The analysis found that the region fails whenever it is entered: the node that fails says why.
void Emitter::emit_dead(const ir::Region& region) {
  bool outer = std::exchange(is_dead_, true);
  later_checks_.clear();
  emit_steps(region);
  is_dead_ = outer;
  program().checks.push_back(
      {.equal = true,
       .a = slot(0),
       .b = slot(1),
       .text = escaped(fmt::format("a region of {} cannot be completed", region.parent->describe()))});
  instruction(Opcode::fail, static_cast<uint32_t>(program().checks.size() - 1));
}

struct Emitter::SliceForm {
  size_t axis;
  bool reversed;
  sym::Expr count, rows, row_bytes;
  bool is_one_piece() const { return rows.constant() == 1; }
};

void Emitter::emit_loop(const Node& node, const ControlForm& form) {
  Trips loop{.node = node, .form = form, .body = *node.regions[0]};
  count_trips(loop);
  begin_states(loop);
  begin_outputs(loop);
  size_t exit = 0;
  {
    Scope scope(*this, loop.body, true);
    loop.block = scope.block();
    uint32_t head = here();
    if (loop.most) sizes_.step({.op = SizeStep::Op::less, .to = loop.again, .a = loop.index, .b = *loop.most});
    if (loop.most && loop.goes_on)
      sizes_.step({.op = SizeStep::Op::minimum, .to = loop.again, .a = loop.again, .b = *loop.goes_on});
    exit = jump_instruction(Opcode::branch, loop.most || !loop.goes_on ? loop.again : *loop.goes_on);
    begin_trip(loop);
    plan_yields(loop);
    emit_steps(loop.body);
    end_trip(loop);
    instruction(Opcode::jump, head);
    close_block(loop.block);
  }
  land(exit);
  blocks_[loop.block].join = here();
  blocks_[loop.block].states = loop.states;
  end_loop(loop);
}

bool Emitter::is_known_true(const Value& value) const {
  const std::optional<ir::Contents>& contents = rdp_.known(value).contents;
  return contents && contents->elements.size() == 1 && contents->elements[0] && contents->elements[0].constant() == 1;
}

// How many trips there are is known before the first where no condition is computed.
void Emitter::count_trips(Trips& loop) {
  const ControlForm& form = loop.form;
  loop.index = sizes_.new_slot();
  loop.again = sizes_.new_slot();
  if (form.most_trips) loop.most = operand_number(loop.node, *form.most_trips);
  if (!form.inputs.empty()) {
    const ir::SymDims& whole = dims_of(*loop.node.operands[form.first_state + form.states]);
    loop.most = slot(whole[slice_form(whole, DType::f32, form.inputs[0]).axis]);
  }
  const Value* first = form.first_trip ? loop.node.operands[*form.first_trip] : nullptr;
  std::optional<Slot> before;
  if (form.first_trip && !(first != nullptr && is_known_true(*first)))
    before = operand_number(loop.node, *form.first_trip);
  const Value* next = form.counts ? loop.body.yields[0] : nullptr;
  // In a trip, its condition holds.
  bool always_goes_on = next == nullptr || next == loop.body.parameters[1].get() || is_known_true(*next);
  if (before || !always_goes_on) {
    loop.goes_on = sizes_.new_slot();
    set_slot(*loop.goes_on, before.value_or(slot(1)));
  }
  set_slot(loop.index, slot(0));
  if (!loop.most && !loop.goes_on) set_slot(loop.again, slot(1));
}

// Whether a state has one size from before the first trip to after the last, which is known now.
bool Emitter::keeps_size(const Trips& loop, size_t state) {
  const ir::Type& type = rdp_.known(loop.parameter(state)).type;
  if (type.dtype == DType::str || !bytes_of(type, module_.symbols())) return false;
  return rdp_.known(*loop.node.results[state]).type.dims == type.dims &&
         std::ranges::all_of(*type.dims, [&](sym::Expr d) { return sizes_.knows(d); }) &&
         has_dims(*loop.node.operands[loop.form.first_state + state], *homes_.at(&loop.node), *type.dims) &&
         has_dims(loop.yield(state), loop.body, *type.dims);
}

// What the body requires of a state need not hold after the last trip.
bool Emitter::keeps_rank(const Trips& loop, size_t state) {
  const ir::Type& type = rdp_.known(loop.parameter(state)).type;
  if (!type.is_tensor() || !type.dims) return false;
  auto is_alike = [&](const Value& value) {
    const ir::Type& other = rdp_.known(value).type;
    return other.is_tensor() && other.dims && other.dtype == type.dtype && other.dims->size() == type.dims->size();
  };
  return is_alike(*loop.node.operands[loop.form.first_state + state]) && is_alike(loop.yield(state)) &&
         is_alike(*loop.node.results[state]);
}

// A state whose size stays and is known at entry points into the arena, all others are host values.
void Emitter::begin_states(Trips& loop) {
  for (size_t i = 0; i < loop.form.states; ++i) {
    if (is_replaced_in_place(loop, i)) {
      loop.states.push_back(begin_in_place(loop, i));
      continue;
    }
    const Value& parameter = loop.parameter(i);
    Register state = keeps_size(loop, i)   ? place_tensor(parameter, true)
                     : keeps_rank(loop, i) ? loose_place(parameter)
                                           : add_register({.name = parameter.name, .storage = Storage::heap});
    RegisterInfo& info = program().registers[state];
    if (info.storage == Storage::arena) info.storage = Storage::state;
    loop.states.push_back(state);
    instruction(Opcode::move, state, register_in(*loop.node.operands[loop.form.first_state + i], {}));
  }
}

namespace {

size_t stacked_axis(const ir::SymDims& whole, ControlForm::Slices slices) {
  return static_cast<size_t>(slices.axis < 0 ? slices.axis + static_cast<int64_t>(whole.size()) : slices.axis);
}

}  // namespace

Emitter::SliceForm Emitter::slice_form(const ir::SymDims& whole, DType dtype, ControlForm::Slices slices) {
  SliceForm out{.axis = stacked_axis(whole, slices),
                .reversed = slices.reversed,
                .count = {},
                .rows = module_.symbols().constant(1),
                .row_bytes = module_.symbols().constant(static_cast<int64_t>(element_size(dtype)))};
  out.count = whole[out.axis];
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i < out.axis) out.rows = out.rows * whole[i];
    if (i > out.axis) out.row_bytes = out.row_bytes * whole[i];
  }
  return out;
}

// How many bytes after the first the slice of this trip begins.
Emitter::Slot Emitter::slice_position(const Trips& loop, const SliceForm& form) {
  Slot index = loop.index;
  if (form.reversed) index = step(SizeStep::Op::subtract, slot(form.count - 1), index);
  return step(SizeStep::Op::multiply, index, slot(form.row_bytes));
}

bool Emitter::stacks_as_known(const Node& node, const ControlForm& form, size_t output) const {
  const ir::Region& body = *node.regions[0];
  ir::SymDims slice = *rdp_.known(*node.results[form.states + output]).type.dims;
  slice.erase(slice.begin() + static_cast<std::ptrdiff_t>(stacked_axis(slice, form.outputs[output])));
  return has_dims(*body.yields[body.yields.size() - form.outputs.size() + output], body, slice);
}

// Outputs have their place before the loop where it is known how many trips there are, else they grow.
void Emitter::begin_outputs(Trips& loop) {
  const ir::Region& body = loop.body;
  for (size_t i = 0; i < loop.form.outputs.size(); ++i) {
    Trips::Output output{.result = loop.node.results[loop.form.states + i].get(),
                         .yield = body.yields[body.yields.size() - loop.form.outputs.size() + i],
                         .slices = loop.form.outputs[i],
                         .place = 0};
    bool is_known = stacks_as_known(loop.node, loop.form, i) &&
                    std::ranges::all_of(dims_of(*output.result), [&](sym::Expr d) { return sizes_.knows(d); });
    output.place = is_known ? result_place(*output.result) : loose_place(*output.result);
    if (is_loose(output.place)) {
      output.growth = begin_growth({.from = output.place,
                                    .to = output.place,
                                    .reversed = output.slices.reversed,
                                    .empty = empty_dims(loop, *output.result, *output.yield),
                                    .node = loop.node.source});
    } else {
      if (program().registers[output.place].storage == Storage::heap) instruction(Opcode::allocate, output.place);
      if (program().registers[output.place].alternates && !destinations_.contains(output.result))
        instruction(Opcode::alternate, output.place);
    }
    loop.outputs.push_back(output);
  }
}

uint32_t Emitter::begin_growth(program::Growth growth) {
  program().growths.push_back(std::move(growth));
  auto index = static_cast<uint32_t>(program().growths.size() - 1);
  instruction(Opcode::grow, index);
  return index;
}

// Without trips an output has the shape that the first would give it.
std::vector<Emitter::Slot> Emitter::empty_dims(const Trips& loop, const Value& result, const Value& yield) {
  sizes_.enter();
  bind_index(loop.node, loop.body, slot(0));
  for (size_t i = 0; i < loop.form.states; ++i) {
    Register initial = register_of(*loop.node.operands[loop.form.first_state + i]);
    const ir::Type& type = rdp_.known(loop.parameter(i)).type;
    const RegisterInfo& info = program().registers[initial];
    if (!type.dims || !info.is_tensor || info.dims.size() != type.dims->size()) continue;
    for (size_t axis = 0; axis < info.dims.size(); ++axis)
      if (sym::Expr d = (*type.dims)[axis]; d.is_symbol() && !sizes_.knows(d)) sizes_.bind(d, info.dims[axis], false);
  }
  std::vector<Slot> dims{slot(0)};
  for (size_t axis = 0; axis < dims_of(yield).size(); ++axis) {
    sym::Expr stacked = dims_of(result)[axis + 1];
    dims.push_back(slot(sizes_.knows(stacked) ? stacked : dims_of(yield)[axis]));
  }
  flush_steps();
  sizes_.leave();
  return dims;
}

namespace {

bool is_used(const ir::Value& value, const ir::Region& region) {
  if (std::ranges::find(region.yields, &value) != region.yields.end()) return true;
  for (const auto& node : region.nodes) {
    if (std::ranges::find(node->operands, &value) != node->operands.end()) return true;
    for (const auto& inner : node->regions)
      if (is_used(value, *inner)) return true;
  }
  return false;
}

}  // namespace

void Emitter::begin_trip(Trips& loop) {
  instruction(Opcode::trip, loop.index);
  bind_index(loop.node, loop.body, loop.index);
  if (loop.form.counts) {
    const Value& number = *loop.body.parameters[0];
    if (is_used(number, loop.body)) {
      RegisterInfo info{.name = number.name, .storage = Storage::arena, .is_tensor = true, .dtype = DType::i64};
      info.bytes = slot(8);
      Register r = registers_[&number] = add_register(std::move(info));
      instruction(Opcode::scalar, r, loop.index);
    }
    const Value& condition = *loop.body.parameters[1];
    if (is_used(condition, loop.body))
      registers_[&condition] = constant_register(Tensor::scalar_bool(true), condition.name);
  }
  for (size_t i = 0; i < loop.form.states; ++i) {
    Register state = ranked(loop.parameter(i), loop.states[i]);
    registers_[&loop.parameter(i)] = state;
    bind_symbols(loop.parameter(i), state, false);
  }
  flush_checks();  // what the body requires of a slice is what is cut
  slice_inputs(loop);
}

// Slices along the first axis are seen where they are.
void Emitter::slice_inputs(Trips& loop) {
  for (size_t i = 0; i < loop.form.inputs.size(); ++i) {
    const Value& whole = *loop.node.operands[loop.form.first_state + loop.form.states + i];
    const Value& parameter = loop.parameter(loop.form.states + i);
    if (!is_used(parameter, loop.body)) continue;
    Register from = register_in(whole, {});
    DType dtype = rdp_.known(whole).type.dtype;
    SliceForm form = slice_form(dims_of(whole), dtype, loop.form.inputs[i]);
    Slot position = slice_position(loop, form);
    if (form.is_one_piece()) {
      RegisterInfo info = tensor_info(parameter, Storage::view);
      info.viewed = from;
      info.offset = position;
      Register r = registers_[&parameter] = add_register(std::move(info));
      bind_symbols(parameter, r, false);
      continue;
    }
    Register r = registers_[&parameter] = new_tensor(parameter, true);
    program().slice_copies.push_back({.from = from,
                                      .to = r,
                                      .rows = slot(form.rows),
                                      .row_bytes = slot(form.row_bytes),
                                      .from_offset = position,
                                      .from_stride = slot(form.row_bytes * form.count),
                                      .to_offset = slot(0),
                                      .to_stride = slot(form.row_bytes)});
    instruction(Opcode::copy_slice, static_cast<uint32_t>(program().slice_copies.size() - 1));
    bind_symbols(parameter, r, false);
  }
}

// Where the values go that leave a trip: into the slice of an output if there is one, else where the next trip does
// not write.
void Emitter::plan_yields(Trips& loop) {
  for (Trips::Output& output : loop.outputs) {
    if (output.growth) continue;
    SliceForm form = slice_form(dims_of(*output.result), rdp_.known(*output.result).type.dtype, output.slices);
    if (!form.is_one_piece()) continue;
    RegisterInfo info = tensor_info(*output.yield, Storage::view);
    info.viewed = output.place;
    info.offset = slice_position(loop, form);
    output.slice = add_register(std::move(info));
    if (may_be_written_to(*output.yield, loop.body, output.slice, {}))
      destinations_.emplace(output.yield, output.slice);
  }
  for (size_t i = 0; i < loop.form.states; ++i) {
    const Value* yield = &loop.yield(i);
    if (in_place_.contains(yield->node)) continue;
    if (program().registers[loop.states[i]].storage != Storage::state) {
      outputs_.insert(yield);
      continue;
    }
    while (yield->node != nullptr && stitcher_.placement().views.contains(yield->node))
      yield = yield->node->operands[0];
    if (yield->node != nullptr && homes_.at(yield->node) == &loop.body && !destinations_.contains(yield))
      escaping_.insert(yield);
  }
}

void Emitter::end_trip(Trips& loop) {
  store_outputs(loop);
  if (loop.goes_on) set_slot(*loop.goes_on, number(*loop.body.yields[0]));
  move_states(loop);
  sizes_.step({.op = SizeStep::Op::add, .to = loop.index, .a = loop.index, .b = slot(1)});
}

void Emitter::store_outputs(Trips& loop) {
  for (Trips::Output& output : loop.outputs) {
    Register from = register_in(*output.yield, {});
    if (output.growth) {
      program().growths[*output.growth].from = from;
      instruction(Opcode::append, *output.growth);
    } else if (output.slice != program::no_register) {
      if (from != output.slice) instruction(Opcode::move, output.slice, from);
    } else {
      SliceForm form = slice_form(dims_of(*output.result), rdp_.known(*output.result).type.dtype, output.slices);
      program().slice_copies.push_back({.from = from,
                                        .to = output.place,
                                        .rows = slot(form.rows),
                                        .row_bytes = slot(form.row_bytes),
                                        .from_offset = slot(0),
                                        .from_stride = slot(form.row_bytes),
                                        .to_offset = slice_position(loop, form),
                                        .to_stride = slot(form.row_bytes * form.count)});
      instruction(Opcode::copy_slice, static_cast<uint32_t>(program().slice_copies.size() - 1));
    }
  }
}

Emitter::Register Emitter::kept_copy(Register like, Register from) {
  RegisterInfo info = program().registers[like];
  info.storage = Storage::arena;
  info.alternates = true;
  Register copy = add_register(std::move(info));
  instruction(Opcode::alternate, copy);
  instruction(Opcode::move, copy, from);
  return copy;
}

Emitter::Register Emitter::moved_aside(Register from) {
  RegisterInfo info = program().registers[from];
  info.storage = Storage::heap;
  info.viewed = program::no_register;
  info.offset.reset();
  info.alternates = false;
  info.bytes = 0;
  for (Slot& dim : info.dims) dim = sizes_.new_slot();
  Register aside = add_register(std::move(info));
  instruction(Opcode::move, aside, from);
  return aside;
}

// All states change at once: what one becomes may be what another was.
void Emitter::move_states(Trips& loop) {
  std::vector<Register> next;
  for (size_t i = 0; i < loop.states.size(); ++i) {
    if (in_place_.contains(loop.yield(i).node)) {
      next.push_back(loop.states[i]);
      continue;
    }
    Register from = register_in(loop.yield(i), {});
    Register memory = program::base_of(program(), from);
    RegisterInfo info = program().registers[memory];
    bool is_state = std::ranges::find(loop.states, memory) != loop.states.end();
    bool is_inside = memory >= blocks_[loop.block].first_register;
    if (program().registers[loop.states[i]].storage != Storage::state) {
      bool reads_state = (is_state && from != loop.states[i]) || from != memory;
      next.push_back(reads_state ? moved_aside(from) : from);
      continue;
    }
    if (memory == loop.states[i]) {
      next.push_back(memory);
      continue;
    }
    // The next trip would write there, or what is there was another loop's state.
    bool is_lost =
        is_state ||
        (is_inside && (info.storage == Storage::state || (info.storage == Storage::arena && !info.alternates)));
    next.push_back(is_lost ? kept_copy(loop.states[i], from) : from);
  }
  replace_in_place(loop);
  for (size_t i = 0; i < loop.states.size(); ++i)
    if (next[i] != loop.states[i]) instruction(Opcode::move, loop.states[i], next[i]);
}

// A register with dims where those of the value are known.
Emitter::Register Emitter::ranked(const Value& value, Register r) {
  const ir::Type& type = rdp_.known(value).type;
  if (!type.is_tensor() || !type.dims || program().registers[r].is_tensor) return r;
  Register out = loose_place(value);
  instruction(Opcode::move, out, r);
  return out;
}

void Emitter::end_loop(Trips& loop) {
  for (const Trips::Output& output : loop.outputs)
    if (output.growth) instruction(Opcode::collect, *output.growth);
  bind_trips(loop.node, loop.index);
  auto set_result = [&](const Value& result, Register r) {
    r = registers_[&result] = ranked(result, r);
    bind_symbols(result, r, false);
  };
  for (size_t i = 0; i < loop.states.size(); ++i) set_result(*loop.node.results[i], loop.states[i]);
  for (const Trips::Output& output : loop.outputs) set_result(*output.result, output.place);
}

// Operands that are no sequences are the same in every trip. How many items the others have must be equal.
Emitter::Items Emitter::map_operands(const Node& node) {
  const ir::Region& body = *node.regions[0];
  Items out;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    Register r = register_in(*node.operands[i], {});
    if (rdp_.known(*node.operands[i]).type.kind != ir::Type::Kind::seq) {
      registers_[body.parameters[i].get()] = r;
      continue;
    }
    Slot length = sizes_.new_slot();
    instruction(Opcode::length, length, r);
    if (out.sequences.empty()) {
      out.count = length;
    } else {
      program().checks.push_back(
          {.equal = true,
           .a = out.count,
           .b = length,
           .text = "sequences of {a} and {b} items cannot be mapped together, in " + escaped(node.describe())});
      instruction(Opcode::check, static_cast<uint32_t>(program().checks.size() - 1));
    }
    out.sequences.emplace_back(body.parameters[i].get(), r);
  }
  return out;
}

void Emitter::map_items(const Items& items, Slot index, const Node& node) {
  for (auto [parameter, sequence] : items.sequences) {
    Register r = registers_[parameter] = loose_place(*parameter);
    program().items.push_back({.sequence = sequence, .to = r, .index = index, .node = node.source});
    instruction(Opcode::item, static_cast<uint32_t>(program().items.size() - 1));
    bind_symbols(*parameter, r, false);
  }
}

void Emitter::emit_map(const Node& node) {
  const ir::Region& body = *node.regions[0];
  Items items = map_operands(node);
  std::vector<uint32_t> growths;
  for (const auto& result : node.results) {
    Register to = registers_[result.get()] = loose_place(*result);
    growths.push_back(begin_growth({.from = to, .to = to, .stacks = false, .node = node.source}));
  }
  Slot index = sizes_.new_slot();
  Slot again = sizes_.new_slot();
  set_slot(index, slot(0));
  size_t exit = 0;
  size_t block = 0;
  {
    Scope scope(*this, body, true);
    block = scope.block();
    uint32_t head = here();
    sizes_.step({.op = SizeStep::Op::less, .to = again, .a = index, .b = items.count});
    exit = jump_instruction(Opcode::branch, again);
    instruction(Opcode::trip, index);
    map_items(items, index, node);
    for (const Value* yield : body.yields) outputs_.insert(yield);
    emit_steps(body);
    for (size_t i = 0; i < growths.size(); ++i) {
      program().growths[growths[i]].from = register_in(*body.yields[i], {});
      instruction(Opcode::append, growths[i]);
    }
    sizes_.step({.op = SizeStep::Op::add, .to = index, .a = index, .b = slot(1)});
    instruction(Opcode::jump, head);
    close_block(block);
  }
  land(exit);
  blocks_[block].join = here();
  for (uint32_t growth : growths) instruction(Opcode::collect, growth);
}

}  // namespace selkie::compiler
