// fold_constants: evaluates what is known before the run.
#include <algorithm>

#include "interp/interp.h"
#include "ir/module.h"

namespace selkie::passes {
namespace {

// Larger results stay as they are: a model must not grow by being folded.
constexpr int64_t max_elements = 1 << 16;

// What only moves elements of large constants may be folded, too, as long as all that is made of a constant is not much
// larger than it is: most likely nobody needs the constant itself then.
class Moved {
 public:
  bool allows(const ir::Node& node, int64_t elements) {
    if (elements <= max_elements) return true;
    if (node.op->mapping != ir::Mapping::reorganize && node.op->mapping != ir::Mapping::shuffle) return false;
    int64_t given = 0;
    for (const ir::Value* v : node.operands)
      if (v != nullptr) given += 2 * element_count(v->constant->dims) - made_[v->constant];
    if (given < 2 * elements) return false;
    for (const ir::Value* v : node.operands)
      if (v != nullptr) made_[v->constant] += std::min(elements, element_count(v->constant->dims));
    return true;
  }

 private:
  std::unordered_map<const ir::Constant*, int64_t> made_;  // elements of results
};

bool foldable(const ir::Node& node) {
  if (!node.op->deterministic || !node.regions.empty() || !node.op->eval || node.operands.empty()) return false;
  return std::all_of(node.operands.begin(), node.operands.end(),
                     [](const ir::Value* v) { return v == nullptr || v->constant != nullptr; });
}

// The results as tensors, or nothing if the node fails (it then fails at run time, if it is reached) or gives too much.
std::optional<std::vector<Tensor>> fold(const ir::Node& node, Moved& moved) {
  MemoryBudget::Scope scope(std::make_shared<MemoryBudget>(int64_t{1} << 28));
  std::vector<HostValue> operands;
  for (const ir::Value* v : node.operands) operands.push_back(v ? HostValue(v->constant->tensor()) : HostValue());
  try {
    ir::EvalContext context(*node.op, node.attrs, operands, node.results.size(), ir::no_services(), &node);
    std::vector<Tensor> tensors;
    for (const HostValue& value : ir::evaluate(context)) {
      if (value.is_absent())
        tensors.emplace_back();
      else if (!value.is_tensor() || !moved.allows(node, value.tensor().count()))
        return std::nullopt;
      else
        tensors.push_back(value.tensor());
    }
    return tensors;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool fold_region(ir::Module& module, ir::Region& region, Moved& moved) {
  bool changed = false;
  std::unordered_map<const ir::Value*, ir::Value*> replacement;
  for (auto& node : region.nodes) {
    for (ir::Value*& operand : node->operands)
      if (auto at = replacement.find(operand); at != replacement.end()) operand = at->second;
    for (auto& inner : node->regions) {
      replace_uses(*inner, replacement);
      changed = fold_region(module, *inner, moved) || changed;
    }
    if (!foldable(*node)) continue;
    std::optional<std::vector<Tensor>> results = fold(*node, moved);
    if (!results) continue;
    for (size_t i = 0; i < results->size(); ++i)
      replacement[node->results[i].get()] = module.add_constant(node->results[i]->name, std::move((*results)[i]));
    changed = true;
  }
  replace_uses(region, replacement);
  // The folded nodes go now, so that a second run finds nothing to do.
  std::erase_if(region.nodes, [&](const auto& node) {
    return !node->results.empty() && replacement.contains(node->results[0].get());
  });
  return changed;
}

}  // namespace

bool fold_constants(ir::Module& module) {
  bool changed = false;
  Moved moved;
  for (const auto& function : module.functions()) changed = fold_region(module, function->body, moved) || changed;
  return changed;
}

}  // namespace selkie::passes
