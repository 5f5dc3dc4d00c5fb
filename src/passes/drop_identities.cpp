// drop_identities: whoever reads an identity reads its operand.
#include "ir/module.h"

namespace selkie::passes {
namespace {

using Nodes = std::vector<std::unique_ptr<ir::Node>>;
using Replacement = std::unordered_map<const ir::Value*, ir::Value*>;

void collect(ir::Region& region, Replacement& replacement, Nodes& removed) {
  for (auto& node : region.nodes) {
    for (auto& inner : node->regions) collect(*inner, replacement, removed);
    if (node->op->name != "identity") continue;
    replacement[node->results[0].get()] = node->operands[0];
    removed.push_back(std::move(node));
  }
  std::erase(region.nodes, nullptr);
}

}  // namespace

// identity(x) => x
bool drop_identities(ir::Module& module) {
  Nodes removed;  // their results are still named as uses
  for (const auto& function : module.functions()) {
    Replacement replacement;
    collect(function->body, replacement, removed);
    ir::replace_uses(function->body, replacement);
  }
  return !removed.empty();
}

}  // namespace selkie::passes
