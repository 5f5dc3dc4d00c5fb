// Models that real exporters write, and some that none should: what the importer makes of them.
#include "onnx/import.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/convert.h"
#include "ir/print.h"
#include "onnx/model_bytes.h"
#include "ops/registry.h"

namespace selkie::onnx {
namespace {

using namespace testing;

std::unique_ptr<ir::Module> import(const Model& model, const std::string& folder = ".") {
  return import_bytes(model.bytes(), ops::op_set(), folder);
}

// The text of @main, or the whole error.
std::string text_of(const Model& model) {
  try {
    return ir::print(import(model)->main());
  } catch (const Error& error) {
    return error.what();
  }
}

std::string error_of(const Model& model, const std::string& folder = ".") {
  try {
    import(model, folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<double> constant(const ir::Module& module, std::string_view name) {
  for (const auto& c : module.constants())
    if (c->value.name == name) return widen<double>(c->tensor());
  ADD_FAILURE() << "no constant " << name;
  return {};
}

// x -> y of f32[2] through the given nodes.
Model chain(std::vector<Message> nodes, std::vector<Message> initializers = {}) {
  return {.graph = {.nodes = std::move(nodes),
                    .inputs = {value_info("x", float_type, {2})},
                    .outputs = {value_info("y", float_type, {2})},
                    .initializers = std::move(initializers)}};
}

TEST(Import, DimParamOfOneNameIsOneSymbol) {
  Model model{.graph = {.nodes = {node("Add", {"a", "b"}, {"y"})},
                        .inputs = {value_info("a", float_type, {"N", 3}), value_info("b", float_type, {"N", "M"})},
                        .outputs = {value_info("y", float_type, {"N", 3})}}};
  auto module = import(model);
  const auto& p = module->main().body.parameters;
  EXPECT_EQ((*p[0]->type.dims)[0], (*p[1]->type.dims)[0]);
  EXPECT_NE((*p[0]->type.dims)[1], (*p[1]->type.dims)[1]);
  EXPECT_EQ((*module->main().body.yields[0]->type.dims)[0], (*p[0]->type.dims)[0]);
}

TEST(Import, AQuestionMarkIsNoName) {
  Model model{.graph = {.nodes = {node("Relu", {"x"}, {"y"})},
                        .inputs = {value_info("x", float_type, {"?", "?"})},
                        .outputs = {value_info("y", float_type, {"?", "?"})}}};
  EXPECT_NE(text_of(model).find("%x: f32[x_0, x_1]"), std::string::npos) << text_of(model);
}

TEST(Import, AnInitialiserShadowsTheInputOfItsName) {
  Model model = chain({node("Add", {"x", "w"}, {"y"})}, {raw_floats("w", {2}, {1, 2})});
  model.graph.inputs.push_back(value_info("w", float_type, {2}));
  auto module = import(model);
  EXPECT_EQ(module->main().body.parameters.size(), 1u);
  EXPECT_EQ(constant(*module, "w"), (std::vector<double>{1, 2}));
}

TEST(Import, OldModelsListInitialisersAsInputs) {
  Model model = chain({node("Add", {"x", "w"}, {"y"})}, {raw_floats("w", {2}, {1, 2})});
  model.graph.inputs.push_back(value_info("w", float_type, {2}));
  model.ir_version = 3;
  model.opsets = {opset(7)};
  EXPECT_EQ(import(model)->main().body.parameters.size(), 1u);
}

TEST(Import, WithoutAnOpsetAnOldModelUsesTheFirst) {
  // Opset 1 gave Reshape its shape as an attribute.
  Model model = chain({node("Reshape", {"x"}, {"y"}, {ints_attribute("shape", {2})})});
  model.ir_version = 2;
  model.opsets = {};
  auto module = import(model);
  EXPECT_EQ(module->main().body.nodes[0]->operands.size(), 2u);
}

TEST(Import, WithoutAnOpsetANewerModelIsReadAsTheNewest) {
  Model model = chain({node("Clip", {"x", "low"}, {"y"})}, {raw_floats("low", {}, {0})});
  model.opsets = {};
  EXPECT_EQ(import(model)->main().body.nodes[0]->operands.size(), 2u);
}

TEST(Import, OldOpsetsAreUpgraded) {
  Model squeeze = chain({node("Unsqueeze", {"x"}, {"u"}, {ints_attribute("axes", {0})}),
                         node("Squeeze", {"u"}, {"y"}, {ints_attribute("axes", {0})})});
  squeeze.opsets = {opset(11)};
  auto module = import(squeeze);
  EXPECT_EQ(module->main().body.nodes[1]->operands.size(), 2u);
  EXPECT_TRUE(module->main().body.nodes[1]->attrs.empty());

  Model clip = chain({node("Clip", {"x"}, {"y"}, {float_attribute("max", 6), float_attribute("min", 0)})});
  clip.opsets = {opset(6)};
  EXPECT_EQ(import(clip)->main().body.nodes.back()->operands.size(), 3u);

  Model sum = chain({node("ReduceSum", {"x"}, {"s"}, {ints_attribute("axes", {0}), int_attribute("keepdims", 1)}),
                     node("Add", {"x", "s"}, {"y"})});
  sum.opsets = {opset(1)};
  EXPECT_NO_THROW(import(sum));
  sum.opsets = {opset(13)};
  EXPECT_NE(error_of(sum).find("no attribute 'axes'"), std::string::npos);
}

TEST(Import, AnOperatorNewerThanTheOpsetIsRefused) {
  Model model = chain({node("Trilu", {"x"}, {"y"})});
  model.opsets = {opset(13)};
  EXPECT_NE(error_of(model).find("'Trilu' came with opset 14, but the model uses opset 13"), std::string::npos);
  model.opsets = {opset(newest_opset + 1)};
  EXPECT_NE(error_of(model).find("but the newest known one is"), std::string::npos);
}

TEST(Import, NodesMayComeInAnyOrder) {
  Model model = chain({node("Abs", {"c"}, {"y"}), node("Neg", {"b"}, {"c"}), node("Exp", {"x"}, {"b"})});
  auto module = import(model);
  std::vector<std::string_view> order;
  for (const auto& n : module->main().body.nodes) order.push_back(n->op->name);
  EXPECT_EQ(order, (std::vector<std::string_view>{"exp", "neg", "abs"}));
}

TEST(Import, ACycleIsNamed) {
  std::string error = error_of(chain({node("Neg", {"b"}, {"y"}), node("Abs", {"y"}, {"b"})}));
  EXPECT_NE(error.find("cycle"), std::string::npos) << error;
}

TEST(Import, FloatsMayComeInPieces) {
  Message pieces = tensor("w", float_type, {5}).packed_floats(4, {1, 2}).real(4, 3).packed_floats(4, {4, 5});
  auto module = import(chain({node("Neg", {"x"}, {"y"})}, {pieces}));
  EXPECT_EQ(constant(*module, "w"), (std::vector<double>{1, 2, 3, 4, 5}));
  Message unpacked = tensor("w", float_type, {2}).real(4, 1).real(4, 2);
  EXPECT_EQ(constant(*import(chain({node("Neg", {"x"}, {"y"})}, {unpacked})), "w"), (std::vector<double>{1, 2}));
}

TEST(Import, ATensorOfTheWrongSizeIsNamed) {
  Model model = chain({node("Neg", {"x"}, {"y"})}, {raw_floats("weights", {3}, {1, 2})});
  EXPECT_EQ(error_of(model), "it has 8 bytes, but its shape [3] needs 12\n  in tensor 'weights'");
  model.graph.initializers = {tensor("weights", float_type, {3}).packed_floats(4, {1, 2})};
  EXPECT_NE(error_of(model).find("in tensor 'weights'"), std::string::npos);
}

TEST(Import, SparseInitialisersBecomeDense) {
  Message linear =
      Message().message(1, raw_floats("s", {2}, {5, 6})).message(2, int64s("i", {2}, {1, 3})).numbers(3, {2, 2});
  Model model = chain({node("Neg", {"x"}, {"y"})});
  model.graph.sparse = {linear};
  EXPECT_EQ(constant(*import(model), "s"), (std::vector<double>{0, 5, 0, 6}));
  model.graph.sparse = {Message()
                            .message(1, raw_floats("s", {2}, {5, 6}))
                            .message(2, int64s("i", {2, 2}, {0, 1, 1, 0}))
                            .numbers(3, {2, 2})};
  EXPECT_EQ(constant(*import(model), "s"), (std::vector<double>{0, 5, 6, 0}));
  model.graph.sparse = {
      Message().message(1, raw_floats("s", {1}, {5})).message(2, int64s("i", {1}, {4})).numbers(3, {2, 2})};
  EXPECT_NE(error_of(model).find("index outside its shape"), std::string::npos);
}

class External : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / fmt::format("selkie_import_test_{}", getpid());
    std::filesystem::create_directories(folder_ / "sub");
    std::vector<float> values{9, 9, 1, 2, 3, 4};
    std::ofstream(folder_ / "sub" / "data.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), 24);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string error(const Message& initializer) {
    return error_of(chain({node("Neg", {"x"}, {"y"})}, {initializer}), folder_.string());
  }

  std::filesystem::path folder_;
};

TEST_F(External, OffsetAndLengthAreKept) {
  Model model = chain({node("Neg", {"x"}, {"y"})},
                      {external("w", {2, 2}, {{"location", "sub/data.bin"}, {"offset", "8"}, {"length", "16"}}),
                       external("v", {2}, {{"location", "sub/data.bin"}})});
  auto module = import(model, folder_.string());
  EXPECT_EQ(constant(*module, "w"), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(constant(*module, "v"), (std::vector<double>{9, 9}));
  EXPECT_FALSE(module->constants()[0]->in_memory) << "external data is mapped, not copied";
  EXPECT_EQ(module->constants()[0]->file, module->constants()[1]->file);
}

TEST_F(External, WhatIsWrongIsSaid) {
  EXPECT_NE(error(external("w", {2}, {{"location", "nowhere.bin"}})).find("cannot open"), std::string::npos);
  EXPECT_NE(error(external("w", {2}, {{"location", "../data.bin"}})).find("outside the model's folder"),
            std::string::npos);
  EXPECT_NE(error(external("w", {2}, {{"location", "/etc/passwd"}})).find("relative to the model"), std::string::npos);
  EXPECT_NE(error(external("w", {2}, {})).find("no location"), std::string::npos);
  EXPECT_NE(error(external("w", {4}, {{"location", "sub/data.bin"}, {"offset", "16"}})).find("needs 16"),
            std::string::npos);
  EXPECT_NE(error(external("w", {1}, {{"location", "sub/data.bin"}, {"offset", "25"}})).find("too few"),
            std::string::npos);
  EXPECT_NE(error(external("w", {1}, {{"location", "sub/data.bin"}, {"offset", "-4"}})).find("not a valid offset"),
            std::string::npos);
  EXPECT_NE(error(external("w", {1}, {{"location", "sub/data.bin"}, {"length", "99999999999999999999"}}))
                .find("not a valid length"),
            std::string::npos);
}

TEST(Import, SubgraphsSeeOuterValues) {
  auto branch = [](const char* op, const char* out) {
    return Graph{.nodes = {node(op, {"h"}, {out})}, .inputs = {}, .outputs = {value_info(out, float_type, {2})}}
        .message();
  };
  Model model = chain({node("Exp", {"x"}, {"h"}), node("If", {"c"}, {"y"},
                                                       {graph_attribute("else_branch", branch("Neg", "e")),
                                                        graph_attribute("then_branch", branch("Abs", "t"))})});
  model.graph.inputs.push_back(value_info("c", bool_type, {}));
  auto module = import(model);
  const ir::Node& n = *module->main().body.nodes[1];
  ASSERT_EQ(n.regions.size(), 2u);
  EXPECT_EQ(n.regions[0]->nodes[0]->op->name, "abs");
  EXPECT_EQ(n.regions[0]->nodes[0]->operands[0], module->main().body.nodes[0]->results[0].get());
}

TEST(Import, ASubgraphMissingIsAnError) {
  Model model = chain({node("If", {"c"}, {"y"}, {})});
  model.graph.inputs.push_back(value_info("c", bool_type, {}));
  EXPECT_NE(error_of(model).find("graph attribute 'then_branch' is missing"), std::string::npos);
}

Message function(std::string_view name, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                 const std::vector<std::string>& attributes, const std::vector<Message>& nodes) {
  return Message()
      .text(1, name)
      .texts(4, inputs)
      .texts(5, outputs)
      .texts(6, attributes)
      .messages(7, nodes)
      .message(9, opset(21))
      .message(9, opset(1, "mine"))
      .text(10, "mine");
}

TEST(Import, FunctionsWithAttributesAreMadeOncePerValue) {
  Message leaky = function("Leak", {"a"}, {"b"}, {"slope"},
                           {node("LeakyRelu", {"a"}, {"b"}, {attribute_reference("alpha", "slope", 1)})});
  Message twice = function("Twice", {"a"}, {"c"}, {"s"},
                           {node("Leak", {"a"}, {"b"}, {attribute_reference("slope", "s", 1)}, "mine"),
                            node("Leak", {"b"}, {"c"}, {attribute_reference("slope", "s", 1)}, "mine")});
  Model model = chain({node("Twice", {"x"}, {"h"}, {float_attribute("s", 0.5f)}, "mine"),
                       node("Twice", {"h"}, {"y"}, {float_attribute("s", 0.25f)}, "mine")});
  model.opsets = {opset(21), opset(1, "mine")};
  model.functions = {leaky, twice};
  auto module = import(model);
  EXPECT_EQ(module->functions().size(), 5u) << ir::print(*module);
  std::vector<float> slopes;
  for (const auto& f : module->functions())
    for (const auto& n : f->body.nodes)
      if (n->op->name == "leaky_relu") slopes.push_back(std::get<float>(*n->attrs.find("alpha")));
  std::sort(slopes.begin(), slopes.end());
  EXPECT_EQ(slopes, (std::vector<float>{0.25f, 0.5f}));
}

TEST(Import, AnAttributeNotGivenAtTheCallIsLeftOut) {
  Message leaky = function("Leak", {"a"}, {"b"}, {"slope"},
                           {node("LeakyRelu", {"a"}, {"b"}, {attribute_reference("alpha", "slope", 1)})});
  Model model = chain({node("Leak", {"x"}, {"y"}, {}, "mine")});
  model.opsets = {opset(21), opset(1, "mine")};
  model.functions = {leaky};
  auto module = import(model);
  EXPECT_TRUE(module->functions()[1]->body.nodes[0]->attrs.empty());
}

TEST(Import, AnInputOfAFunctionMayBeLeftOut) {
  Message f = function("Limit", {"a", "low", "high"}, {"b"}, {}, {node("Clip", {"a", "low", "high"}, {"b"})});
  Model model = chain({node("Limit", {"x", "", "w"}, {"y"}, {}, "mine")}, {raw_floats("w", {}, {1})});
  model.opsets = {opset(21), opset(1, "mine")};
  model.functions = {f};
  EXPECT_EQ(error_of(model), "no error");
}

TEST(Import, ErrorsNameTheNode) {
  EXPECT_NE(error_of(chain({node("Frobnicate", {"x"}, {"y"})}))
                .find("unknown operator 'Frobnicate' of domain 'ai.onnx'\n  in node 'Frobnicate_0'"),
            std::string::npos);
  EXPECT_NE(error_of(chain({node("Neg", {"nobody"}, {"y"})})).find("operand 'nobody' is not defined"),
            std::string::npos);
  EXPECT_NE(error_of(chain({node("Neg", {"x"}, {"z"})})).find("the graph's output 'y' is not defined"),
            std::string::npos);
  EXPECT_NE(error_of(chain({node("Neg", {"x"}, {"y"}), node("Abs", {"x"}, {"y"})})).find("value 'y' is defined twice"),
            std::string::npos);
  EXPECT_NE(error_of(chain({node("Neg", {"x"}, {"y"}, {int_attribute("zoom", 1)})})).find("no attribute 'zoom'"),
            std::string::npos);
  Model twice = chain({node("Neg", {"x"}, {"y"})});
  twice.graph.inputs.push_back(value_info("x", float_type, {2}));
  EXPECT_NE(error_of(twice).find("two inputs named 'x'"), std::string::npos);
}

TEST(Import, GarbageIsAnError) {
  EXPECT_THROW(import_bytes("", ops::op_set()), Error);
  EXPECT_THROW(import_bytes("not a model at all", ops::op_set()), Error);
  EXPECT_THROW(import_bytes(std::string(100, '\xff'), ops::op_set()), Error);
}

TEST(Import, ConstantNodesBecomeConstants) {
  Model model =
      chain({node("Constant", {}, {"k"}, {Message().text(1, "value_floats").packed_floats(7, {3, 4}).number(20, 6)}),
             node("Add", {"x", "k"}, {"y"})});
  auto module = import(model);
  EXPECT_EQ(module->main().body.nodes.size(), 1u) << text_of(model);
  EXPECT_EQ(constant(*module, "k"), (std::vector<double>{3, 4}));
}

}  // namespace
}  // namespace selkie::onnx
