// inline_calls: a call is replaced by the body of its function, so that it is analysed and compiled where it stands.
#include <set>
#include <unordered_map>

#include "ir/module.h"

namespace selkie::passes {
namespace {

using Values = std::unordered_map<const ir::Value*, ir::Value*>;

// A module may name more calls than it has nodes by far: then the rest stays.
constexpr size_t most_nodes = 100'000;

const ir::FunctionRef* callee_of(const ir::Node& node) {
  return node.op->name == "call" ? std::get_if<ir::FunctionRef>(node.attrs.find("callee")) : nullptr;
}

// Symbols in the types of a function are its own: those of the caller may have the same names.
ir::Type without_dims(ir::Type type) {
  type.dims.reset();
  for (ir::Type& part : type.parts) part = without_dims(std::move(part));
  return type;
}

int depth_of(const ir::Region& region) {
  int deepest = 0;
  for (const auto& node : region.nodes)
    for (const auto& inner : node->regions) deepest = std::max(deepest, 1 + depth_of(*inner));
  return deepest;
}

class Inliner {
 public:
  explicit Inliner(ir::Module& module) : module_(module) {
    for (const auto& function : module.functions()) {
      std::set<std::string> reached;
      reach(function->body, reached);
      if (reached.contains(function->name)) recursive_.insert(function->name);
    }
    ir::for_each_node(std::as_const(module.main().body), [&](const ir::Node&) { ++nodes_; });
  }

  bool run(ir::Region& region, int depth) {
    bool changed = false;
    std::vector<std::unique_ptr<ir::Node>> nodes;
    for (auto& node : region.nodes) {
      const ir::Function* callee = function_of(*node, depth);
      if (callee == nullptr) {
        for (auto& inner : node->regions) changed = run(*inner, depth + 1) || changed;
        nodes.push_back(std::move(node));
        continue;
      }
      ir::Region body = copy_of(*callee, *node);
      run(body, depth);
      for (size_t i = 0; i < node->results.size(); ++i) replacement_[node->results[i].get()] = body.yields[i];
      for (auto& inner : body.nodes) nodes.push_back(std::move(inner));
      removed_.push_back(std::move(node));
      changed = true;
    }
    region.nodes = std::move(nodes);
    return changed;
  }

  void replace_results() { ir::replace_uses(module_.main().body, replacement_); }

 private:
  // The functions that a region may come to call.
  void reach(const ir::Region& region, std::set<std::string>& reached) {
    ir::for_each_node(region, [&](const ir::Node& node) {
      const ir::FunctionRef* callee = callee_of(node);
      if (callee == nullptr || !reached.insert(callee->name).second) return;
      if (const ir::Function* function = module_.find_function(callee->name)) reach(function->body, reached);
    });
  }

  // What a call is replaced by; null if it stays.
  const ir::Function* function_of(const ir::Node& node, int depth) {
    const ir::FunctionRef* callee = callee_of(node);
    if (callee == nullptr || recursive_.contains(callee->name)) return nullptr;
    const ir::Function* function = module_.find_function(callee->name);
    if (function == nullptr || function->body.parameters.size() != node.operands.size() ||
        function->body.yields.size() < node.results.size() || depth + depth_of(function->body) > ir::max_region_depth)
      return nullptr;
    size_t count = 0;
    ir::for_each_node(function->body, [&](const ir::Node&) { ++count; });
    if (nodes_ + count > most_nodes) return nullptr;
    // An argument that is left out has no value to stand for it.
    for (const ir::Value* operand : node.operands)
      if (operand == nullptr) return nullptr;
    nodes_ += count;
    return function;
  }

  ir::Region copy_of(const ir::Function& function, const ir::Node& call) {
    Values values;
    for (size_t i = 0; i < call.operands.size(); ++i) values[function.body.parameters[i].get()] = call.operands[i];
    ir::Region out;
    copy_nodes(function.body, out, values, call.source);
    return out;
  }

  void copy_nodes(const ir::Region& from, ir::Region& to, Values& values, const std::string& caller) {
    auto copied = [&](ir::Value* value) {
      auto at = values.find(value);
      return at == values.end() ? value : at->second;
    };
    for (const auto& node : from.nodes) {
      auto copy = std::make_unique<ir::Node>();
      copy->op = node->op;
      copy->attrs = node->attrs;
      copy->source = caller + (caller.empty() || node->source.empty() ? "" : "/") + node->source;
      for (ir::Value* operand : node->operands) copy->operands.push_back(copied(operand));
      for (const auto& result : node->results)
        values[result.get()] = copy->add_result(result->name, without_dims(result->type));
      for (const auto& inner : node->regions) {
        ir::Region& region = copy->add_region();
        for (const auto& parameter : inner->parameters)
          values[parameter.get()] = region.add_parameter(parameter->name, without_dims(parameter->type));
        copy_nodes(*inner, region, values, caller);
      }
      to.nodes.push_back(std::move(copy));
    }
    for (ir::Value* value : from.yields) to.yields.push_back(copied(value));
  }

  ir::Module& module_;
  std::set<std::string> recursive_;
  size_t nodes_ = 0;
  std::unordered_map<const ir::Value*, ir::Value*> replacement_;
  std::vector<std::unique_ptr<ir::Node>> removed_;  // their results are still named as uses
};

}  // namespace

// call(x) {callee = @f}, where @f does not come to call itself => the body of @f for x
bool inline_calls(ir::Module& module) {
  Inliner inliner(module);
  bool changed = inliner.run(module.main().body, 0);
  inliner.replace_results();
  return changed;
}

}  // namespace selkie::passes
