// Operands whose elements are known before the run, written on the node in their place. Shared by two passes.
#pragma once

#include "analysis/rdp.h"

namespace selkie::passes {

// Whether the elements of an operand may be written on its node.
using Wanted = bool (*)(const ir::SymElements& elements);

// Replaces operands that decide a shape (the causes of ISVDOS operators) by their elements, in @main and its regions.
bool write_static_operands(ir::Module& module, Wanted wanted);

}  // namespace selkie::passes
