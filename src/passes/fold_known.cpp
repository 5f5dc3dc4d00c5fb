// fold_known: values whose elements follow from facts become constants.
#include <unordered_map>

#include "analysis/rdp.h"

namespace selkie::passes {
namespace {

using Replacement = std::unordered_map<const ir::Value*, ir::Value*>;

void collect(ir::Module& module, const analysis::Rdp& rdp, ir::Region& region, Replacement& replacement) {
  if (rdp.region(region).entry != analysis::Entry::possible) return;
  for (auto& node : region.nodes) {
    for (auto& inner : node->regions) collect(module, rdp, *inner, replacement);
    for (auto& result : node->results) {
      std::optional<Tensor> tensor = node->op->deterministic ? ir::tensor_of(rdp.known(*result)) : std::nullopt;
      if (tensor) replacement[result.get()] = module.add_constant(result->name, std::move(*tensor));
    }
  }
}

bool uses_any(const ir::Region& region, const Replacement& replacement) {
  bool found = false;
  auto look = [&](const ir::Value* v) { found = found || replacement.contains(v); };
  for (const ir::Value* v : region.yields) look(v);
  ir::for_each_node(region, [&](const ir::Node& node) {
    for (const ir::Value* v : node.operands) look(v);
    for (const auto& inner : node.regions)
      for (const ir::Value* v : inner->yields) look(v);
  });
  return found;
}

}  // namespace

// shape(x: f32[2, N]) sliced to its first element => @c = {2}
bool fold_known(ir::Module& module) {
  analysis::Rdp rdp(module);
  Replacement replacement;
  ir::Region& body = module.main().body;
  collect(module, rdp, body, replacement);
  if (!uses_any(body, replacement)) {
    module.erase_constants_if([&](const ir::Constant& constant) {
      for (const auto& [from, to] : replacement)
        if (to == &constant.value) return true;
      return false;
    });
    return false;
  }
  ir::replace_uses(body, replacement);
  return true;
}

}  // namespace selkie::passes
