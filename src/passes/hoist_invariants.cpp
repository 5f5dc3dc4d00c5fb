// hoist_invariants: what is the same in every trip of a loop is computed once, before it.
#include <algorithm>
#include <set>

#include "passes/loops.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Region;
using ir::Value;

// Work whose result is stored anyway. All else is computed where it is used, unless such work needs it.
bool is_worth_it(const analysis::Rdp& rdp, const Node& node) {
  if (node.op->mapping == ir::Mapping::many_to_many || node.op->mapping == ir::Mapping::opaque) return true;
  // Of what grows by broadcasting, the operands are less to read.
  return is_elementwise(node) && std::ranges::any_of(node.operands, [&](const Value* operand) {
           return operand != nullptr && rdp.known(*operand).type.dims == rdp.known(*node.results[0]).type.dims;
         });
}

// The nodes of one loop that are the same in every trip.
class Invariants {
 public:
  Invariants(const analysis::Rdp& rdp, Node& loop, const ir::ControlForm& form, const sym::Facts& around)
      : rdp_(rdp), body_(*loop.regions[0]), outside_(rdp, around), runs_(surely_runs(rdp, loop, form, around)) {}

  Nodes take_out() {
    for (const auto& node : body_.nodes) inside_.insert(node.get());
    for (const auto& node : body_.nodes)
      if (is_invariant(*node) && (runs_ || is_free_to_run(*node))) inside_.erase(node.get());
    // Backwards, so that a node knows whether work that leaves needs it.
    for (size_t i = body_.nodes.size(); i-- > 0;) {
      const Node& node = *body_.nodes[i];
      if (inside_.contains(&node) || !(needed_.contains(&node) || is_worth_it(rdp_, node))) continue;
      needed_.insert(&node);
      for (const Value* operand : node.operands)
        if (operand != nullptr) needed_.insert(operand->node);
    }
    Nodes out;
    for (auto& node : body_.nodes) {
      if (inside_.contains(node.get()) || !needed_.contains(node.get())) continue;
      // What is declared of a result may hold in trips only.
      for (auto& result : node->results) result->type = {};
      out.push_back(std::move(node));
    }
    std::erase(body_.nodes, nullptr);
    return out;
  }

 private:
  bool is_invariant(const Node& node) const {
    return node.op->deterministic && node.regions.empty() && !node.results.empty() &&
           std::ranges::none_of(node.operands, [&](const Value* operand) {
             return operand != nullptr && (operand->region == &body_ || inside_.contains(operand->node));
           });
  }

  // Where there may be no trips: one pass over its operands, which cannot fail.
  bool is_free_to_run(const Node& node) {
    std::optional<ir::SymDims> dims = is_elementwise(node) ? outside_.of_result(node) : std::nullopt;
    if (dims) outside_.set(*node.results[0], *dims);
    return dims.has_value();
  }

  const analysis::Rdp& rdp_;
  Region& body_;
  DimsOutside outside_;
  bool runs_;
  std::set<const Node*> inside_;  // that depend on the trip
  std::set<const Node*> needed_;
};

bool hoist(ir::Module& module) {
  analysis::Rdp rdp(module);
  return put_before_loops(rdp, module.main().body, [&](Node& loop, const Region& around, const ir::ControlForm& form) {
    return Invariants(rdp, loop, form, rdp.region(around).facts).take_out();
  });
}

}  // namespace

// loop(…) { %a = f(%outside) … } => %a = f(%outside)  loop(…) { … }
bool hoist_invariants(ir::Module& module) {
  bool changed = false;
  // What leaves an inner loop is known as it is there; it may leave the next one, too.
  while (has_loops(module.main().body) && hoist(module)) changed = true;
  return changed;
}

}  // namespace selkie::passes
