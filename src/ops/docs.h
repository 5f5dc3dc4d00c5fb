// Text about operators, generated from their records.
#pragma once

#include <string>

#include "ir/op_def.h"

namespace selkie::ops {

// One operator: signature, attributes, dtypes, versions, dynamism, hooks.
std::string describe(const ir::OpDef& op);

// All of them, as docs/ops.md.
std::string markdown();

// All records as a JSON list: names, versions, operands, results, attributes, dtypes, class, hooks.
std::string json();

}  // namespace selkie::ops
