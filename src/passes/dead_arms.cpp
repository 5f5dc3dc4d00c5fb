// dead_arms: a branch whose condition is decided is replaced by the arm that is taken.
#include <unordered_map>

#include "analysis/rdp.h"

namespace selkie::passes {
namespace {

using Replacement = std::unordered_map<const ir::Value*, ir::Value*>;

// The arm that a branch takes, if facts decide it.
std::optional<size_t> taken_arm(const analysis::Rdp& rdp, const ir::Node& node) {
  if (node.op->name != "if" || node.operands[0] == nullptr) return std::nullopt;
  const std::optional<ir::Contents>& condition = rdp.known(*node.operands[0]).contents;
  if (condition && condition->complete() && condition->elements.size() == 1)
    if (auto value = condition->elements[0].constant()) return *value != 0 ? 0 : 1;
  // The condition of an outer branch may decide it inside an arm.
  for (size_t arm = 0; arm < 2; ++arm)
    if (rdp.region(*node.regions[arm]).entry == analysis::Entry::never) return 1 - arm;
  return std::nullopt;
}

// Nodes that were replaced; their results are still named as uses.
using Removed = std::vector<std::unique_ptr<ir::Node>>;

bool inline_arms(const analysis::Rdp& rdp, ir::Region& region, Replacement& replacement, Removed& removed) {
  bool changed = false;
  std::vector<std::unique_ptr<ir::Node>> nodes;
  for (auto& node : region.nodes) {
    for (auto& inner : node->regions) changed = inline_arms(rdp, *inner, replacement, removed) || changed;
    std::optional<size_t> arm = taken_arm(rdp, *node);
    if (!arm) {
      nodes.push_back(std::move(node));
      continue;
    }
    ir::Region& taken = *node->regions[*arm];
    for (auto& inner : taken.nodes) nodes.push_back(std::move(inner));
    for (size_t i = 0; i < node->results.size(); ++i) {
      replacement[node->results[i].get()] = taken.yields[i];
      if (taken.yields[i]->name.empty()) taken.yields[i]->name = node->results[i]->name;
    }
    taken.nodes.clear();
    removed.push_back(std::move(node));
    changed = true;
  }
  region.nodes = std::move(nodes);
  return changed;
}

}  // namespace

// if(c) then {a} else {b}, where c is known to hold => a
bool dead_arms(ir::Module& module) {
  analysis::Rdp rdp(module);
  Replacement replacement;
  Removed removed;
  ir::Region& body = module.main().body;
  bool changed = inline_arms(rdp, body, replacement, removed);
  ir::replace_uses(body, replacement);
  return changed;
}

}  // namespace selkie::passes
