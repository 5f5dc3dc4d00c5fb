// The types of a region's results from the types of its arguments: one pass of `forward` and `value`, without facts.
// The reference evaluator asks this for a loop without trips, whose outputs have a shape nevertheless.
#pragma once

#include "ir/shape_context.h"

namespace selkie::ir {

// An error if a node of the region cannot run on arguments of these ranks, whatever their sizes.
// `outer` tells what is known of values from outside the region. Types are unknown where only running tells.
std::vector<Type> infer_region(const Region& region, std::vector<Known> parameters,
                               const std::function<Known(const Value&)>& outer, sym::Context& symbols);

}  // namespace selkie::ir
