#include "program/chains.h"

#include <algorithm>

#include "program/uses.h"

namespace selkie::program {
namespace {

using Storage = RegisterInfo::Storage;

class Finder {
 public:
  explicit Finder(const Program& p)
      : p_(p), is_known_(set_at_entry(p)), uses_(p.registers.size(), 0), is_target_(p.code.size() + 1, false) {
    for (const Instruction& i : p.code) {
      for_each_register(p, i, [&](Register r) { ++uses_[base_of(p, r)]; });
      if (jumps(i)) is_target_[i.a] = true;
    }
    for (Register r : p.results) ++uses_[base_of(p, r)];
  }

  std::vector<Chain> find() const {
    std::vector<Chain> out;
    for (uint32_t i = 0; i < p_.code.size(); ++i) {
      uint32_t last = i;
      while (last + 1 < p_.code.size() && follows(last + 1)) ++last;
      if (last > i) out.push_back({.first = i, .last = last});
      i = last;
    }
    return out;
  }

 private:
  // Whether this instruction and the one before it are links of a chain.
  bool follows(size_t at) const {
    if (is_target_[at] || !can_be_link(p_.code[at - 1]) || !can_be_link(p_.code[at])) return false;
    const Convolution& before = p_.convolutions[p_.code[at - 1].a];
    const Convolution& next = p_.convolutions[p_.code[at].a];
    Register between = before.output;
    if (next.input != between || (!before.depthwise && !next.depthwise)) return false;
    const RegisterInfo& info = p_.registers[between];
    // Every mention of its memory counts: those of the two convolutions, and of the first one's epilogue.
    uint32_t mentions = 0;
    for (size_t i : {at - 1, at}) for_each_register(p_, p_.code[i], [&](Register r) { mentions += r == between; });
    return info.storage == Storage::arena && !info.alternates && uses_[between] == mentions;
  }

  bool can_be_link(const Instruction& i) const {
    if (i.op != Opcode::convolution) return false;
    const Convolution& c = p_.convolutions[i.a];
    auto known = [&](Slot s) { return is_known_[s]; };
    if (c.packs_weights || c.grouped || !known(c.batch) || !std::ranges::all_of(c.input_dims, known) ||
        !std::ranges::all_of(c.output_dims, known) || !std::ranges::all_of(c.pads, known))
      return false;
    // What a state points to may be used by others before the chain ends.
    bool has_state = false;
    for_each_register(p_, i, [&](Register r) { has_state |= p_.registers[base_of(p_, r)].storage == Storage::state; });
    return !has_state;
  }

  const Program& p_;
  std::vector<bool> is_known_;
  std::vector<uint32_t> uses_;  // of the memory of each register, by all instructions
  std::vector<bool> is_target_;
};

}  // namespace

std::vector<Chain> find_chains(const Program& p) { return Finder(p).find(); }

}  // namespace selkie::program
