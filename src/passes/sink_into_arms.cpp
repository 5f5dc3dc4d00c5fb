// sink_into_arms: what only one arm of a branch uses is computed there, if the arm is taken.
#include <optional>

#include "ir/control.h"
#include "ir/module.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Region;
using ir::Value;

// Where a value of a region is used: nowhere yet, in one arm of one branch, or elsewhere, which a null arm stands for.
using Places = std::unordered_map<const Value*, Region*>;

bool is_branch(const Node& node) {
  return node.op->control != nullptr && node.op->control(node).kind == ir::ControlForm::Kind::branch;
}

// Random numbers are drawn in the order of the model.
bool is_deterministic(const Node& node) {
  bool all = node.op->deterministic;
  for (const auto& region : node.regions)
    ir::for_each_node(std::as_const(*region), [&](const Node& inner) { all = all && inner.op->deterministic; });
  return all;
}

class Sinker {
 public:
  // From the last node to the first, so that a node knows where all of its users went.
  bool run(Region& region) {
    Places places;
    bool changed = false;
    for (const Value* value : region.yields) use(places, value, nullptr);
    for (size_t i = region.nodes.size(); i-- > 0;) {
      std::unique_ptr<Node>& node = region.nodes[i];
      Region* arm = is_deterministic(*node) ? only_arm(places, *node) : nullptr;
      use_operands(places, *node, arm);
      if (arm == nullptr) continue;
      sunk_[arm].push_back(std::move(node));
      changed = true;
    }
    std::erase(region.nodes, nullptr);
    for (auto& node : region.nodes)
      for (auto& inner : node->regions) {
        take_in(*inner);
        changed = run(*inner) || changed;
      }
    return changed;
  }

 private:
  static void use(Places& places, const Value* value, Region* arm) {
    auto [at, fresh] = places.try_emplace(value, arm);
    if (!fresh && at->second != arm) at->second = nullptr;
  }

  // The arm that uses the results of a node; null if there is none, or if others do, too.
  static Region* only_arm(const Places& places, const Node& node) {
    std::optional<Region*> arm;
    for (const auto& result : node.results) {
      auto at = places.find(result.get());
      if (at == places.end()) continue;
      if (arm && *arm != at->second) return nullptr;
      arm = at->second;
    }
    return arm.value_or(nullptr);
  }

  // What a node that goes into an arm reads is read there.
  static void use_operands(Places& places, const Node& node, Region* arm) {
    for (const Value* operand : node.operands) use(places, operand, arm);
    for (const auto& inner : node.regions)
      use_all(places, *inner, arm == nullptr && is_branch(node) ? inner.get() : arm);
  }

  static void use_all(Places& places, const Region& region, Region* arm) {
    for (const Value* value : region.yields) use(places, value, arm);
    ir::for_each_node(region, [&](const Node& node) {
      for (const Value* operand : node.operands) use(places, operand, arm);
      for (const auto& inner : node.regions)
        for (const Value* value : inner->yields) use(places, value, arm);
    });
  }

  void take_in(Region& arm) {
    auto at = sunk_.find(&arm);
    if (at == sunk_.end()) return;
    arm.nodes.insert(arm.nodes.begin(), std::make_move_iterator(at->second.rbegin()),
                     std::make_move_iterator(at->second.rend()));
    sunk_.erase(at);
  }

  std::unordered_map<const Region*, std::vector<std::unique_ptr<Node>>> sunk_;  // last ones first
};

}  // namespace

// %b = f(%a)  if(c) then { … %b … } else { … } => if(c) then { %b = f(%a) … %b … } else { … }
bool sink_into_arms(ir::Module& module) { return Sinker().run(module.main().body); }

}  // namespace selkie::passes
