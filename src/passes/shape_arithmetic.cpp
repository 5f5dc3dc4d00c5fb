// shape_arithmetic: what was computed from shapes to make a shape becomes expressions on the node that needs it.
#include <algorithm>

#include "passes/static_operands.h"

namespace selkie::passes {

// reshape(x, concat(gather(shape(x), 0), @c)) => reshape(x, _) {shape = sym[N, 12]}
bool shape_arithmetic(ir::Module& module) {
  return write_static_operands(module, [](const ir::SymElements& elements) {
    return std::ranges::any_of(elements, [](sym::Expr e) { return !e.is_constant(); });
  });
}

}  // namespace selkie::passes
