// plain_gemms: a gemm that scales, or adds what is no row, becomes one that does neither, for which there is a library
// kernel, and element-wise steps on its results while they are in cache.
#include <algorithm>

#include "analysis/rdp.h"
#include "ops/registry.h"
#include "passes/rewriting.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Value;

float number(const Node& node, std::string_view name) {
  const ir::Attribute* found = node.attrs.find(name);
  return found == nullptr ? 1.0f : std::get<float>(*found);
}

class Splitter {
 public:
  Splitter(ir::Module& module, const analysis::Rdp& rdp) : module_(module), rdp_(rdp) {}

  bool run(ir::Region& region) {
    if (rdp_.region(region).entry != analysis::Entry::possible) return false;
    bool changed = false;
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      for (auto& inner : region.nodes[i]->regions) changed = run(*inner) || changed;
      if (!is_split(*region.nodes[i], region)) continue;
      std::vector<std::unique_ptr<Node>> before = split(*region.nodes[i]);
      i = insert_before(region, i, std::move(before));
      changed = true;
    }
    return changed;
  }

 private:
  static Value* added(const Node& node) { return node.operands.size() > 2 ? node.operands[2] : nullptr; }

  bool is_split(const Node& node, const ir::Region& region) const {
    if (node.op->name != "gemm" || rdp_.known(*node.results[0]).type.dtype != DType::f32) return false;
    if (number(node, "alpha") != 1) return true;
    return added(node) != nullptr && (number(node, "beta") != 1 || !is_row(node, region));
  }

  bool is_row(const Node& node, const ir::Region& region) const {
    const ir::Type& type = rdp_.known(*added(node)).type;
    const ir::Type& result = rdp_.known(*node.results[0]).type;
    if (!type.dims || type.dims->empty() || !result.dims) return false;
    bool wide = rdp_.region(region).facts.prove_equal(type.dims->back(), result.dims->back()) == sym::Truth::yes;
    return wide && std::all_of(type.dims->begin(), type.dims->end() - 1, [](sym::Expr d) { return d.constant() == 1; });
  }

  std::unique_ptr<Node> step(std::string_view op, std::vector<Value*> operands, const Node& like) const {
    auto node = std::make_unique<Node>();
    node->op = ops::op_set().find(op);
    node->operands = std::move(operands);
    node->source = like.source;
    return node;
  }

  Value* scalar(std::string_view name, float value) {
    return module_.add_constant(name, Tensor::from<float>(DType::f32, {}, {&value, 1}));
  }

  // Turns the node into the last step, and gives those before it.
  std::vector<std::unique_ptr<Node>> split(Node& node) {
    float alpha = number(node, "alpha");
    float beta = number(node, "beta");
    Value* other = added(node);
    std::vector<std::unique_ptr<Node>> steps;
    auto add = [&](std::unique_ptr<Node> made) {
      steps.push_back(std::move(made));
      return steps.back()->add_result(node.results[0]->name);
    };
    auto product = step("gemm", {node.operands[0], node.operands[1]}, node);
    for (std::string_view name : {"transA", "transB"})
      if (const ir::Attribute* given = node.attrs.find(name)) product->attrs.set(name, *given);
    Value* value = add(std::move(product));
    if (alpha != 1) value = add(step("mul", {value, scalar("alpha", alpha)}, node));
    if (other != nullptr && beta != 1) other = add(step("mul", {other, scalar("beta", beta)}, node));
    if (other != nullptr) value = add(step("add", {value, other}, node));
    // The last of them takes the node's place, so that its result stays what others use.
    node.op = steps.back()->op;
    node.operands = steps.back()->operands;
    node.attrs = {};
    steps.pop_back();
    return steps;
  }

  ir::Module& module_;
  const analysis::Rdp& rdp_;
};

}  // namespace

// gemm(a, b, c) {alpha, beta} => add(mul(gemm(a, b), alpha), mul(c, beta))
bool plain_gemms(ir::Module& module) {
  analysis::Rdp rdp(module);
  return Splitter(module, rdp).run(module.main().body);
}

}  // namespace selkie::passes
