// Memory of compiled models: plans of the arena, and limits.
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/build.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::driver {
namespace {

constexpr const char* chain = R"(
const @w: f32[8, 512] = {0.5}
const @v: f32[512, 8] = {0.25}
func @main(%x: f32[N, 8]) -> (y: f32[N, 8]) {
  %a = matmul(%x, @w) from "wide"
  %b = softmax(%a) {axis = -1} from "weights"
  %y = matmul(%b, @v) from "narrow"
  return %y
})";

// Three wide values that could be made narrow one after the other.
constexpr const char* branches = R"(
const @w: f32[8, 512] = {0.5}
const @v: f32[512, 8] = {0.25}
func @main(%x: f32[N, 8]) -> (y: f32[N, 8]) {
  %n = neg(%x)
  %e = exp(%n)
  %a = matmul(%x, @w) from "a"
  %b = matmul(%n, @w) from "b"
  %c = matmul(%e, @w) from "c"
  %p = matmul(%a, @v)
  %q = matmul(%b, @v)
  %r = matmul(%c, @v)
  %s = sub(%p, %q)
  %y = sub(%s, %r)
  return %y
})";

runtime::Context context(const std::string& text, int64_t memory_limit, bool plain_order = false) {
  std::string model = text;
  // Literals of many elements are spelled here.
  auto fill = [&](std::string_view what, size_t count) {
    size_t at = model.find(what);
    std::string elements(what.substr(1, what.size() - 2));
    std::string all = "{" + elements;
    for (size_t i = 1; i < count; ++i) all += ", " + elements;
    model.replace(at, what.size(), all + "}");
  };
  fill("{0.5}", 8 * 512);
  fill("{0.25}", 512 * 8);
  return runtime::Context(build(ir::parse(model, ops::op_set(), "memory"),
                                {.compiler = {.plain_order = plain_order}, .host = {.memory_limit = memory_limit}})
                              .executable);
}

std::vector<HostValue> rows(int64_t count) { return {Tensor(DType::f32, {count, 8})}; }

TEST(Memory, APlanIsWhatARunTakes) {
  runtime::Context model = context(chain, 0);
  for (int64_t n : {1, 7, 100}) {
    runtime::MemoryPlan plan = model.memory_plan(rows(n));
    model.run(rows(n));
    EXPECT_EQ(plan.arena_bytes, model.statistics().arena_bytes);
    EXPECT_EQ(plan.arena_bytes, plan.bound.bytes);
    EXPECT_GE(plan.arena_bytes, n * 512 * 4);
  }
}

TEST(Memory, ARunOverTheLimitSaysWhatItNeeds) {
  runtime::Context model = context(chain, 100'000);
  EXPECT_NO_THROW(model.run(rows(20)));
  try {
    model.run(rows(1000));
    FAIL() << "no error";
  } catch (const Error& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("the run needs"), std::string::npos) << text;
    EXPECT_NE(text.find("but its limit is 100000"), std::string::npos) << text;
    EXPECT_NE(text.find("32000 for outputs"), std::string::npos) << text;
    EXPECT_TRUE(text.find("wide") != std::string::npos || text.find("weights") != std::string::npos) << text;
  }
  EXPECT_NO_THROW(model.run(rows(20)));
}

// Outputs that the caller holds are not counted against the next run.
TEST(Memory, TheLimitIsThatOfOneRun) {
  runtime::Context model = context(chain, 100'000);
  std::vector<std::vector<HostValue>> held;
  for (int i = 0; i < 500; ++i) held.push_back(model.run(rows(20)));
  EXPECT_EQ(held.size(), 500U);
}

std::vector<HostValue> some_rows(int64_t count) {
  Tensor x(DType::f32, {count, 8});
  for (int64_t i = 0; i < x.count(); ++i) x.mutable_data<float>()[i] = 0.01F * static_cast<float>(i % 97);
  return {x};
}

TEST(Memory, StepsRunInTheOrderThatNeedsLess) {
  runtime::Context plain = context(branches, 0, true);
  runtime::Context ordered = context(branches, 0);
  for (int64_t n : {1, 5, 64}) {
    std::vector<HostValue> expected = plain.run(some_rows(n));
    std::vector<HostValue> found = ordered.run(some_rows(n));
    EXPECT_LT(ordered.statistics().arena_bytes, plain.statistics().arena_bytes / 2);
    const Tensor& a = expected[0].tensor();
    const Tensor& b = found[0].tensor();
    ASSERT_EQ(a.dims(), b.dims());
    EXPECT_TRUE(std::equal(a.bytes(), a.bytes() + a.byte_size(), b.bytes()));
  }
}

// A chain has one order.
TEST(Memory, AChainIsNotReordered) {
  runtime::Context plain = context(chain, 0, true);
  runtime::Context ordered = context(chain, 0);
  plain.run(rows(9));
  ordered.run(rows(9));
  EXPECT_EQ(ordered.statistics().arena_bytes, plain.statistics().arena_bytes);
}

// What only the run tells stays between what came before and after it.
TEST(Memory, StepsStayOnTheirSideOfOnesThatTellSizes) {
  constexpr const char* text = R"(
const @axis: i64[1] = {1}
const @eight: i64[2] = {1, 8}
const @w: f32[8, 512] = {0.5}
const @v: f32[512, 8] = {0.25}
func @main(%x: f32[N, 8]) -> (y: f32[K, 8], z: f32[N, 8]) {
  %a = matmul(%x, @w)
  %b = matmul(%a, @v)
  %m = greater(%x, %b)
  %i = non_zero(%m)
  %t = transpose(%i) {perm = [1, 0]}
  %g = gather_nd(%x, %t)
  %u = unsqueeze(%g, @axis)
  %h = expand(%u, @eight)
  %e = neg(%h)
  %y = softmax(%e) {axis = -1}
  %c = matmul(%b, @w)
  %z = matmul(%c, @v)
  return %y, %z
})";
  runtime::Context plain = context(text, 0, true);
  runtime::Context ordered = context(text, 0);
  std::vector<HostValue> expected = plain.run(some_rows(6));
  std::vector<HostValue> found = ordered.run(some_rows(6));
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor& a = expected[i].tensor();
    const Tensor& b = found[i].tensor();
    ASSERT_EQ(a.dims(), b.dims());
    EXPECT_TRUE(std::equal(a.bytes(), a.bytes() + a.byte_size(), b.bytes()));
  }
}

}  // namespace
}  // namespace selkie::driver
