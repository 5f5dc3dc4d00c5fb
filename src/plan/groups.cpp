#include "plan/groups.h"

#include <algorithm>
#include <map>

namespace selkie::plan {
namespace {

using ir::Mapping;
using ir::Node;
using ir::Value;

class Fusion {
 public:
  Fusion(const ir::Region& region, const FusionRules& rules) : region_(region), rules_(rules) {
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      position_[region.nodes[i].get()] = i;
      count_uses(*region.nodes[i], region.nodes[i].get());
    }
    for (const Value* value : region.yields) users_[value].insert(nullptr);
  }

  std::vector<Step> run() {
    // From the last node to the first, so that a node knows whether all of its users have taken it in.
    std::vector<Step> steps;
    for (size_t i = region_.nodes.size(); i-- > 0;) {
      const Node& node = *region_.nodes[i];
      if (taken_.contains(&node)) continue;
      if (!rules_.has_kernel(node)) {
        steps.push_back({.node = &node});
        continue;
      }
      for (size_t r = node.results.size(); r-- > 0;) {
        const Value& value = *node.results[r];
        if (r > 0 && !users_.contains(&value)) continue;
        bool only = node.results.size() == 1 && !rules_.is_view(node);
        steps.push_back({.node = &node, .stored = &value, .inlined = only ? grow(value) : std::set{&node}});
      }
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

 private:
  // Uses inside nested regions are uses by the node that has the region: null stands for any that cannot take it in.
  void count_uses(const Node& node, const Node* user) {
    for (const Value* operand : node.operands)
      if (operand != nullptr) users_[operand].insert(user);
    for (const auto& region : node.regions) {
      for (const auto& inner : region->nodes) count_uses(*inner, nullptr);
      for (const Value* value : region->yields) users_[value].insert(nullptr);
    }
  }

  // Takes in producers as long as the kernel stays as good.
  std::set<const Node*> grow(const Value& root) {
    std::set<const Node*> inlined{root.node};
    std::set<const Node*> refused;
    while (const Node* next = candidate(inlined, refused)) {
      inlined.insert(next);
      if (rules_.fits(root, inlined)) {
        taken_.insert(next);
      } else {
        inlined.erase(next);
        refused.insert(next);
      }
    }
    return inlined;
  }

  const Node* candidate(const std::set<const Node*>& inlined, const std::set<const Node*>& refused) {
    constexpr size_t most = 48;  // of nodes in one kernel, so that kernels stay small
    if (inlined.size() >= most) return nullptr;
    // The last one in the region, so that the result does not depend on addresses.
    const Node* last = nullptr;
    for (const Node* user : inlined)
      for (const Value* operand : user->operands) {
        const Node* node = operand == nullptr ? nullptr : operand->node;
        if (node == nullptr || !position_.contains(node) || inlined.contains(node) || refused.contains(node)) continue;
        if (last != nullptr && position_.at(node) <= position_.at(last)) continue;
        if (may_be_taken(*node, inlined)) last = node;
      }
    return last;
  }

  bool may_be_taken(const Node& node, const std::set<const Node*>& inlined) {
    if (taken_.contains(&node) || node.results.size() != 1 || node.op->mapping == Mapping::opaque ||
        !rules_.has_kernel(node) || !rules_.may_be_inlined(node))
      return false;
    return std::ranges::all_of(users_[node.results[0].get()],
                               [&](const Node* user) { return user != nullptr && inlined.contains(user); });
  }

  const ir::Region& region_;
  const FusionRules& rules_;
  std::map<const Value*, std::set<const Node*>> users_;
  std::map<const Node*, size_t> position_;
  std::set<const Node*> taken_;
};

}  // namespace

std::vector<Step> form_steps(const ir::Region& region, const FusionRules& rules) { return Fusion(region, rules).run(); }

}  // namespace selkie::plan
