#include "driver/host.h"

#include <algorithm>
#include <map>
#include <set>

#include "interp/interp.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace selkie::driver {
namespace {

std::string without_constants(const ir::Module& module) {
  std::string text = data_types(module);
  for (const auto& function : module.functions()) text += ir::print(*function);
  return text;
}

// The same module with constants that have types, but no elements.
std::unique_ptr<ir::Module> copy_without_elements(const ir::Module& module) {
  auto copy = std::make_unique<ir::Module>();
  for (const auto& from : module.constants()) {
    ir::Constant& to = copy->add_constant(from->value.name);
    CHECK(to.value.name == from->value.name, "two constants are called {}", from->value.name);
    ir::SymDims dims;
    for (int64_t d : from->dims) dims.push_back(copy->symbols().constant(d));
    to.value.type = ir::Type::tensor(from->dtype, std::move(dims));
    to.dtype = from->dtype;
    to.dims = from->dims;
  }
  return ir::parse(without_constants(module), ops::op_set(), "a printed module", std::move(copy));
}

void for_each_use(const ir::Region& region, const std::function<void(const ir::Value*)>& f);

// Values that a node uses, with those that its regions do.
void for_each_use(const ir::Node& node, const std::function<void(const ir::Value*)>& f) {
  for (const ir::Value* operand : node.operands)
    if (operand != nullptr) f(operand);
  for (const auto& region : node.regions) for_each_use(*region, f);
}

void for_each_use(const ir::Region& region, const std::function<void(const ir::Value*)>& f) {
  for (const auto& node : region.nodes) for_each_use(*node, f);
  for (const ir::Value* value : region.yields) f(value);
}

// The nodes and values of a region, and of all inside it, with those of a copy.
struct Counterparts {
  std::map<const ir::Node*, const ir::Node*> nodes;
  std::map<const ir::Value*, const ir::Value*> values;

  void add(const ir::Region& from, const ir::Region& to) {
    for (size_t i = 0; i < from.parameters.size(); ++i) values[from.parameters[i].get()] = to.parameters[i].get();
    for (size_t i = 0; i < from.nodes.size(); ++i) {
      const ir::Node& node = *from.nodes[i];
      const ir::Node& copy = *to.nodes[i];
      nodes[&node] = &copy;
      for (size_t j = 0; j < node.results.size(); ++j) values[node.results[j].get()] = copy.results[j].get();
      for (size_t j = 0; j < node.regions.size(); ++j) add(*node.regions[j], *copy.regions[j]);
    }
  }
};

// Takes all nodes but `kept` out of a body, and these out of the regions that they are in; what others made and they
// use becomes parameters.
class Keeper {
 public:
  Keeper(ir::Region& body, const std::set<const ir::Node*>& kept) : body_(body), kept_(kept) {
    for (const ir::Node* node : kept) for_each_use(*node, [&](const ir::Value* value) { used_.insert(value); });
  }

  void run() {
    take_from(body_);
    body_.parameters = std::move(parameters_);
    body_.nodes = std::move(nodes_);
    body_.yields.clear();
  }

 private:
  void take_from(ir::Region& region) {
    for (auto& parameter : region.parameters)
      if (used_.contains(parameter.get())) take(parameter);
    for (auto& node : region.nodes) {
      if (kept_.contains(node.get())) {
        nodes_.push_back(std::move(node));
        continue;
      }
      for (auto& result : node->results)
        if (used_.contains(result.get())) take(result);
      for (auto& inner : node->regions) take_from(*inner);
    }
  }

  void take(std::unique_ptr<ir::Value>& value) {
    value->node = nullptr;
    value->region = &body_;
    parameters_.push_back(std::move(value));
  }

  ir::Region& body_;
  const std::set<const ir::Node*>& kept_;
  std::set<const ir::Value*> used_;
  std::vector<std::unique_ptr<ir::Value>> parameters_;
  std::vector<std::unique_ptr<ir::Node>> nodes_;
};

void keep_nodes(ir::Function& main, const std::set<const ir::Node*>& kept, sym::Context& symbols) {
  Keeper(main.body, kept).run();
  main.result_types.clear();
  main.result_names.clear();
  main.facts = sym::Facts(symbols);
}

const ir::Value* find_value(const ir::Region& body, std::string_view name) {
  for (const auto& parameter : body.parameters)
    if (parameter->name == name) return parameter.get();
  for (const auto& node : body.nodes)
    for (const auto& result : node->results)
      if (result->name == name) return result.get();
  return nullptr;
}

}  // namespace

std::string data_types(const ir::Module& module) {
  ir::Module only;
  only.data_types = module.data_types;
  return ir::print(only);
}

std::set<std::string> constants_of(const ir::Region& body) {
  std::set<std::string> used;
  for_each_use(body, [&](const ir::Value* value) {
    if (value->constant != nullptr) used.insert(value->name);
  });
  return used;
}

namespace {

std::vector<HostValue> run_host_node(const ir::Module& module, const ir::Node& node,
                                     const std::vector<const ir::Value*>& values,
                                     const runtime::HostArguments& arguments, const interp::Options& how) {
  std::vector<std::pair<const ir::Value*, HostValue>> outside;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != nullptr) outside.emplace_back(values[i], arguments.operands[i]);
  return interp::run_node(module, node, outside, arguments.symbols, how);
}

}  // namespace

std::vector<runtime::HostFunction> host_functions(const std::shared_ptr<const ir::Module>& module,
                                                  std::span<const compiler::HostNode> nodes,
                                                  const interp::Options& how) {
  std::vector<runtime::HostFunction> functions;
  for (const compiler::HostNode& host : nodes) {
    std::vector<const ir::Value*> values(host.node->operands.begin(), host.node->operands.end());
    values.insert(values.end(), host.captured.begin(), host.captured.end());
    interp::Options own = how;
    own.seed += functions.size();
    functions.emplace_back([module, node = host.node, values = std::move(values),
                            own = std::move(own)](const runtime::HostArguments& arguments) {
      // Other random numbers in every trip of a loop.
      constexpr uint64_t spread = 0x9e3779b97f4a7c15;
      if (arguments.times > 0 && !node->op->deterministic) {
        interp::Options other = own;
        other.seed += arguments.times * spread;
        return run_host_node(*module, *node, values, arguments, other);
      }
      return run_host_node(*module, *node, values, arguments, own);
    });
  }
  return functions;
}

std::string signature(const ir::Module& module) { return signature(module, module.main().result_types); }

std::string signature(const ir::Module& module, std::vector<ir::Type> results) {
  const ir::Function& main = module.main();
  ir::Function declared(const_cast<ir::Module&>(module).symbols());
  declared.name = main.name;
  declared.result_types = std::move(results);
  declared.result_names = main.result_names;
  declared.facts = main.facts;
  for (const auto& parameter : main.body.parameters) declared.body.add_parameter(parameter->name, parameter->type);
  return data_types(module) + ir::print(declared);
}

void save_host_nodes(const ir::Module& module, std::span<const compiler::HostNode> nodes, program::Artifact& artifact) {
  if (nodes.empty()) return;
  std::unique_ptr<ir::Module> copy = copy_without_elements(module);
  ir::Function& main = copy->main();
  Counterparts counterparts;
  counterparts.add(module.main().body, main.body);
  std::vector<const ir::Node*> copies;
  for (const compiler::HostNode& host : nodes) {
    copies.push_back(counterparts.nodes.at(host.node));
    program::HostEntry& entry = artifact.host_entries.emplace_back();
    for (const ir::Value* value : host.captured) entry.captured.push_back(counterparts.values.at(value)->name);
  }
  keep_nodes(main, {copies.begin(), copies.end()}, copy->symbols());
  for (size_t i = 0; i < copies.size(); ++i) {
    auto at = std::ranges::find(main.body.nodes, copies[i], [](const auto& node) { return node.get(); });
    artifact.host_entries[i].node = static_cast<uint32_t>(at - main.body.nodes.begin());
  }
  std::set<std::string> used;
  for (const auto& function : copy->functions()) used.merge(constants_of(function->body));
  for (const auto& constant : module.constants())
    if (used.contains(constant->value.name))
      artifact.host_constants.push_back({.name = constant->value.name, .tensor = constant->tensor()});
  artifact.host_module = without_constants(*copy);
}

HostNodes load_host_nodes(const program::Artifact& artifact, const std::string& file) {
  const auto& calls = artifact.program.host_calls;
  if (calls.size() != artifact.host_entries.size())
    fail("'{}' is damaged: {} of {} host calls", file, artifact.host_entries.size(), calls.size());
  if (calls.empty()) return {};
  auto constants = std::make_unique<ir::Module>();
  for (const program::NamedTensor& constant : artifact.host_constants) {
    const ir::Value* value = constants->add_constant(constant.name, constant.tensor);
    if (value->name != constant.name) fail("'{}' is damaged: two constants are called {}", file, constant.name);
  }
  std::shared_ptr<ir::Module> module =
      ir::parse(artifact.host_module, ops::op_set(), "operators in " + file, std::move(constants));
  ir::verify(*module);
  HostNodes out{.module = module, .nodes = {}};
  const ir::Region& body = module->main().body;
  for (size_t i = 0; i < calls.size(); ++i) {
    const program::HostEntry& entry = artifact.host_entries[i];
    if (entry.node >= body.nodes.size()) fail("'{}' is damaged: host call {} has no operator", file, i);
    compiler::HostNode& host = out.nodes.emplace_back(body.nodes[entry.node].get());
    for (const std::string& name : entry.captured) {
      host.captured.push_back(find_value(body, name));
      if (host.captured.back() == nullptr) fail("'{}' is damaged: there is no value %{}", file, name);
    }
    if (host.node->operands.size() + host.captured.size() != calls[i].operands.size() ||
        host.node->results.size() != calls[i].results.size())
      fail("'{}' is damaged: {} is not what its host call is", file, host.node->describe());
  }
  return out;
}

}  // namespace selkie::driver
