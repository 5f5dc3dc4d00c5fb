// Instructions that work on sequences.
#include "compiler/emitter.h"

namespace selkie::compiler {

using program::Opcode;
using program::RegisterInfo;

void Emitter::emit_item(const Node& node) {
  const Value& result = *node.results[0];
  program::Item item{.sequence = register_of(*node.operands[0]),
                     .to = 0,
                     .index = *operand_number(node, 1, true),
                     .node = node.source};
  item.to = registers_[&result] = loose_place(result);
  program().items.push_back(std::move(item));
  instruction(Opcode::item, static_cast<uint32_t>(program().items.size() - 1));
  bind_symbols(result, registers_[&result], false);
}

void Emitter::emit_insert(const Node& node) {
  program::Insertion insertion{.sequence = register_of(*node.operands[0]),
                               .item = register_in(*node.operands[1], {}),
                               .to = 0,
                               .node = node.source};
  insertion.index = operand_number(node, 2, true);
  insertion.to = registers_[node.results[0].get()] = loose_place(*node.results[0]);
  program().insertions.push_back(std::move(insertion));
  instruction(Opcode::insert, static_cast<uint32_t>(program().insertions.size() - 1));
}

void Emitter::emit_length(const Node& node) {
  const Value& result = *node.results[0];
  Slot length = sizes_.new_slot();
  instruction(Opcode::length, length, register_of(*node.operands[0]));
  RegisterInfo info{
      .name = result.name, .storage = RegisterInfo::Storage::arena, .is_tensor = true, .dtype = DType::i64};
  info.bytes = slot(8);
  Register r = registers_[&result] = add_register(std::move(info));
  instruction(Opcode::scalar, r, length);
  bind_symbols(result, r, false);
}

}  // namespace selkie::compiler
