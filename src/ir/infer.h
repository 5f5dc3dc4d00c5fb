// The types of a region's results from the types of its arguments: one pass of `forward` and `value`, without facts.
// The reference evaluator asks this for a loop without trips, whose outputs have a shape nevertheless.
#pragma once

#include "ir/shape_context.h"

namespace selkie::ir {

struct InferredResult {
  Type type;            // unknown where only running tells
  std::string failure;  // of a node that it depends on; the type is then not to be relied on
};

// `outer` tells what is known of values from outside the region.
std::vector<InferredResult> infer_region(const Region& region, std::vector<Known> parameters,
                                         const std::function<Known(const Value&)>& outer, sym::Context& symbols);

}  // namespace selkie::ir
