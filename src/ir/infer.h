// The types of a region's results from the types of its arguments: one pass of `forward` and `value`, without facts.
// The reference evaluator asks this for a loop without trips, whose outputs have a shape nevertheless.
#pragma once

#include "ir/shape_context.h"

namespace selkie::ir {

struct InferredResult {
  Type type;            // unknown where only running tells
  std::string failure;  // of a node that it depends on; the type is then not to be relied on
};

// What is known from outside the region.
struct Surroundings {
  std::function<Known(const Value&)> value;
  std::function<Known(const Node&, size_t operand)> static_operand;  // what a pass wrote in its place, if anything
  const Module& module;                                              // whose functions may be called
};

std::vector<InferredResult> infer_region(const Region& region, std::vector<Known> parameters, const Surroundings& outer,
                                         sym::Context& symbols);

}  // namespace selkie::ir
