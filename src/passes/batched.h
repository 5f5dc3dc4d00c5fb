// Nodes that do for many trips of a loop at once what others do for one: all that differs between trips has a new
// first axis, along which the trips lie.
#pragma once

#include <map>

#include "analysis/rdp.h"

namespace selkie::passes {

// An integer attribute, as it is given or as it is otherwise.
int64_t attribute(const ir::Node& node, std::string_view name);

// Appends nodes to a region.
class NodeAdder {
 public:
  NodeAdder(ir::Module& module, ir::Region& region, std::string source)
      : module_(module), region_(region), source_(std::move(source)) {}

  ir::Node& add(std::string_view op, std::vector<ir::Value*> operands, size_t results = 1);
  // The first result.
  ir::Value* value(std::string_view op, std::vector<ir::Value*> operands);
  ir::Value* ints(const std::vector<int64_t>& elements);
  ir::Value* scalar(int64_t element);
  ir::Region& region() { return region_; }
  ir::Module& module() { return module_; }

 private:
  ir::Module& module_;
  ir::Region& region_;
  std::string source_;
};

class Batched {
 public:
  Batched(NodeAdder& adder, const analysis::Rdp& rdp) : adder_(adder), rdp_(rdp) {}

  void set(const ir::Value& one, ir::Value* all) { all_[&one] = all; }
  // In the place of a value that is the same in each trip.
  void set_same(const ir::Value& one, ir::Value* other) { same_[&one] = other; }
  // Of all trips; null for a value that is the same in each.
  ir::Value* find(const ir::Value* one) const;
  // Appends what gives the results for all trips. Whether there is a rule for the node; if not, some of the nodes that
  // it would need may be there.
  bool add(const ir::Node& node);
  // How many axes one has, if that is known.
  std::optional<int64_t> rank(const ir::Value& one) const;

 private:
  using Rule = bool (Batched::*)(const ir::Node&);
  static Rule rule_for(const ir::Node& node);

  bool element_wise(const ir::Node& node);
  bool along_axis(const ir::Node& node);
  bool concatenated(const ir::Node& node);
  bool gathered(const ir::Node& node);
  bool product(const ir::Node& node);
  bool gemm(const ir::Node& node);
  bool reshaped(const ir::Node& node);
  bool squeezed(const ir::Node& node);
  bool unsqueezed(const ir::Node& node);
  bool transposed(const ir::Node& node);
  bool reduced(const ir::Node& node);
  bool sliced(const ir::Node& node);

  bool differs(const ir::Node& node) const;
  void copy_same(const ir::Node& node);
  // The node for all trips, with these operands; its attributes can still be changed.
  ir::Node& copy(const ir::Node& node, std::vector<ir::Value*> operands);
  // Its operands, batched where they differ between trips.
  std::vector<ir::Value*> operands_of(const ir::Node& node) const;
  bool only_first_differs(const ir::Node& node) const;
  ir::Value* with_rank(const ir::Value& one, int64_t rank);
  // The elements of an operand that are known before the run.
  std::optional<std::vector<int64_t>> ints(const ir::Node& node, size_t operand) const;

  NodeAdder& adder_;
  const analysis::Rdp& rdp_;
  std::map<const ir::Value*, ir::Value*> all_;
  std::map<const ir::Value*, ir::Value*> same_;
};

}  // namespace selkie::passes
