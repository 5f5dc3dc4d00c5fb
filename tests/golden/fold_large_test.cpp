// fold_constants and constants that are too large to be written down: what moves their elements is folded, as long as
// the model does not grow by it.
#include <gtest/gtest.h>

#include "ir/module.h"
#include "ops/registry.h"
#include "passes/pass.h"

namespace selkie::tests {
namespace {

constexpr int64_t side = 512;  // side · side elements are more than are folded otherwise

struct Model {
  ir::Module module;
  ir::Value* weights = module.add_constant("w", Tensor(DType::f32, {side, side}));
  ir::Region& body = module.add_function("main").body;

  ir::Value* add(std::string_view op, std::vector<ir::Value*> operands) {
    auto node = std::make_unique<ir::Node>();
    node->op = ops::op_set().find(op);
    node->operands = std::move(operands);
    ir::Value* result = node->add_result(std::string(op));
    body.nodes.push_back(std::move(node));
    body.yields.push_back(result);
    module.main().result_types.emplace_back();
    module.main().result_names.emplace_back();
    return result;
  }
  size_t folded() {
    size_t before = body.nodes.size();
    passes::run_pass(*passes::find_pass("fold_constants"), module);
    return before - body.nodes.size();
  }
};

TEST(LargeConstants, AreFoldedWhereTheirElementsMove) {
  Model model;
  model.add("transpose", {model.add("transpose", {model.weights})});
  EXPECT_EQ(model.folded(), 2u);
}

TEST(LargeConstants, AreNotFoldedWhereTheyAreComputed) {
  Model model;
  model.add("neg", {model.weights});
  EXPECT_EQ(model.folded(), 0u);
}

TEST(LargeConstants, AreNotFoldedAgainAndAgain) {
  Model model;
  for (int i = 0; i < 10; ++i) model.add("transpose", {model.weights});
  EXPECT_LE(model.folded(), 2u);
}

}  // namespace
}  // namespace selkie::tests
