#include "onnx/order.h"

#include <fmt/ranges.h>

#include <queue>
#include <unordered_map>

#include "base/error.h"

namespace selkie::onnx {
namespace {

// Calls `f` with every name that a node reads, also inside its subgraphs. Names that a subgraph defines itself may be
// among them; producers outside are then an edge too many, never one too few.
template <class F>
void for_each_read(const NodeProto& node, F&& f) {
  for (Bytes input : node.inputs) f(input);
  for (const AttributeProto& attribute : node.attributes) {
    if (!attribute.g) continue;
    for (const NodeProto& inner : attribute.g->nodes) for_each_read(inner, f);
    for (const ValueInfo& output : attribute.g->outputs) f(output.name);
  }
}

std::string describe_cycle(const std::vector<NodeProto>& nodes, const std::vector<size_t>& waiting) {
  std::vector<std::string> names;
  for (size_t i = 0; i < nodes.size() && names.size() < 5; ++i)
    if (waiting[i] > 0)
      names.push_back(nodes[i].name.empty() ? fmt::format("{}_{}", nodes[i].op_type, i) : std::string(nodes[i].name));
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

}  // namespace

std::vector<size_t> dependence_order(const std::vector<NodeProto>& nodes) {
  std::unordered_map<Bytes, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (Bytes output : nodes[i].outputs)
      if (!output.empty()) producer.emplace(output, i);
  std::vector<size_t> waiting(nodes.size(), 0);
  std::vector<std::vector<size_t>> consumers(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for_each_read(nodes[i], [&](Bytes name) {
      auto at = producer.find(name);
      if (at == producer.end() || (at->second == i && !nodes[i].attributes.empty())) return;
      consumers[at->second].push_back(i);
      ++waiting[i];
    });
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t next : consumers[i])
      if (--waiting[next] == 0) ready.push(next);
  }
  if (order.size() != nodes.size())
    fail("the graph has a cycle; nodes on or behind it: {}", describe_cycle(nodes, waiting));
  return order;
}

}  // namespace selkie::onnx
