// Nodes whose operands are known, as both the analysis and the inference of types meet them.
#pragma once

#include "ir/shape_context.h"

namespace selkie::ir {

// Whether hooks may look at the operands: where not even the dtype of a tensor is known, they would take it for
// another.
bool are_typed(const Node& node, std::span<const Known> operands);

// Each result of a node whose operands are all numbers, by evaluating it; nothing if they are not, or if it fails.
// Results that are no tensors are unknown.
std::optional<std::vector<Known>> fold(const Node& node, std::span<const Known> operands, sym::Context& symbols);

}  // namespace selkie::ir
