// Which registers an instruction reads and writes, without those that it leaves out.
#pragma once

#include <span>
#include <string_view>

#include "program/program.h"

namespace selkie::program {

// Where the memory of a register is that sees that of another.
inline Register base_of(const Program& p, Register r) {
  while (p.registers[r].storage == RegisterInfo::Storage::view) r = p.registers[r].viewed;
  return r;
}

namespace detail {

template <class Function>
void each(std::span<const Register> registers, Function& fn) {
  for (Register r : registers)
    if (r != no_register) fn(r);
}
template <class Function>
void each(std::initializer_list<Register> registers, Function& fn) {
  each(std::span(registers.begin(), registers.size()), fn);
}

template <class Function>
void each_with_epilogue(const Program& p, std::initializer_list<Register> registers,
                        const std::optional<uint32_t>& epilogue, Function& fn) {
  each(registers, fn);
  if (epilogue) each(p.launches[*epilogue].buffers, fn);
}

}  // namespace detail

// fn(register) for each, in no particular order.
template <class Function>
void for_each_register(const Program& p, const Instruction& i, Function fn) {
  using detail::each;
  switch (i.op) {
    case Opcode::launch:
      return each(p.launches[i.a].buffers, fn);
    case Opcode::product: {
      const MatrixProduct& m = p.products[i.a];
      return detail::each_with_epilogue(p, {m.a.value, m.b.value, m.c.value, m.bias, m.finish.addend}, m.epilogue, fn);
    }
    case Opcode::convolution: {
      const Convolution& c = p.convolutions[i.a];
      return detail::each_with_epilogue(p, {c.input, c.output, c.weights, c.winograd, c.bias, c.finish.addend},
                                        c.epilogue, fn);
    }
    case Opcode::integer: {
      const IntegerProduct& c = p.integer_products[i.a];
      return detail::each_with_epilogue(p, {c.input, c.output, c.weights, c.zero}, c.epilogue, fn);
    }
    case Opcode::attention: {
      const Attention& a = p.attentions[i.a];
      return each({a.query.value, a.key.value, a.value.value, a.output.value, a.mask}, fn);
    }
    case Opcode::recurrent: {
      const Recurrent& r = p.recurrents[i.a];
      return each({r.x, r.weights, r.lengths, r.initial_h, r.initial_c, r.y, r.y_h, r.y_c}, fn);
    }
    case Opcode::host:
      each(p.host_calls[i.a].operands, fn);
      return each(p.host_calls[i.a].results, fn);
    case Opcode::call:
      each(p.calls[i.a].operands, fn);
      return each(p.calls[i.a].results, fn);
    case Opcode::check_indices:
      return fn(p.index_checks[i.a].indices);
    case Opcode::bind:
      return fn(p.binds[i.a].value);
    case Opcode::allocate:
    case Opcode::alternate:
    case Opcode::scalar:
      return fn(i.a);
    case Opcode::move:
    case Opcode::take:
      return each({i.a, i.b}, fn);
    case Opcode::copy_slice:
      return each({p.slice_copies[i.a].from, p.slice_copies[i.a].to}, fn);
    case Opcode::replace: {
      const Replacement& r = p.replacements[i.a];
      return each({r.to, r.indices, r.slices}, fn);
    }
    case Opcode::item:
      return each({p.items[i.a].sequence, p.items[i.a].to}, fn);
    case Opcode::insert: {
      const Insertion& n = p.insertions[i.a];
      return each({n.sequence, n.item, n.to}, fn);
    }
    case Opcode::length:
      return fn(i.b);
    case Opcode::append:
      return fn(p.growths[i.a].from);
    case Opcode::collect:
      return fn(p.growths[i.a].to);
    default:
      return;
  }
}

// Which slots are set by inputs and entry code: what only they hold is known before anything else runs.
std::vector<bool> set_at_entry(const Program& p);
inline bool is_entry(Opcode op) { return op == Opcode::sizes || op == Opcode::check || op == Opcode::bind; }

// The node that an instruction computes, as profiles and errors call it; empty if it computes none.
std::string_view node_of(const Program& p, const Instruction& i);

// Whether an instruction gives a register a value of its own, other than by writing memory that is there.
bool sets(const Program& p, const Instruction& i, Register r);

// What the registers of a program may point to, if they are states: the registers of other storage that moves bring
// there. Sorted.
std::vector<std::vector<Register>> pointed_to(const Program& p, std::span<const Instruction> code);

}  // namespace selkie::program
