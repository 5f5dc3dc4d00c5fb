#include "ir/upgrade_context.h"

namespace selkie::ir {

Value* UpgradeContext::emit(std::string_view op, std::vector<Value*> operands, Attributes attrs) {
  auto helper = std::make_unique<Node>();
  helper->op = ops_.find(op);
  CHECK(helper->op != nullptr, "no operator '{}'", op);
  helper->operands = std::move(operands);
  helper->attrs = std::move(attrs);
  helper->source = node_->source;
  Value* result = helper->add_result(node_->results.empty() ? "" : node_->results[0]->name);
  region_.nodes.push_back(std::move(helper));
  return result;
}

void UpgradeContext::set_operand(size_t i, Value* value) {
  if (node_->operands.size() <= i) node_->operands.resize(i + 1, nullptr);
  node_->operands[i] = value;
}

void UpgradeContext::convert_result(size_t i, std::string_view op, std::vector<Value*> operands) {
  auto follower = std::make_unique<Node>();
  follower->op = ops_.find(op);
  CHECK(follower->op != nullptr, "no operator '{}'", op);
  follower->source = node_->source;
  // The value that others know moves to the follower; the node gets a new one in its place.
  std::unique_ptr<Value>& result = node_->results[i];
  std::unique_ptr<Value> known = std::move(result);
  result = std::make_unique<Value>(Value{known->name, {}, node_.get(), nullptr, nullptr});
  known->node = follower.get();
  follower->results.push_back(std::move(known));
  follower->operands = std::move(operands);
  follower->operands.insert(follower->operands.begin(), result.get());
  followers_.push_back(std::move(follower));
}

void UpgradeContext::become(std::string_view op) {
  node_->op = ops_.find(op);
  CHECK(node_->op != nullptr, "no operator '{}'", op);
}

}  // namespace selkie::ir
