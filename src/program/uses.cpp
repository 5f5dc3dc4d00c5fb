#include "program/uses.h"

#include <algorithm>

namespace selkie::program {

std::vector<bool> set_at_entry(const Program& p) {
  std::vector<bool> out(p.slots, false);
  std::fill_n(out.begin(), p.entry_slots, true);
  for (const Instruction& i : p.code) {
    if (!is_entry(i.op)) break;
    for (uint32_t s = i.a; i.op == Opcode::sizes && s < i.b; ++s) out[p.steps[s].to] = true;
  }
  return out;
}

std::string_view node_of(const Program& p, const Instruction& i) {
  switch (i.op) {
    case Opcode::check_indices:
      return p.index_checks[i.a].node;
    case Opcode::launch:
      return p.launches[i.a].node;
    case Opcode::product:
      return p.products[i.a].node;
    case Opcode::convolution:
      return p.convolutions[i.a].node;
    case Opcode::integer:
      return p.integer_products[i.a].node;
    case Opcode::attention:
      return p.attentions[i.a].node;
    case Opcode::recurrent:
      return p.recurrents[i.a].node;
    case Opcode::host:
      return p.host_calls[i.a].node;
    case Opcode::call:
      return p.calls[i.a].node;
    case Opcode::item:
      return p.items[i.a].node;
    case Opcode::insert:
      return p.insertions[i.a].node;
    case Opcode::append:
      return p.growths[i.a].node;
    default:
      return {};
  }
}

bool sets(const Program& p, const Instruction& i, Register r) {
  using Storage = RegisterInfo::Storage;
  switch (i.op) {
    case Opcode::host:
      return std::ranges::find(p.host_calls[i.a].results, r) != p.host_calls[i.a].results.end();
    case Opcode::call:
      return std::ranges::find(p.calls[i.a].results, r) != p.calls[i.a].results.end();
    case Opcode::allocate:
    case Opcode::collect:
      return true;
    case Opcode::item:
      return r == p.items[i.a].to;
    case Opcode::insert:
      return r == p.insertions[i.a].to;
    case Opcode::move:
    case Opcode::take:
      return r == i.a && (p.registers[r].storage == Storage::heap || p.registers[r].storage == Storage::state);
    default:
      return false;
  }
}

std::vector<std::vector<Register>> pointed_to(const Program& p, std::span<const Instruction> code) {
  std::vector<std::vector<Register>> out(p.registers.size());
  auto is_state = [&](Register r) { return p.registers[r].storage == RegisterInfo::Storage::state; };
  auto add = [&](std::vector<Register>& to, Register r) {
    auto at = std::ranges::lower_bound(to, r);
    if (at != to.end() && *at == r) return false;
    to.insert(at, r);
    return true;
  };
  // A state that gets more hands it on to those that are moved from it.
  std::vector<std::vector<Register>> handed_to(p.registers.size());
  std::vector<std::pair<Register, Register>> fresh;  // a state, and what it was found to point to
  for (const Instruction& i : code) {
    if (i.op != Opcode::move || !is_state(i.a)) continue;
    Register from = base_of(p, i.b);
    if (is_state(from))
      handed_to[from].push_back(i.a);
    else if (add(out[i.a], from))
      fresh.emplace_back(i.a, from);
  }
  while (!fresh.empty()) {
    auto [state, memory] = fresh.back();
    fresh.pop_back();
    for (Register next : handed_to[state])
      if (add(out[next], memory)) fresh.emplace_back(next, memory);
  }
  return out;
}

}  // namespace selkie::program
