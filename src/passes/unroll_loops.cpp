// unroll_loops: a loop of one trip is its body, and a few trips of a few element-wise nodes stand one after the other.
//
// What that saves is the storing of the state between trips, since kernels are fused across them, and a few
// instructions per trip. Next to products or reductions that is nothing, and code must not grow: hence the bounds.
#include <algorithm>

#include "ops/registry.h"
#include "passes/loops.h"

namespace selkie::passes {
namespace {

using ir::ControlForm;
using ir::Node;
using ir::Region;
using ir::Value;
using Values = std::unordered_map<const Value*, Value*>;

constexpr int64_t most_unrolled_trips = 8;
constexpr int64_t most_unrolled_nodes = 32;  // of all trips together

// Whether trips of a body cost less one after the other than in a loop.
bool is_cheaper(const Region& body, int64_t trips) {
  if (trips == 1) return true;
  return trips <= most_unrolled_trips && trips * static_cast<int64_t>(body.nodes.size()) <= most_unrolled_nodes &&
         std::ranges::all_of(body.nodes, [](const auto& node) { return is_elementwise(*node); });
}

class Unroller {
 public:
  Unroller(ir::Module& module, Node& loop, ControlForm form, int64_t trips)
      : module_(module), loop_(loop), body_(*loop.regions[0]), form_(std::move(form)), trips_(trips) {}

  // The nodes that stand for the loop; what its results are called is added to `replacement`.
  Nodes run(Values& replacement) {
    for (size_t i = 0; i < form_.states; ++i) states_.push_back(loop_.operands[form_.first_state + i]);
    slices_.resize(form_.outputs.size());
    for (int64_t trip = 0; trip < trips_; ++trip) one_trip(trip);
    for (size_t i = 0; i < form_.states; ++i) replacement[loop_.results[i].get()] = states_[i];
    for (size_t i = 0; i < form_.outputs.size(); ++i)
      replacement[loop_.results[form_.states + i].get()] = stacked(i, form_.outputs[i]);
    return std::move(out_);
  }

 private:
  void one_trip(int64_t trip) {
    Values values;
    size_t at = 0;
    if (form_.counts) {
      values[body_.parameters[0].get()] = constant(*body_.parameters[0], Tensor::scalar_i64(trip));
      values[body_.parameters[1].get()] = constant(*body_.parameters[1], Tensor::scalar_bool(true));
      at = 2;
    }
    for (Value* state : states_) values[body_.parameters[at++].get()] = state;
    for (size_t i = 0; i < form_.inputs.size(); ++i) values[body_.parameters[at++].get()] = slice(i, trip);
    if (trip + 1 == trips_)
      take_nodes(values);
    else
      copy_nodes(values);
    auto now = [&](size_t yield) {
      auto found = values.find(body_.yields[yield]);
      return found == values.end() ? body_.yields[yield] : found->second;
    };
    size_t first = form_.counts ? 1 : 0;
    for (size_t i = 0; i < states_.size(); ++i) next_.push_back(now(first + i));
    for (size_t i = 0; i < slices_.size(); ++i) slices_[i].push_back(now(first + states_.size() + i));
    states_ = std::exchange(next_, {});
  }

  Value* constant(const Value& like, Tensor tensor) { return module_.add_constant(like.name, std::move(tensor)); }

  // The last trip is the body itself.
  void take_nodes(const Values& values) {
    ir::replace_uses(body_, values);
    for (auto& node : body_.nodes) {
      forget_types(*node);
      out_.push_back(std::move(node));
    }
    body_.nodes.clear();
  }

  void copy_nodes(Values& values) {
    for (const auto& node : body_.nodes) {
      auto copy = std::make_unique<Node>();
      copy->op = node->op;
      copy->attrs = node->attrs;
      copy->source = node->source;
      for (Value* operand : node->operands) {
        auto at = values.find(operand);
        copy->operands.push_back(at == values.end() ? operand : at->second);
      }
      for (const auto& result : node->results) values[result.get()] = copy->add_result(result->name);
      out_.push_back(std::move(copy));
    }
  }

  // What is declared of a result may speak of sizes that differ from trip to trip.
  static void forget_types(Node& node) {
    for (auto& result : node.results) result->type = {};
  }

  Value* add(std::string_view op, std::vector<Value*> operands, std::string name) {
    auto node = std::make_unique<Node>();
    node->op = ops::op_set().find(op);
    node->operands = std::move(operands);
    node->source = loop_.source;
    Value* result = node->add_result(std::move(name));
    out_.push_back(std::move(node));
    return result;
  }

  Value* slice(size_t input, int64_t trip) {
    const ControlForm::Slices& slices = form_.inputs[input];
    const Value& parameter = *body_.parameters[form_.states + input];
    Value* at = constant(parameter, Tensor::scalar_i64(slices.reversed ? trips_ - 1 - trip : trip));
    size_t operand = form_.first_state + form_.states + input;
    Value* result = add("gather", {loop_.operands[operand], at}, parameter.name);
    out_.back()->attrs.set("axis", slices.axis);
    return result;
  }

  Value* stacked(size_t output, const ControlForm::Slices& slices) {
    std::vector<Value*>& parts = slices_[output];
    if (slices.reversed) std::ranges::reverse(parts);
    int64_t axis = slices.axis;
    Value* axes = module_.add_constant("axes", Tensor::from<int64_t>(DType::i64, {1}, {&axis, 1}));
    const std::string& name = loop_.results[form_.states + output]->name;
    for (Value*& part : parts) part = add("unsqueeze", {part, axes}, name);
    if (parts.size() == 1) return parts[0];
    Value* result = add("concat", parts, name);
    out_.back()->attrs.set("axis", axis);
    return result;
  }

  ir::Module& module_;
  Node& loop_;
  Region& body_;
  ControlForm form_;
  int64_t trips_;
  std::vector<Value*> states_, next_;
  std::vector<std::vector<Value*>> slices_;  // of each output
  Nodes out_;
};

// The number of trips of a loop that is to be unrolled.
std::optional<int64_t> unrolled_trips(const analysis::Rdp& rdp, const Node& node, const ControlForm& form) {
  const Region& body = *node.regions[0];
  sym::Expr trips = known_trips(rdp, node, form);
  std::optional<int64_t> count = trips ? trips.constant() : std::nullopt;
  // Inputs of other lengths are an error, which the loop gives.
  for (size_t i = 0; i < form.inputs.size(); ++i)
    if (!trips || slice_count(rdp, node, form, i) != trips) return std::nullopt;
  if (!count || *count < 1 || rdp.region(body).entry != analysis::Entry::possible || !is_cheaper(body, *count))
    return std::nullopt;
  return count;
}

bool unroll(ir::Module& module, const analysis::Rdp& rdp, Region& region, Values& replacement, Nodes& removed) {
  if (rdp.region(region).entry != analysis::Entry::possible) return false;
  bool changed = false;
  Nodes nodes;
  for (auto& node : region.nodes) {
    bool inside = false;
    for (auto& inner : node->regions) inside = unroll(module, rdp, *inner, replacement, removed) || inside;
    changed = changed || inside;
    std::optional<ControlForm> form = loop_form(*node);
    std::optional<int64_t> trips = form && !inside ? unrolled_trips(rdp, *node, *form) : std::nullopt;
    if (!trips) {
      nodes.push_back(std::move(node));
      continue;
    }
    std::ranges::move(Unroller(module, *node, std::move(*form), *trips).run(replacement), std::back_inserter(nodes));
    removed.push_back(std::move(node));
    changed = true;
  }
  region.nodes = std::move(nodes);
  return changed;
}

}  // namespace

// loop(2, true, s) { s => f(s, i) } => f(f(s, 0), 1)
bool unroll_loops(ir::Module& module) {
  for (bool changed = false;; changed = true) {
    Values replacement;
    Nodes removed;  // their results are still named as uses
    if (!has_loops(module.main().body) ||
        !unroll(module, analysis::Rdp(module), module.main().body, replacement, removed))
      return changed;
    ir::replace_uses(module.main().body, replacement);
  }
}

}  // namespace selkie::passes
