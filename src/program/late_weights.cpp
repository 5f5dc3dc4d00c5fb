#include "program/late_weights.h"

#include "program/regions.h"
#include "program/uses.h"

namespace selkie::program {
namespace {

// Whether a call reads this register through the library's own layout of weights, and as nothing else.
bool is_packed_weight(const Program& p, const Instruction& i, Register r) {
  switch (i.op) {
    case Opcode::product:
      return p.products[i.a].packed && p.products[i.a].b.value == r;
    case Opcode::convolution: {
      const Convolution& c = p.convolutions[i.a];
      return c.winograd == r || (c.weights == r && !c.packs_weights);
    }
    case Opcode::recurrent:
      return p.recurrents[i.a].weights == r;
    default:
      return false;
  }
}

std::vector<bool> lies_in_arm(const std::vector<CodeRegion>& regions) {
  std::vector<bool> out(regions.size(), false);
  for (size_t i = 1; i < regions.size(); ++i)
    out[i] = regions[i].kind == CodeRegion::Kind::arm || out[regions[i].parent];
  return out;
}

}  // namespace

std::vector<uint32_t> weights_of_arms(const Program& p) {
  std::vector<CodeRegion> all = regions(p);
  std::vector<size_t> innermost = innermost_regions(all, p.code.size());
  std::vector<bool> in_arm = lies_in_arm(all);
  std::vector<bool> late(p.constants.size(), false);
  std::vector<bool> now(p.constants.size(), false);
  auto read = [&](Register r, bool can_wait) {
    const RegisterInfo& info = p.registers[base_of(p, r)];
    if (info.storage == RegisterInfo::Storage::constant) (can_wait ? late : now)[info.constant] = true;
  };
  for (size_t at = 0; at < p.code.size(); ++at)
    for_each_register(p, p.code[at],
                      [&](Register r) { read(r, in_arm[innermost[at]] && is_packed_weight(p, p.code[at], r)); });
  for (Register r : p.results) read(r, false);
  std::vector<uint32_t> out;
  for (uint32_t c = 0; c < late.size(); ++c)
    if (late[c] && !now[c]) out.push_back(c);
  return out;
}

}  // namespace selkie::program
