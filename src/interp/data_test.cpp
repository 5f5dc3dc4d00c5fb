// Recursion over data types, closures, and the limits that keep both from harm.
#include <gtest/gtest.h>
#include <pthread.h>

#include "base/convert.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace selkie::interp {
namespace {

std::vector<HostValue> run_text(std::string_view text, std::vector<HostValue> inputs, const Options& options = {}) {
  auto module = ir::parse(text, ops::op_set(), "test");
  ir::verify(*module);
  return run(*module, std::move(inputs), options);
}

std::string error_of(std::string_view text, std::vector<HostValue> inputs, const Options& options = {}) {
  try {
    run_text(text, std::move(inputs), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

HostValue leaf(double a, double b) { return Record{"Leaf", {narrow<double>({a, b}, DType::f32, {2})}}; }
HostValue node(HostValue left, HostValue right) { return Record{"Node", {std::move(left), std::move(right)}}; }

// A tree that leans to one side: `depth` nodes, with a leaf {1, 2} on each and one at the end.
HostValue vine(int depth) {
  HostValue tree = leaf(1, 2);
  for (int i = 0; i < depth; ++i) tree = node(leaf(1, 2), std::move(tree));
  return tree;
}

constexpr std::string_view sum_of_leaves = R"(
data Tree { Leaf(f32[2]), Node(Tree, Tree) }
func @main(%t: Tree) -> (f32[2]) { %s = call(%t) {callee = @sum} return %s }
func @sum(%t: Tree) -> (f32[2]) {
  %s = match(%t) {constructors = ["Leaf", "Node"]} case(%x: f32[2]) {
    yield %x
  } case(%l: Tree, %r: Tree) {
    %a = call(%l) {callee = @sum}
    %b = call(%r) {callee = @sum}
    %c = add(%a, %b)
    yield %c
  }
  return %s
})";

constexpr std::string_view endless = R"(
func @main(%x: f32[2]) -> (f32[2]) { %y = call(%x) {callee = @again} return %y }
func @again(%x: f32[2]) -> (f32[2]) { %y = call(%x) {callee = @again} return %y })";

TEST(Data, RecursionSumsTheLeavesOfATree) {
  HostValue tree = node(node(leaf(1, 10), leaf(2, 20)), leaf(4, 40));
  EXPECT_EQ(widen<double>(run_text(sum_of_leaves, {tree})[0].tensor()), (std::vector<double>{7, 70}));
  EXPECT_EQ(widen<double>(run_text(sum_of_leaves, {leaf(3, 5)})[0].tensor()), (std::vector<double>{3, 5}));
}

TEST(Data, RecursionMayBeAsDeepAsTheLimitSays) {
  auto depth = static_cast<int>(ir::RunLimits{}.call_depth) - 2;  // main and the first call
  EXPECT_EQ(widen<double>(run_text(sum_of_leaves, {vine(depth)})[0].tensor()),
            (std::vector<double>{depth + 1.0, 2 * (depth + 1.0)}));
  std::string error = error_of(sum_of_leaves, {vine(depth + 1)});
  EXPECT_NE(error.find(fmt::format("calls are nested {} deep, which is the limit", depth + 2)), std::string::npos)
      << error;
}

TEST(Data, EndlessRecursionIsAShortError) {
  std::string error = error_of(endless, {Tensor(DType::f32, {2})});
  EXPECT_TRUE(error.starts_with("calls are nested")) << error;
  EXPECT_NE(error.find("in node '%y' (call) of f32[2]"), std::string::npos) << error;
  EXPECT_LT(error.size(), 2000u);
}

TEST(Data, EndlessRecursionWithoutALimitStopsBeforeTheStackDoes) {
  Options options{.limits = {.call_depth = int64_t{1} << 40}};
  std::string error = error_of(endless, {Tensor(DType::f32, {2})}, options);
  EXPECT_TRUE(error.starts_with("calls and regions are nested too deeply for the stack")) << error;
}

void* run_on_small_stack(void* result) {
  *static_cast<std::string*>(result) =
      error_of(endless, {Tensor(DType::f32, {2})}, {.limits = {.call_depth = int64_t{1} << 40}});
  return nullptr;
}

TEST(Data, ASmallStackIsRespected) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{1} << 20);
  pthread_t thread;
  std::string error;
  ASSERT_EQ(pthread_create(&thread, &attributes, run_on_small_stack, &error), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_TRUE(error.starts_with("calls and regions are nested too deeply for the stack")) << error;
}

TEST(Data, ALongListIsMadeAndFreed) {
  auto results = run_text(R"(
data List { Nil(), Cons(f32[2], List) }
func @main(%x: f32[2], %n: i64[]) -> (List) {
  %nil = construct() {type = List, constructor = "Nil"}
  %list = loop(%n, _, %nil) body(%i: i64[], %c: bool[], %l: List) {
    %m = construct(%x, %l) {type = List, constructor = "Cons"}
    yield %c, %m
  }
  return %list
})",
                          {Tensor(DType::f32, {2}), Tensor::scalar_i64(200'000)});
  EXPECT_EQ(results[0].record().constructor, "Cons");
  EXPECT_EQ(results[0].record().fields[1].describe(), "a value Cons(…)");
}

TEST(Data, ClosuresCarryWhatTheyCapture) {
  auto results = run_text(
      R"(
func @main(%x: f32[2], %y: f32[2], %flip: bool[]) -> (f32[2]) {
  %add = closure(%x) {callee = @plus}
  %sub = closure(%x) {callee = @minus}
  %f = if(%flip) then() { yield %sub } else() { yield %add }
  %z = apply(%f, %y)
  return %z
}
func @plus(%a: f32[2], %b: f32[2]) -> (f32[2]) { %c = add(%a, %b) return %c }
func @minus(%a: f32[2], %b: f32[2]) -> (f32[2]) { %c = sub(%a, %b) return %c })",
      {narrow<double>({5, 7}, DType::f32, {2}), narrow<double>({1, 2}, DType::f32, {2}), Tensor::scalar_bool(true)});
  EXPECT_EQ(widen<double>(results[0].tensor()), (std::vector<double>{4, 5}));
}

TEST(Data, AConstructorOfAnotherTypeIsRefused) {
  std::string error = error_of(R"(
data Tree { Leaf(f32[2]), Node(Tree, Tree) }
data Box { Full(f32[2]) }
func @main(%x: f32[2]) -> (Tree) {
  %b = construct(%x) {type = Box, constructor = "Full"}
  %t = construct(%b, %b) {type = Tree, constructor = "Node"}
  return %t
})",
                               {Tensor(DType::f32, {2})});
  EXPECT_TRUE(error.starts_with("field 0 of Node must be Tree, but is a value Full(…)")) << error;
}

}  // namespace
}  // namespace selkie::interp
