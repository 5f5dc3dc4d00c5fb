#include "kir/kernel.h"

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

}  // namespace selkie::kir
