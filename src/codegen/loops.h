// Gives the loops of a kernel their final shape: nests that run over memory in one line become one loop, and what
// threads may share becomes a range.
#pragma once

#include "kir/kernel.h"

namespace selkie::codegen {

// The loops that store the output are perfectly nested, apart from reductions, and independent.
kir::Kernel shape_loops(kir::Kernel kernel, sym::Context& symbols);

}  // namespace selkie::codegen
