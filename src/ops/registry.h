// The set of all operators, made from ops.def.
#pragma once

#include "ir/op_def.h"

namespace selkie::ops {

const ir::OpSet& op_set();

}  // namespace selkie::ops
