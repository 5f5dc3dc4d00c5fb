// What an upgrade row sees: a node of an old opset version, freshly imported, and the place to put helpers before it.
#pragma once

#include "ir/module.h"

namespace selkie::ir {

class UpgradeContext {
 public:
  UpgradeContext(Module& module, Region& region, std::unique_ptr<Node>& node, const OpSet& ops, int version)
      : module_(module), region_(region), node_(node), ops_(ops), version_(version) {}

  Node& node() { return *node_; }
  // The opset version that the model declares.
  int version() const { return version_; }
  // Appends a node with one result before this one and returns the result.
  Value* emit(std::string_view op, std::vector<Value*> operands, Attributes attrs = {});
  Value* constant(Tensor tensor) { return module_.add_constant(node_->source, std::move(tensor)); }
  Value* constant(std::span<const int64_t> values) { return constant(Tensor::of_i64(values)); }
  // Sets operand i, leaving out what lies between.
  void set_operand(size_t i, Value* value);
  // Turns the node into one of another operator.
  void become(std::string_view op);
  // Whoever reads result i reads op(result i, operands…) instead, from a node after this one.
  void convert_result(size_t i, std::string_view op, std::vector<Value*> operands);
  // The nodes that `convert_result` made, to be put after this one.
  std::vector<std::unique_ptr<Node>> take_followers() { return std::move(followers_); }

 private:
  Module& module_;
  Region& region_;
  std::unique_ptr<Node>& node_;
  const OpSet& ops_;
  int version_;
  std::vector<std::unique_ptr<Node>> followers_;
};

}  // namespace selkie::ir
