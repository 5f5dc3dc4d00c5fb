// dead_code: removes what nobody reads.
#include <unordered_set>

#include "ir/module.h"

namespace selkie::passes {
namespace {

using Live = std::unordered_set<const ir::Value*>;

// Marks what the region needs and drops the other nodes; consumers come after producers, so one walk backwards does.
bool sweep(ir::Region& region, Live& live) {
  bool changed = false;
  for (const ir::Value* value : region.yields) live.insert(value);
  for (size_t i = region.nodes.size(); i-- > 0;) {
    ir::Node& node = *region.nodes[i];
    bool used = false;
    for (const auto& result : node.results) used = used || live.contains(result.get());
    if (!used) {
      region.nodes[i].reset();
      changed = true;
      continue;
    }
    for (auto& inner : node.regions) changed = sweep(*inner, live) || changed;
    for (const ir::Value* operand : node.operands) live.insert(operand);
  }
  std::erase(region.nodes, nullptr);
  return changed;
}

}  // namespace

bool dead_code(ir::Module& module) {
  Live live;
  bool changed = false;
  for (const auto& function : module.functions()) changed = sweep(function->body, live) || changed;
  size_t before = module.constants().size();
  module.erase_constants_if([&](const ir::Constant& constant) { return !live.contains(&constant.value); });
  return changed || module.constants().size() != before;
}

}  // namespace selkie::passes
