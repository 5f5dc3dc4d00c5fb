// static_attributes: shapes, axes and counts that are numbers are written on the node, which is ISDOS then.
#include <algorithm>

#include "passes/static_operands.h"

namespace selkie::passes {

// reshape(x, @shape) => reshape(x, _) {shape = sym[2, 3]}
bool static_attributes(ir::Module& module) {
  return write_static_operands(module, [](const ir::SymElements& elements) {
    return std::ranges::all_of(elements, [](sym::Expr e) { return e.is_constant(); });
  });
}

}  // namespace selkie::passes
