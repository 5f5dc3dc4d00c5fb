// merge_arms: what both arms of a branch compute is computed before it, once.
#include <algorithm>
#include <unordered_set>

#include "ir/control.h"
#include "ir/module.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Region;
using ir::Value;
using Replacement = std::unordered_map<const Value*, Value*>;
using Nodes = std::vector<std::unique_ptr<Node>>;

bool is_branch(const Node& node) {
  return node.op->control != nullptr && node.op->control(node).kind == ir::ControlForm::Kind::branch;
}

// Tensors are not looked into: they count as different.
bool are_equal(const ir::Attributes& a, const ir::Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    if (x.first != y.first || x.second.index() != y.second.index()) return false;
    return std::visit(
        [&]<class T>(const T& value) {
          if constexpr (std::is_same_v<T, Tensor>)
            return false;
          else
            return value == std::get<T>(y.second);
        },
        x.second);
  });
}

// The nodes of both arms that are equal, and what the second one's results are called instead.
class Merger {
 public:
  Merger(Node& branch, Replacement& replacement, Nodes& removed)
      : branch_(branch), replacement_(replacement), removed_(removed) {}

  // Gives the nodes that come before the branch.
  Nodes run() {
    for (const auto& node : then().nodes) inside(*node);
    for (const auto& node : otherwise().nodes) inside(*node);
    for (auto& node : otherwise().nodes) others_.emplace(key_of(*node), &node);
    Nodes merged;
    for (auto& node : then().nodes) {
      std::unique_ptr<Node>* other = is_from_outside(*node) ? equal_node(*node) : nullptr;
      if (other == nullptr) continue;
      unite(*node, **other);
      removed_.push_back(std::move(*other));
      merged.push_back(std::move(node));
    }
    std::erase(then().nodes, nullptr);
    std::erase(otherwise().nodes, nullptr);
    return merged;
  }

 private:
  Region& then() { return *branch_.regions[0]; }
  Region& otherwise() { return *branch_.regions[1]; }

  void inside(const Node& node) {
    for (const auto& result : node.results) inside_.insert(result.get());
  }

  bool is_from_outside(const Node& node) const {
    return node.op->deterministic && node.regions.empty() &&
           std::ranges::none_of(node.operands, [&](const Value* value) { return inside_.contains(value); });
  }

  // What a value of the first arm is called in the second.
  const Value* counterpart(const Value* value) const {
    auto at = counterparts_.find(value);
    return at == counterparts_.end() ? value : at->second;
  }

  using Key = std::pair<const ir::OpDef*, const Value*>;
  Key key_of(const Node& node) const {
    return {node.op, node.operands.empty() ? nullptr : counterpart(node.operands[0])};
  }

  std::unique_ptr<Node>* equal_node(const Node& node) {
    auto [first, last] = others_.equal_range(key_of(node));
    for (auto at = first; at != last; ++at) {
      const Node* other = at->second->get();
      if (other == nullptr || other->results.size() != node.results.size() || !are_equal(other->attrs, node.attrs))
        continue;
      bool same = std::ranges::equal(other->operands, node.operands,
                                     [&](const Value* a, const Value* b) { return a == counterpart(b); });
      if (same) return at->second;
    }
    return nullptr;
  }

  // A type that only holds in one arm says nothing before the branch.
  void unite(Node& node, const Node& other) {
    for (size_t i = 0; i < node.results.size(); ++i) {
      Value& result = *node.results[i];
      if (result.type != other.results[i]->type) result.type = {};
      inside_.erase(&result);
      replacement_[other.results[i].get()] = &result;
      counterparts_[&result] = other.results[i].get();
    }
  }

  Node& branch_;
  Replacement& replacement_;
  Nodes& removed_;
  std::unordered_set<const Value*> inside_;
  std::unordered_map<const Value*, const Value*> counterparts_;
  std::multimap<Key, std::unique_ptr<Node>*> others_;  // of the second arm
};

bool merge(Region& region, Replacement& replacement, Nodes& removed) {
  bool changed = false;
  Nodes nodes;
  for (auto& node : region.nodes) {
    for (auto& inner : node->regions) changed = merge(*inner, replacement, removed) || changed;
    if (is_branch(*node)) {
      Nodes merged = Merger(*node, replacement, removed).run();
      changed = changed || !merged.empty();
      std::ranges::move(merged, std::back_inserter(nodes));
    }
    nodes.push_back(std::move(node));
  }
  region.nodes = std::move(nodes);
  return changed;
}

}  // namespace

// if(c) then { %a = f(%x) … } else { %b = f(%x) … } => %a = f(%x)  if(c) then { … } else { … %a … }
bool merge_arms(ir::Module& module) {
  Replacement replacement;
  Nodes removed;  // their results are still named as uses
  bool changed = merge(module.main().body, replacement, removed);
  ir::replace_uses(module.main().body, replacement);
  return changed;
}

}  // namespace selkie::passes
