#include "program/regions.h"

#include <algorithm>

namespace selkie::program {
namespace {

// A branch skips what follows it. If that ends with a jump back, it is the body of a loop; with a jump forward, the
// first of two arms; else the only one.
void add_regions(const Program& p, std::vector<CodeRegion>& out) {
  for (uint32_t at = 0; at < p.code.size(); ++at) {
    const Instruction& i = p.code[at];
    if (i.op != Opcode::branch || i.a <= at + 1) continue;
    const Instruction& last = p.code[i.a - 1];
    bool is_loop = last.op == Opcode::jump && last.a <= at;
    if (is_loop) {
      out.push_back({.kind = CodeRegion::Kind::loop, .begin = last.a, .end = i.a});
      continue;
    }
    out.push_back({.kind = CodeRegion::Kind::arm, .begin = at + 1, .end = i.a, .branch = at});
    if (last.op == Opcode::jump && last.a > i.a)
      out.push_back({.kind = CodeRegion::Kind::arm, .begin = i.a, .end = last.a, .branch = at});
  }
}

}  // namespace

std::vector<CodeRegion> regions(const Program& program) {
  std::vector<CodeRegion> out{
      {.kind = CodeRegion::Kind::whole, .begin = 0, .end = static_cast<uint32_t>(program.code.size() + 1)}};
  add_regions(program, out);
  std::ranges::stable_sort(out.begin() + 1, out.end(), [](const CodeRegion& a, const CodeRegion& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<size_t> open;
  for (size_t i = 0; i < out.size(); ++i) {
    while (!open.empty() && out[open.back()].end <= out[i].begin) open.pop_back();
    if (!open.empty()) out[i].parent = open.back();
    open.push_back(i);
  }
  return out;
}

std::vector<size_t> innermost_regions(const std::vector<CodeRegion>& regions, size_t instructions) {
  std::vector<size_t> out(instructions + 1, 0);
  for (size_t r = 0; r < regions.size(); ++r)
    for (uint32_t i = regions[r].begin; i < regions[r].end && i < out.size(); ++i) out[i] = r;
  return out;
}

}  // namespace selkie::program
