// Fusion: which values of a region are stored, and which are computed where they are used.
#pragma once

#include <functional>
#include <set>

#include "ir/module.h"

namespace selkie::plan {

// A step of a region, in the order in which it runs.
struct Step {
  const ir::Node* node;               // the last one
  const ir::Value* stored = nullptr;  // computed by one kernel, with the nodes that are inlined; null: not a kernel
  std::set<const ir::Node*> inlined = {};  // `node` and those that it computes on the way
};

struct FusionRules {
  // Whether its result is the memory of its operand, so that storing it costs nothing.
  std::function<bool(const ir::Node&)> is_view;
  // Whether a kernel can compute a node's results.
  std::function<bool(const ir::Node&)> has_kernel;
  // Whether a node that has one may be computed where its result is used.
  std::function<bool(const ir::Node&)> may_be_inlined;
  // Whether `stored` can be computed by one kernel with these nodes inlined, at no more work than before.
  std::function<bool(const ir::Value& stored, const std::set<const ir::Node*>& inlined)> fits;
};

std::vector<Step> form_steps(const ir::Region& region, const FusionRules& rules);

}  // namespace selkie::plan
