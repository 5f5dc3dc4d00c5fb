#include "kir/kernel.h"

#include <algorithm>
#include <map>

namespace selkie::kir {

const OpInfo& info(Op op) {
  static constexpr OpInfo table[] = {
#define SELKIE_KIR_OP(name, operands, result) {#name, operands, ResultRule::result},
#include "kir/ops.def"
  };
  return table[static_cast<size_t>(op)];
}

std::vector<sym::Expr> range_extents(const Kernel& kernel) {
  std::vector<sym::Expr> extents;
  auto visit = [&](auto& self, const Block& block) -> void {
    for (const Statement& s : block)
      if (s.kind == Statement::Kind::loop && s.loop_kind == Statement::LoopKind::range) {
        extents.push_back(s.extent);
        self(self, s.body);
      }
  };
  visit(visit, kernel.body);
  return extents;
}

void set_sizes(Kernel& kernel) {
  std::vector<sym::Expr> used;
  std::vector<sym::Expr> variables;
  auto visit = [&](auto& self, const Block& block) -> void {
    for (const Statement& s : block) {
      if (s.variable) variables.push_back(s.variable);
      if (s.extent) sym::collect_symbols(s.extent, used);
      self(self, s.body);
    }
  };
  visit(visit, kernel.body);
  for (const Expr& e : kernel.expressions)
    if (e.integer) sym::collect_symbols(e.integer, used);
  for (const Buffer& b : kernel.buffers) sym::collect_symbols(b.elements, used);
  kernel.sizes.clear();
  for (sym::Expr s : used)
    if (std::ranges::find(variables, s) == variables.end()) kernel.sizes.push_back(s);
}

void make_canonical(Kernel& kernel, sym::Context& symbols) {
  std::map<uint64_t, sym::Expr> renamed;
  for (sym::Expr s : kernel.sizes) renamed.emplace(s.id(), symbols.symbol("s" + std::to_string(renamed.size())));
  size_t loops = 0;
  auto name_loops = [&](auto& self, Block& block) -> void {
    for (Statement& s : block) {
      if (s.variable) renamed.emplace(s.variable.id(), symbols.symbol("v" + std::to_string(loops++)));
      self(self, s.body);
    }
  };
  name_loops(name_loops, kernel.body);
  auto rename = [&](sym::Expr& e) {
    if (!e) return;
    e = sym::substitute(e, [&](sym::Expr s) {
      auto at = renamed.find(s.id());
      return at == renamed.end() ? sym::Expr() : at->second;
    });
  };
  auto rename_loops = [&](auto& self, Block& block) -> void {
    for (Statement& s : block) {
      rename(s.variable);
      rename(s.extent);
      self(self, s.body);
    }
  };
  rename_loops(rename_loops, kernel.body);
  for (Expr& e : kernel.expressions) rename(e.integer);
  for (Buffer& b : kernel.buffers) rename(b.elements);
  for (sym::Expr& s : kernel.sizes) rename(s);
}

}  // namespace selkie::kir
