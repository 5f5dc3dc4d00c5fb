// Runs of the reference evaluator: inputs that do not fit, limits, the path taken, and memory that comes back.
#include "interp/interp.h"

#include <gtest/gtest.h>

#include "base/convert.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace selkie::interp {
namespace {

std::unique_ptr<ir::Module> module_of(std::string_view text) {
  auto module = ir::parse(text, ops::op_set(), "test");
  ir::verify(*module);
  return module;
}

std::vector<HostValue> run_text(std::string_view text, std::vector<HostValue> inputs, const Options& options = {}) {
  return run(*module_of(text), std::move(inputs), options);
}

std::string error_of(std::string_view text, std::vector<HostValue> inputs, const Options& options = {}) {
  try {
    run_text(text, std::move(inputs), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Tensor f32(Dims dims) { return Tensor(DType::f32, std::move(dims)); }

constexpr std::string_view pair =
    "func @main(%a: f32[N, 3], %b: f32[N, M]) -> (f32[N, 3]) where N in 1..8, N % 2 == 0 { return %a }";

TEST(Bind, SaysWhichInputDoesNotFit) {
  EXPECT_EQ(error_of(pair, {f32({2, 3}), f32({2, 5})}), "no error");
  EXPECT_EQ(error_of(pair, {f32({2, 3})}), "the model takes 2 inputs, but 1 are given");
  EXPECT_EQ(error_of(pair, {f32({2, 3}), HostValue()}), "input 'b' (f32[N, M]) is missing");
  EXPECT_EQ(error_of(pair, {Tensor(DType::i64, {2, 3}), f32({2, 5})}), "input 'a' must be of type f32, but is of i64");
  EXPECT_EQ(error_of(pair, {f32({2}), f32({2, 5})}), "input 'a' must have rank 2 (f32[N, 3]), but has shape [2]");
  EXPECT_EQ(error_of(pair, {f32({2, 4}), f32({2, 5})}), "input 'a' dim 1 is 4, but must be 3");
  EXPECT_EQ(error_of(pair, {f32({2, 3}), f32({4, 5})}),
            "input 'b' dim 0 is 4, but must equal dim 0 of 'a' (2): both are N");
  EXPECT_EQ(error_of(pair, {Sequence{}, f32({4, 5})}), "input 'a' must be f32[N, 3], but is a sequence of 0 items");
}

TEST(Bind, FactsHoldForTheInputs) {
  for (int64_t n : {3, 10}) {
    std::string error = error_of(pair, {f32({n, 3}), f32({n, 1})});
    EXPECT_TRUE(error.starts_with("the inputs do not satisfy the model's constraints")) << error;
    EXPECT_NE(error.find("N"), std::string::npos) << error;
  }
}

TEST(Bind, ExpressionsOfEarlierDims) {
  constexpr std::string_view text = "func @main(%a: f32[N], %b: f32[2*N + 1]) -> (?) { return %b }";
  EXPECT_EQ(error_of(text, {f32({3}), f32({7})}), "no error");
  EXPECT_EQ(error_of(text, {f32({3}), f32({6})}), "input 'b' dim 0 is 6, but must be 2*N + 1 = 7");
}

TEST(Bind, SequencesAndOptionals) {
  constexpr std::string_view text = "func @main(%s: seq<f32[N]>, %o: opt<f32[2]>) -> (?) { return %s }";
  EXPECT_EQ(error_of(text, {Sequence{{f32({1}), f32({2})}}, Optional{}}), "no error");
  EXPECT_EQ(error_of(text, {Sequence{}, f32({2})}), "no error");
  EXPECT_EQ(error_of(text, {Sequence{{Tensor(DType::i64, {1})}}, Optional{}}),
            "input 's' must be of type f32, but is of i64");
  EXPECT_EQ(error_of(text, {Sequence{}, Optional{std::make_shared<HostValue>(f32({3}))}}),
            "input 'o' dim 0 is 3, but must be 2");
}

TEST(Run, ErrorsNameTheNodeAndItsOperands) {
  std::string error = error_of(
      "func @main(%a: f32[*], %b: f32[*]) -> (?) { %c = add(%a, %b) from \"Add_7\" return %c }", {f32({2}), f32({3})});
  EXPECT_NE(error.find("in node 'Add_7' (add) of f32[2], f32[3]"), std::string::npos) << error;
}

constexpr std::string_view forever = R"(
func @main(%x: f32[2]) -> (f32[2]) {
  %y = loop(_, _, %x) body(%i: i64[], %c: bool[], %a: f32[2]) {
    %b = neg(%a)
    yield %c, %b
  }
  return %y
})";

TEST(Run, ALoopHasATripLimit) {
  std::string error = error_of(forever, {f32({2})}, {.limits = {.loop_trips = 1000}});
  EXPECT_TRUE(error.starts_with("the loop has run 1000 trips, which is the limit")) << error;
}

constexpr std::string_view chain_of_two = "func @main(%x: f32[N]) -> (f32[N]) { %a = neg(%x) %b = abs(%a) return %b }";

TEST(Run, MemoryHasALimit) {
  Tensor x = f32({1000});
  EXPECT_EQ(error_of(chain_of_two, {x}, {.memory_limit = 8000}), "no error");
  std::string error = error_of(chain_of_two, {x}, {.memory_limit = 7999});
  EXPECT_TRUE(error.starts_with("out of memory: 4000 bytes are needed, 4000 are in use, and the limit is 7999"))
      << error;
  EXPECT_NE(error.find("(abs)"), std::string::npos) << error;
}

// A chain of operators needs two values at a time, however long it is.
TEST(Run, ValuesGoAfterTheirLastUse) {
  for (int length : {4, 400}) {
    std::string text = "func @main(%v0: f32[N]) -> (f32[N]) {";
    for (int i = 0; i < length; ++i) text += fmt::format(" %v{} = neg(%v{})", i + 1, i);
    text += fmt::format(" return %v{} }}", length);
    auto budget = std::make_shared<MemoryBudget>(int64_t{1} << 30);
    Tensor x = f32({1000});
    MemoryBudget::Scope scope(budget);
    run_text(text, {x});
    EXPECT_EQ(budget->peak(), 8000) << length;
  }
}

TEST(Run, ALoopKeepsOnlyWhatItCarries) {
  auto peak = [](int64_t trips) {
    auto budget = std::make_shared<MemoryBudget>(int64_t{1} << 30);
    MemoryBudget::Scope scope(budget);
    run_text(R"(
func @main(%n: i64[], %x: f32[N]) -> (f32[N]) {
  %y = loop(%n, _, %x) body(%i: i64[], %c: bool[], %a: f32[N]) {
    %b = neg(%a)
    %d = abs(%b)
    yield %c, %d
  }
  return %y
})",
             {Tensor::scalar_i64(trips), f32({1000})});
    return budget->peak();
  };
  EXPECT_EQ(peak(10), peak(300));
}

TEST(Run, AnInnerUseKeepsAnOuterValue) {
  auto results = run_text(R"(
func @main(%x: f32[2], %c: bool[]) -> (f32[2]) {
  %h = neg(%x)
  %y = if(%c) then() {
    %z = if(%c) then() { yield %h } else() { yield %x }
    yield %z
  } else() { yield %x }
  return %y
})",
                          {narrow<double>({1, 2}, DType::f32, {2}), Tensor::scalar_bool(true)});
  EXPECT_EQ(widen<double>(results[0].tensor()), (std::vector<double>{-1, -2}));
}

TEST(Run, ThePathIsRecorded) {
  std::vector<PathStep> path;
  run_text(R"(
func @main(%n: i64[], %x: f32[2], %c: bool[]) -> (f32[2]) {
  %y = loop(%n, _, %x) from "Loop_1" body(%i: i64[], %k: bool[], %a: f32[2]) {
    %b = if(%c) from "If_2" then() { yield %a } else() { %d = neg(%a) yield %d }
    yield %k, %b
  }
  %z = if(%c) then() { yield %x } else() { yield %y }
  return %z
})",
           {Tensor::scalar_i64(3), f32({2}), Tensor::scalar_bool(false)}, {.path = &path});
  std::string text;
  for (const PathStep& step : path) text += fmt::format("{}:{}x{} ", step.node, step.region, step.times);
  EXPECT_EQ(text, "Loop_1:bodyx3 If_2:elsex3 z:elsex1 ");
}

TEST(Run, TheObserverSeesEveryNode) {
  std::vector<std::string> seen;
  Options options{.observer = [&](const ir::Node& node, std::span<const HostValue> results) {
    seen.push_back(std::string(node.op->name) + " " + results[0].describe());
  }};
  run_text(chain_of_two, {f32({4})}, options);
  EXPECT_EQ(seen, (std::vector<std::string>{"neg f32[4]", "abs f32[4]"}));
}

TEST(Run, OneModuleRunsManyTimes) {
  auto module = module_of(chain_of_two);
  for (int64_t n : {0, 1, 7, 1})
    EXPECT_EQ(to_string(run(*module, {f32({n})})[0].tensor().dims()), fmt::format("[{}]", n));
}

}  // namespace
}  // namespace selkie::interp
