// Memory of compiled models: plans of the arena, and limits.
#include <gtest/gtest.h>

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

runtime::Context context(const std::string& text, int64_t memory_limit) {
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
  return runtime::Context(
      build(ir::parse(model, ops::op_set(), "memory"), {.host = {.memory_limit = memory_limit}}).executable);
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

}  // namespace
}  // namespace selkie::driver
