// Slices of a tensor that are replaced: in a copy, or in place where the tensor is the state of a loop.
#include <algorithm>

#include "compiler/trips.h"
#include "program/uses.h"

namespace selkie::compiler {

using program::Opcode;
using Storage = program::RegisterInfo::Storage;

namespace {

int64_t count_uses(const ir::Region& region, const ir::Value* value) {
  int64_t found = std::ranges::count(region.yields, value);
  ir::for_each_node(region, [&](const ir::Node& user) {
    found += std::ranges::count(user.operands, value);
    for (const auto& inner : user.regions) found += std::ranges::count(inner->yields, value);
  });
  return found;
}

}  // namespace

std::string Emitter::replacement_refusal(const Node& node, const KnownSymbols& known) const {
  const ir::Attribute* reduction = node.attrs.find("reduction");
  if (reduction != nullptr && std::get<std::string>(*reduction) != "none") return std::string(node.op->lower.reason());
  for (const Value* operand : node.operands) {
    const ir::Type* type = operand == nullptr ? nullptr : &rdp_.known(*operand).type;
    if (type == nullptr || !type->is_tensor() || type->dtype == DType::str || !is_sized(*operand, known))
      return "a size is not known before it runs";
  }
  return is_sized(*node.results[0], known) ? "" : "a size is not known before it runs";
}

void Emitter::copy_whole(const Value& like, Register to, Register from) {
  DType dtype = program().registers[to].dtype;
  Slot none = slot(0);
  program().slice_copies.push_back({.from = from,
                                    .to = to,
                                    .rows = slot(1),
                                    .row_bytes = slot(elements(like) * static_cast<int64_t>(element_size(dtype))),
                                    .from_offset = none,
                                    .from_stride = none,
                                    .to_offset = none,
                                    .to_stride = none});
  instruction(Opcode::copy_slice, static_cast<uint32_t>(program().slice_copies.size() - 1));
}

void Emitter::add_replacement(const Node& node, Register to, Register indices, Register slices) {
  program().replacements.push_back({.to = to, .indices = indices, .slices = slices, .node = node.describe()});
  instruction(Opcode::replace, static_cast<uint32_t>(program().replacements.size() - 1));
}

void Emitter::emit_replacement(const Node& node) {
  if (in_place_.contains(&node)) return;  // at the end of the trip, when nothing reads the old slices any more
  const Value& result = *node.results[0];
  Register from = register_in(*node.operands[0], {});
  Register indices = register_in(*node.operands[1], {});
  Register slices = register_in(*node.operands[2], {});
  Register to = new_stored(result);
  copy_whole(result, to, from);
  add_replacement(node, to, indices, slices);
  bind_symbols(result, to, false);
}

// A state that a trip only reads, until it replaces slices of it for the next one.
bool Emitter::is_replaced_in_place(const Trips& loop, size_t state) {
  const Value* parameter = &loop.parameter(state);
  const Value* yield = &loop.yield(state);
  const Node* node = yield->node;
  if (node == nullptr || homes_.at(node) != &loop.body || !is_compiled(*node) || node->operands[0] != parameter ||
      node->op->control(*node).kind != ir::ControlForm::Kind::replace || !keeps_size(loop, state))
    return false;
  return count_uses(loop.body, yield) == 1 &&
         std::ranges::find(loop.body.yields, parameter) == loop.body.yields.end() &&
         std::ranges::count(node->operands, parameter) == 1;
}

// The place that all trips change, with what the state is before the first: the initial value's own place if nothing
// else uses that.
Emitter::Register Emitter::begin_in_place(const Trips& loop, size_t state) {
  const Value& parameter = loop.parameter(state);
  const Value& initial = *loop.node.operands[loop.form.first_state + state];
  in_place_.insert(loop.yield(state).node);
  Register from = register_in(initial, {});
  bool is_own = initial.node != nullptr && homes_.at(initial.node) == homes_.at(&loop.node) &&
                from == register_of(initial) && program().registers[from].storage == Storage::arena &&
                !program().registers[from].alternates && count_uses(*homes_.at(&loop.node), &initial) == 1;
  if (is_own) return from;
  Register place = new_tensor(parameter, !outputs_.contains(loop.node.results[state].get()));
  copy_whole(parameter, place, from);
  return place;
}

void Emitter::replace_in_place(Trips& loop) {
  auto apart = [&](const Value& value) {
    Register r = register_in(value, {});
    bool is_state = std::ranges::find(loop.states, program::base_of(program(), r)) != loop.states.end();
    return is_state ? moved_aside(r) : r;
  };
  struct Operands {
    Register indices, slices;
  };
  std::vector<std::optional<Operands>> operands(loop.states.size());
  for (size_t i = 0; i < loop.states.size(); ++i)
    if (const Node* node = loop.yield(i).node; in_place_.contains(node))
      operands[i] = Operands{.indices = apart(*node->operands[1]), .slices = apart(*node->operands[2])};
  for (size_t i = 0; i < loop.states.size(); ++i)
    if (operands[i]) add_replacement(*loop.yield(i).node, loop.states[i], operands[i]->indices, operands[i]->slices);
}

}  // namespace selkie::compiler
