// What the verifier says of modules that no text can spell; those that a text can are tests/golden/fail_*.sk.
#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/test_ops.h"

namespace selkie::ir {
namespace {

constexpr std::string_view sound = R"(
const @c: f32[2] = {1, 2}
func @main(%x: f32[2], %b: bool[]) -> (?) {
  %y = neg(%x)
  %z = both(%b) then() {
    %u = neg(%y)
    yield %u
  } else() {
    yield %y
  }
  return %z
})";

class Verify : public ::testing::Test {
 protected:
  std::unique_ptr<Module> module_ = parse(sound, testing::test_ops(), "text");
  Region& body_ = module_->main().body;
  Node& neg_ = *body_.nodes[0];
  Node& both_ = *body_.nodes[1];

  std::string first() {
    std::vector<std::string> found = problems(*module_);
    return found.empty() ? "sound" : found[0];
  }
};

TEST_F(Verify, ASoundModuleIsSound) { EXPECT_EQ(first(), "sound"); }

TEST_F(Verify, TwoFunctionsOfOneName) {
  module_->add_function("main");
  EXPECT_EQ(first(), "function @main is defined twice");
}

TEST_F(Verify, AFieldOfAnUnknownType) {
  module_->data_types.push_back({"Tree", {{"Node", {Type::data("Twig")}}}});
  EXPECT_EQ(first(), "constructor Node has type Twig, which is not defined");
}

TEST_F(Verify, AConstantThatDoesNotKnowItself) {
  module_->constants()[0]->value.constant = nullptr;
  EXPECT_EQ(first(), "constant @c does not know itself");
}

TEST_F(Verify, ABodyWithAParent) {
  body_.parent = &neg_;
  EXPECT_EQ(first(), "function @main: the body has a parent node");
}

TEST_F(Verify, AParameterOfAnotherRegion) {
  body_.parameters[0]->region = both_.regions[0].get();
  EXPECT_EQ(first(), "function @main: parameter %x belongs to another region");
}

TEST_F(Verify, AResultOfAnotherNode) {
  neg_.results[0]->node = &both_;
  EXPECT_EQ(first(), "function @main: node '%y' (neg): result %y belongs to another node");
}

TEST_F(Verify, ARegionOfAnotherNode) {
  both_.regions[1]->parent = &neg_;
  EXPECT_EQ(first(), "function @main: node '%z' (both): region 1 belongs to another node");
}

TEST_F(Verify, AUseBeforeItsDefinition) {
  std::swap(body_.nodes[0], body_.nodes[1]);
  EXPECT_EQ(first(),
            "function @main: node '%z' (both): node '%u' (neg): operand 'x' uses %y, which is not defined there");
}

TEST_F(Verify, AnInnerValueReturnedOutside) {
  body_.yields[0] = both_.regions[0]->nodes[0]->results[0].get();
  EXPECT_EQ(first(), "function @main: value %u is not defined where the region returns it");
}

TEST_F(Verify, AResultLeftOut) {
  body_.yields[0] = nullptr;
  EXPECT_EQ(first(), "function @main: a result of the region is left out");
}

TEST_F(Verify, TooManyResults) {
  neg_.add_result("more");
  EXPECT_EQ(first(), "function @main: node '%y' (neg): 2 results given, but at most 1 are taken");
}

TEST_F(Verify, TooFewResults) {
  auto lone = std::make_unique<Node>();
  lone->op = neg_.op;
  lone->operands = {body_.parameters[0].get()};
  lone->source = "lone";
  body_.nodes.push_back(std::move(lone));
  EXPECT_EQ(first(), "function @main: node 'lone' (neg): 0 results given, but at least 1 are needed");
}

TEST_F(Verify, AResultOfAnotherDType) {
  neg_.results[0]->type = Type::tensor(DType::f64);
  EXPECT_EQ(first(), "function @main: node '%y' (neg): result 'y' is of type f64, but must be f32 like 'x'");
}

TEST_F(Verify, ANegativeDim) {
  body_.parameters[0]->type = Type::tensor(DType::f32, SymDims{module_->symbols().constant(-1)});
  EXPECT_EQ(first(), "function @main: parameter %x has the negative dimension -1");
}

TEST_F(Verify, RegionsNestedTooDeeply) {
  Region* at = &body_;
  for (int i = 0; i < max_region_depth; ++i) {
    auto nest = std::make_unique<Node>();
    nest->op = testing::test_ops().find("nest");
    Region& inner = nest->add_region();
    at->nodes.push_back(std::move(nest));
    at = &inner;
  }
  std::string message = first();
  EXPECT_TRUE(message.ends_with("regions are nested more than 100 deep")) << message;
}

TEST_F(Verify, MessagesAreLimitedAndChained) {
  for (int i = 0; i < 50; ++i) module_->add_function("main");
  EXPECT_EQ(problems(*module_, 3).size(), 3u);
  try {
    verify(*module_);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "function @main is defined twice");
    EXPECT_NE(std::string(error.what()).find("also: "), std::string::npos);
  }
}

}  // namespace
}  // namespace selkie::ir
