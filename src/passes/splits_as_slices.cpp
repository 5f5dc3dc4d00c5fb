// splits_as_slices: the parts of a tensor become slices of it, each of which is read where it is used. A node of
// several results is stored instead.
#include <algorithm>

#include "analysis/rdp.h"
#include "ops/registry.h"

namespace selkie::passes {
namespace {

using ir::Node;

class Slicer {
 public:
  Slicer(sym::Context& symbols, const analysis::Rdp& rdp) : symbols_(symbols), rdp_(rdp) {}

  bool run(ir::Region& region) {
    if (rdp_.region(region).entry != analysis::Entry::possible) return false;
    bool changed = false;
    std::vector<std::unique_ptr<Node>> nodes;
    for (auto& node : region.nodes) {
      for (auto& inner : node->regions) changed = run(*inner) || changed;
      std::optional<std::vector<int64_t>> sizes = part_sizes(*node, region);
      if (!sizes) {
        nodes.push_back(std::move(node));
        continue;
      }
      for (auto& part : slices(*node, *sizes)) nodes.push_back(std::move(part));
      removed_.push_back(std::move(node));
      changed = true;
    }
    region.nodes = std::move(nodes);
    return changed;
  }

  const std::unordered_map<const ir::Value*, ir::Value*>& replacement() const { return replacement_; }

 private:
  static int64_t axis_of(const Node& node) {
    const ir::Attribute* given = node.attrs.find("axis");
    return given == nullptr ? 0 : std::get<int64_t>(*given);
  }

  // Of a split whose parts are known to fit.
  std::optional<std::vector<int64_t>> part_sizes(const Node& node, const ir::Region& region) const {
    if (node.op->name != "split" || node.results.size() < 2 || checks_sizes(node, region)) return std::nullopt;
    std::vector<int64_t> sizes;
    int64_t sum = 0;
    for (const auto& result : node.results) {
      std::optional<int64_t> size = extent(*result, axis_of(node));
      if (!size) return std::nullopt;
      sizes.push_back(*size);
      sum += *size;
    }
    return sum == extent(*node.operands[0], axis_of(node)) ? std::optional(sizes) : std::nullopt;
  }

  std::optional<int64_t> extent(const ir::Value& value, int64_t axis) const {
    const std::optional<ir::SymDims>& dims = rdp_.known(value).type.dims;
    if (!dims) return std::nullopt;
    auto rank = static_cast<int64_t>(dims->size());
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? (*dims)[static_cast<size_t>(axis)].constant() : std::nullopt;
  }

  // Whether only the run tells that the parts fit: then the node says so.
  bool checks_sizes(const Node& node, const ir::Region& region) const {
    const auto& checks = region.parent == nullptr ? rdp_.later_checks() : rdp_.region(region).checks;
    std::string source = node.source.empty() ? node.describe() : node.source;
    return std::ranges::any_of(checks, [&](const analysis::Check& check) { return check.source == source; });
  }

  std::vector<std::unique_ptr<Node>> slices(const Node& split, const std::vector<int64_t>& sizes) {
    std::vector<std::unique_ptr<Node>> out;
    int64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      auto node = std::make_unique<Node>();
      node->op = ops::op_set().find("slice");
      node->operands = {split.operands[0], nullptr, nullptr, nullptr};
      node->source = split.source;
      auto set = [&](std::string_view name, int64_t value) {
        node->attrs.set(name, ir::SymbolicInts{.elements = {symbols_.constant(value)}});
      };
      set("starts", begin);
      set("ends", begin + sizes[i]);
      set("axes", axis_of(split));
      begin += sizes[i];
      replacement_[split.results[i].get()] = node->add_result(split.results[i]->name, split.results[i]->type);
      out.push_back(std::move(node));
    }
    return out;
  }

  sym::Context& symbols_;
  const analysis::Rdp& rdp_;
  std::unordered_map<const ir::Value*, ir::Value*> replacement_;
  std::vector<std::unique_ptr<Node>> removed_;  // their results are still named as uses
};

bool has_splits(const ir::Region& region) {
  bool found = false;
  ir::for_each_node(region, [&](const Node& node) { found = found || node.op->name == "split"; });
  return found;
}

}  // namespace

// %a, %b = split(x, [2, 3]) => %a = slice(x) {starts = 0, ends = 2}  %b = slice(x) {starts = 2, ends = 5}
bool splits_as_slices(ir::Module& module) {
  if (!has_splits(module.main().body)) return false;
  analysis::Rdp rdp(module);
  Slicer slicer(module.symbols(), rdp);
  bool changed = slicer.run(module.main().body);
  ir::replace_uses(module.main().body, slicer.replacement());
  return changed;
}

}  // namespace selkie::passes
