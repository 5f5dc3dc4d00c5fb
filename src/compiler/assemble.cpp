// The program from its parts: entry code, then the rest, with lifetimes of what lies in the arena and releases of what
// does not.
#include <algorithm>

#include "compiler/emitter.h"
#include "program/uses.h"

namespace selkie::compiler {

using program::Instruction;
using program::Opcode;
using Storage = program::RegisterInfo::Storage;

// Registers that are let go of after an instruction, and where paths come together before one.
struct Emitter::Releases {
  std::vector<std::vector<Register>> after, at_join;
};

// Where registers are used first and last.
struct Emitter::Lifetimes {
  static constexpr uint32_t never = UINT32_MAX;
  std::vector<uint32_t> first, last;

  explicit Lifetimes(size_t registers) : first(registers, never), last(registers, 0) {}
  bool is_used(Register r) const { return first[r] != never; }
  void touch(Register r, uint32_t at) { cover(r, at, at); }
  void cover(Register r, uint32_t from, uint32_t to) {
    first[r] = std::min(first[r], from);
    last[r] = std::max(last[r], to);
  }
};

namespace {

// The innermost block around each instruction.
template <class Block>
std::vector<size_t> innermost_blocks(const std::vector<Block>& blocks, size_t instructions) {
  std::vector<size_t> out(instructions + 1, SIZE_MAX);
  // A block is opened before those inside it.
  for (size_t b = 0; b < blocks.size(); ++b)
    for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i) out[i] = b;
  return out;
}

template <class Block>
bool is_made_in(const Block& block, program::Register r) {
  return r >= block.first_register && r < block.last_register;
}

}  // namespace

// What is made before a loop and used inside lives to the loop's end, since the next trip uses it again.
void Emitter::extend_over_loops(Lifetimes& lifetimes, const std::vector<size_t>& block_of) const {
  for (Register r = 0; r < lifetimes.first.size(); ++r) {
    if (!lifetimes.is_used(r)) continue;
    for (uint32_t at : {lifetimes.first[r], lifetimes.last[r]})
      for (size_t b = block_of[at]; b != SIZE_MAX && !is_made_in(blocks_[b], r); b = blocks_[b].parent)
        if (blocks_[b].is_loop) lifetimes.cover(r, blocks_[b].begin, blocks_[b].end - 1);
  }
}

// Whether a register gets another value before it is read again, on every path.
bool Emitter::is_overwritten(const std::vector<Instruction>& code, size_t after, Register r) const {
  constexpr size_t most_steps = 10'000;  // then it is copied
  std::vector<size_t> open{after + 1};
  std::set<size_t> seen;
  while (!open.empty()) {
    size_t at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    if (seen.size() > most_steps) return false;
    if (at >= code.size()) {
      if (std::ranges::find(out_.program.results, r) != out_.program.results.end()) return false;
      continue;
    }
    const Instruction& i = code[at];
    bool is_set = false;
    bool is_read = false;
    program::for_each_register(out_.program, i, [&](Register used) {
      if (program::base_of(out_.program, used) != r) return;
      (used == r && program::sets(out_.program, i, r) ? is_set : is_read) = true;
    });
    if (is_read || (i.op == Opcode::move && i.b == r)) return false;
    if (is_set) continue;
    if (program::jumps(i)) open.push_back(i.a);
    if (program::falls_through(i)) open.push_back(at + 1);
  }
  return true;
}

// A sequence that nobody uses after an insertion is not copied for it.
void Emitter::find_taken(const std::vector<Instruction>& code) {
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].op != Opcode::insert) continue;
    program::Insertion& insertion = program().insertions[code[i].a];
    bool is_host = program().registers[insertion.sequence].storage == Storage::heap;
    insertion.takes = is_host && insertion.item != insertion.sequence && is_overwritten(code, i, insertion.sequence);
  }
}

void Emitter::assemble() {
  std::vector<Instruction> code = whole_code();
  find_taken(code);
  std::vector<size_t> block_of = innermost_blocks(blocks_, code.size());
  Lifetimes lifetimes = find_lifetimes(code, block_of);
  place_code(code, find_releases(lifetimes, block_of), lifetimes);
}

// What runs once per call before anything else, then the rest.
std::vector<Instruction> Emitter::whole_code() {
  std::vector<program::SizeStep> steps = sizes_.take_entry_steps();
  auto begin = static_cast<uint32_t>(program().steps.size());
  program().steps.insert(program().steps.end(), steps.begin(), steps.end());
  std::vector<Instruction> code = std::move(entry_code_);
  code.push_back({.op = Opcode::sizes, .a = begin, .b = static_cast<uint32_t>(program().steps.size())});
  for (uint32_t i = 0; i < entry_check_count_; ++i) code.push_back({.op = Opcode::check, .a = i});
  auto shift = static_cast<uint32_t>(code.size());
  code.insert(code.end(), code_.begin(), code_.end());
  for (Instruction& i : code)
    if (program::jumps(i)) i.a += shift;
  for (Block& block : blocks_)
    for (uint32_t* at : {&block.begin, &block.end, &block.join}) *at += shift;
  return code;
}

// What a state may point to is used where the state is, and from trip to trip.
Emitter::Lifetimes Emitter::find_lifetimes(const std::vector<Instruction>& code, const std::vector<size_t>& block_of) {
  std::vector<std::vector<Register>> pointed_to = program::pointed_to(program(), code);
  Lifetimes lifetimes(program().registers.size());
  auto touch = [&](Register r, size_t at) {
    Register memory = program::base_of(program(), r);
    lifetimes.touch(memory, static_cast<uint32_t>(at));
    for (Register other : pointed_to[memory]) lifetimes.touch(other, static_cast<uint32_t>(at));
  };
  for (size_t i = 0; i < code.size(); ++i)
    program::for_each_register(program(), code[i], [&](Register r) { touch(r, i); });
  for (Register r : program().results) touch(r, code.size());
  for (const Block& block : blocks_)
    for (Register state : block.states)
      for (Register r : pointed_to[state])
        if (lifetimes.is_used(r)) lifetimes.cover(r, block.begin, block.end - 1);
  extend_over_loops(lifetimes, block_of);
  return lifetimes;
}

// Values are released where all paths come by: after their last use, or where the blocks end that they were not made
// in.
Emitter::Releases Emitter::find_releases(const Lifetimes& lifetimes, const std::vector<size_t>& block_of) {
  Releases out{.after = std::vector<std::vector<Register>>(block_of.size()),
               .at_join = std::vector<std::vector<Register>>(block_of.size())};
  for (Register r = 0; r < program().registers.size(); ++r) {
    Storage storage = program().registers[r].storage;
    if ((storage != Storage::heap && storage != Storage::state) || !lifetimes.is_used(r)) continue;
    std::optional<uint32_t> join;
    for (size_t b = block_of[lifetimes.last[r]]; b != SIZE_MAX && !is_made_in(blocks_[b], r); b = blocks_[b].parent)
      join = blocks_[b].join;
    (join ? out.at_join[*join] : out.after[lifetimes.last[r]]).push_back(r);
  }
  return out;
}

// Releases move what comes after them, so lifetimes are counted in the code without them, then mapped.
void Emitter::place_code(const std::vector<Instruction>& code, Releases releases, const Lifetimes& lifetimes) {
  std::vector<uint32_t> place(code.size() + 1);
  std::vector<uint32_t> landing(code.size() + 1);  // of jumps from before
  auto& out = program().code;
  auto release = [&](const std::vector<Register>& registers) {
    for (Register r : registers) out.push_back({.op = Opcode::release, .a = r});
  };
  for (size_t i = 0; i < code.size(); ++i) {
    landing[i] = static_cast<uint32_t>(out.size());
    release(releases.at_join[i]);
    place[i] = static_cast<uint32_t>(out.size());
    out.push_back(code[i]);
    // What is let go of anyway is handed over.
    bool is_handed_over = code[i].op == Opcode::move && program().registers[code[i].a].storage == Storage::heap &&
                          program().registers[code[i].b].storage == Storage::heap &&
                          std::erase(releases.after[i], code[i].b) > 0;
    if (is_handed_over) out.back().op = Opcode::take;
    release(releases.after[i]);
  }
  place.back() = landing.back() = static_cast<uint32_t>(out.size());
  for (size_t i = 0; i < out.size(); ++i)
    if (program::jumps(out[i])) out[i].a = place[out[i].a] <= i ? place[out[i].a] : landing[out[i].a];
  for (Register r = 0; r < program().registers.size(); ++r) {
    if (!lifetimes.is_used(r)) continue;
    program().registers[r].first = place[lifetimes.first[r]];
    program().registers[r].last = place[lifetimes.last[r]];
  }
}

}  // namespace selkie::compiler
