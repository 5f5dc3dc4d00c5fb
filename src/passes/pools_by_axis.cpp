// pools_by_axis: a max pool over a large window becomes one along each axis, which looks at the sum of the window's
// sides per element and not at their product.
#include <algorithm>
#include <functional>
#include <numeric>

#include "passes/pass.h"
#include "passes/rewriting.h"

namespace selkie::passes {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

// Below that the second result that is stored costs more than the looks that are saved.
constexpr int64_t least_window = 16;

Ints given(const Node& node, std::string_view name, size_t count, int64_t otherwise) {
  const ir::Attribute* found = node.attrs.find(name);
  return found == nullptr ? Ints(count, otherwise) : std::get<Ints>(*found);
}

template <class T>
bool is_given_otherwise(const Node& node, std::string_view name, const T& usual) {
  const ir::Attribute* found = node.attrs.find(name);
  return found != nullptr && std::get<T>(*found) != usual;
}

// Attributes that do not fit each other are left to the operator to refuse.
bool are_complete(const Node& node, size_t rank) {
  return given(node, "dilations", rank, 1).size() == rank && given(node, "strides", rank, 1).size() == rank &&
         given(node, "pads", 2 * rank, 0).size() == 2 * rank;
}

bool is_split(const Node& node) {
  if (node.op->name != "max_pool" || node.results.size() != 1) return false;
  Ints sides = given(node, "kernel_shape", 0, 1);
  if (!are_complete(node, sides.size())) return false;
  auto area = std::accumulate(sides.begin(), sides.end(), int64_t{1}, std::multiplies<>());
  return std::ranges::count_if(sides, [](int64_t side) { return side > 1; }) > 1 && area >= least_window &&
         !is_given_otherwise(node, "auto_pad", std::string("NOTSET")) &&
         !is_given_otherwise(node, "ceil_mode", int64_t{0});
}

// Of one axis, from a pool of all of them.
std::unique_ptr<Node> along(size_t axis, const Node& pool, ir::Value* operand) {
  size_t rank = std::get<Ints>(*pool.attrs.find("kernel_shape")).size();
  auto node = std::make_unique<Node>();
  node->op = pool.op;
  node->operands = {operand};
  node->source = pool.source;
  for (std::string_view name : {"dilations", "kernel_shape", "strides"}) {
    Ints own(rank, 1);
    own[axis] = given(pool, name, rank, 1)[axis];
    node->attrs.set(name, own);
  }
  Ints pads = given(pool, "pads", 2 * rank, 0);
  Ints own(2 * rank, 0);
  for (size_t end : {axis, axis + rank}) own[end] = pads[end];
  node->attrs.set("pads", own);
  return node;
}

// Turns the node into the pool of the last axis, and gives those before it.
std::vector<std::unique_ptr<Node>> split(Node& node) {
  std::vector<std::unique_ptr<Node>> steps;
  Ints sides = given(node, "kernel_shape", 0, 1);
  Ints strides = given(node, "strides", sides.size(), 1);
  Ints pads = given(node, "pads", 2 * sides.size(), 0);
  ir::Value* value = node.operands[0];
  for (size_t i = 0; i < sides.size(); ++i) {
    if (sides[i] == 1 && strides[i] == 1 && pads[i] == 0 && pads[i + sides.size()] == 0) continue;
    steps.push_back(along(i, node, value));
    value = steps.back()->add_result(node.results[0]->name);
  }
  node.operands = steps.back()->operands;
  node.attrs = steps.back()->attrs;
  steps.pop_back();
  return steps;
}

bool split_pools(ir::Region& region) {
  bool changed = false;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    for (auto& inner : region.nodes[i]->regions) changed = split_pools(*inner) || changed;
    if (!is_split(*region.nodes[i])) continue;
    std::vector<std::unique_ptr<Node>> before = split(*region.nodes[i]);
    i = insert_before(region, i, std::move(before));
    changed = true;
  }
  return changed;
}

}  // namespace

// max_pool(x) {kernel_shape = [a, b]} => max_pool(max_pool(x) {kernel_shape = [a, 1]}) {kernel_shape = [1, b]}
bool pools_by_axis(ir::Module& module) { return split_pools(module.main().body); }

}  // namespace selkie::passes
