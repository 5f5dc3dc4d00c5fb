// Loops over rows of tables, run level by level (batch_levels), and slices that are replaced in place: programs with
// random indices agree with the reference, and the levels are as few as they can be.
#include <gtest/gtest.h>

#include <random>

#include "base/convert.h"
#include "difference.h"
#include "driver/build.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "passes/pass.h"
#include "program/verify.h"

namespace selkie::tests {
namespace {

constexpr std::string_view weights = "const @w: f32[3, 3] = {0.5, -0.25, 1, 0.125, 0.75, -1, 0.5, 0.25, -0.5} ";
constexpr std::string_view constants = "const @zero: i64[1] = {0} const @last: i64[] = {-1} ";

// A trip makes its row from the two rows that `children` says, and all rows so far are a tensor,
constexpr std::string_view appended =
    "func @main(%x: f32[L, 3], %children: i64[I, 2], %n: i64[]) -> (f32[*]) { "
    "%rows = loop(%n, _, %x) body(%i: i64[], %go: bool[], %r: f32[*]) { "
    "%pick = gather(%children, %i) %pair = gather(%r, %pick) %sum = reduce_sum(%pair, @zero) {keepdims = 1} "
    "%p = matmul(%sum, @w) %t = tanh(%p) %all = concat(%r, %t) {axis = 0} yield %go, %all } return %rows }";

// a sequence,
constexpr std::string_view sequence =
    "func @main(%x: f32[L, 3], %children: i64[I, 2], %n: i64[]) -> (f32[*], f32[*]) { "
    "%items = split_to_sequence(%x) "
    "%done, %each = loop(%n, _, %items) body(%i: i64[], %go: bool[], %s: seq<f32[*]>) { "
    "%pick = gather(%children, %i) %one, %two = split(%pick) {num_outputs = 2} "
    "%a = squeeze(%one) %b = squeeze(%two) %left = sequence_at(%s, %a) %right = sequence_at(%s, %b) "
    "%sum = sub(%left, %right) %p = matmul(%sum, @w) %t = sigmoid(%p) %all = sequence_insert(%s, %t) "
    "yield %go, %all, %p } %y = sequence_at(%done, @last) return %y, %each }";

// or a tensor of which one row is replaced.
constexpr std::string_view replaced =
    "const @one: i64[2] = {1, 1} "
    "func @main(%x: f32[L, 3], %children: i64[I, 2], %targets: i64[I], %n: i64[]) -> (f32[*]) { "
    "%rows = loop(%n, _, %x) body(%i: i64[], %go: bool[], %r: f32[*]) { "
    "%pick = gather(%children, %i) %pair = gather(%r, %pick) %sum = reduce_max(%pair, @zero) {keepdims = 1} "
    "%p = matmul(%sum, @w) %t = tanh(%p) %at = gather(%targets, %i) %place = reshape(%at, @one) "
    "%all = scatter_nd(%r, %place, %t) yield %go, %all } return %rows }";

std::string program(std::string_view function) {
  return std::string(weights) + std::string(constants) + std::string(function);
}

std::vector<HostValue> run(const std::string& text, const std::vector<HostValue>& inputs, bool compiled) {
  auto module = ir::parse(text, ops::op_set(), "test");
  if (!compiled) return interp::run(*module, inputs);
  driver::Built built = driver::build(std::move(module), {});
  program::verify(built.executable->program, built.executable->functions);
  return runtime::Context(built.executable).run(inputs);
}

void expect_as_reference(const std::string& text, const std::vector<HostValue>& inputs) {
  std::vector<HostValue> expected = run(text, inputs, false);
  std::vector<HostValue> actual = run(text, inputs, true);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_EQ(difference(actual[i], expected[i]), "") << "output " << i;
}

bool is_batched(const std::string& text) {
  auto module = ir::parse(text, ops::op_set(), "test");
  return passes::run_pass(*passes::find_pass("batch_levels"), *module);
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t limit) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit)); }
  Tensor rows(int64_t count) {
    std::vector<double> values(static_cast<size_t>(count * 3));
    for (double& v : values) v = static_cast<double>(below(200)) / 100 - 1;
    return narrow<double>(values, DType::f32, {count, 3});
  }
  // Rows that there are in each trip, counted from either end.
  Tensor children(int64_t rows, int64_t trips, bool grows) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < trips * 2; ++i) {
      int64_t there = grows ? rows + i / 2 : rows;
      out.push_back(below(2 * there) - there);
    }
    return Tensor::of_i64(out).reshaped({trips, 2});
  }

 private:
  std::mt19937_64 random_;
};

TEST(Levels, RowsThatAreAppended) {
  for (std::string_view form : {appended, sequence}) {
    std::string text = program(form);
    EXPECT_TRUE(is_batched(text));
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(seed);
      Draw draw(seed);
      int64_t rows = 1 + draw.below(6);
      int64_t trips = draw.below(12);
      expect_as_reference(text, {draw.rows(rows), draw.children(rows, trips, true), Tensor::scalar_i64(trips)});
    }
  }
}

// Rows are read before and after others replace them.
TEST(Levels, RowsThatAreReplaced) {
  std::string text = program(replaced);
  EXPECT_TRUE(is_batched(text));
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    int64_t rows = 1 + draw.below(6);
    int64_t trips = draw.below(12);
    std::vector<int64_t> targets;
    for (int64_t i = 0; i < trips; ++i) targets.push_back(draw.below(2 * rows) - rows);
    expect_as_reference(
        text, {draw.rows(rows), draw.children(rows, trips, false), Tensor::of_i64(targets), Tensor::scalar_i64(trips)});
  }
}

TEST(Levels, RowsThatAreNotThereAreRefused) {
  std::string text = program(appended);
  Draw draw(0);
  for (bool compiled : {false, true}) {
    try {
      run(text, {draw.rows(2), Tensor::of_i64(std::vector<int64_t>{0, 3}).reshaped({1, 2}), Tensor::scalar_i64(1)},
          compiled);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("3"), std::string::npos) << error.what();
    }
  }
}

// A balanced tree of 8 leaves has three levels above them.
TEST(Levels, AreAsFewAsTheTreeIsDeep) {
  auto module = ir::parse(
      "func @main(%c: i64[7, 2], %n: i64[]) -> (i64[*], i64[*]) { "
      "%order, %starts, %rows = levels(%n, _, %c) return %order, %starts }",
      ops::op_set(), "test");
  std::vector<int64_t> pairs{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  std::vector<HostValue> out = interp::run(*module, {Tensor::of_i64(pairs).reshaped({7, 2}), Tensor::scalar_i64(8)});
  EXPECT_EQ(widen<int64_t>(out[1].tensor()), (std::vector<int64_t>{0, 4, 6, 7}));
}

struct Kept {
  std::string_view why;
  std::string_view function;
};

TEST(Levels, LoopsThatAreKept) {
  const Kept cases[] = {
      {"each trip needs the one before it",
       "func @main(%x: f32[L, 3], %n: i64[]) -> (f32[*]) { "
       "%rows = loop(%n, _, %x) body(%i: i64[], %go: bool[], %r: f32[*]) { "
       "%row = gather(%r, @last) %t = tanh(%row) %new = unsqueeze(%t, @zero) "
       "%all = concat(%r, %new) {axis = 0} yield %go, %all } return %rows }"},
      {"a row says which row is next",
       "func @main(%x: f32[L, 3], %n: i64[]) -> (f32[*]) { "
       "%rows = loop(%n, _, %x) body(%i: i64[], %go: bool[], %r: f32[*]) { "
       "%k = cast(%i) {to = 7} %row = gather(%r, %k) %m = reduce_max(%row, @zero) {keepdims = 0} "
       "%at = cast(%m) {to = 7} %next = gather(%r, %at) %new = unsqueeze(%next, @zero) "
       "%all = concat(%r, %new) {axis = 0} yield %go, %all } return %rows }"},
      {"all rows are read",
       "func @main(%x: f32[3, 3], %children: i64[I], %n: i64[]) -> (f32[*]) { "
       "%rows = loop(%n, _, %x) body(%i: i64[], %go: bool[], %r: f32[*]) { "
       "%pick = gather(%children, %i) %row = gather(%r, %pick) %sum = reduce_sum(%r, @zero) {keepdims = 0} "
       "%t = add(%row, %sum) %new = unsqueeze(%t, @zero) "
       "%all = concat(%r, %new) {axis = 0} yield %go, %all } return %rows }"},
      {"the loop may end early",
       "func @main(%x: f32[L, 3], %children: i64[I], %stop: bool[I], %n: i64[]) -> (f32[*]) { "
       "%rows = loop(%n, _, %x) body(%i: i64[], %go: bool[], %r: f32[*]) { "
       "%pick = gather(%children, %i) %row = gather(%r, %pick) %t = tanh(%row) %new = unsqueeze(%t, @zero) "
       "%all = concat(%r, %new) {axis = 0} %more = gather(%stop, %i) yield %more, %all } return %rows }"},
  };
  for (const Kept& kept : cases) EXPECT_FALSE(is_batched(program(kept.function))) << kept.why;
}

// The state is changed where it lies, after all that reads it; the input that it begins with is not.
TEST(Replacements, ChangeAStateInPlace) {
  std::string text =
      "const @shape: i64[2] = {1, 1} "
      "func @main(%x: f32[4, 3], %n: i64[]) -> (f32[*], f32[*]) { "
      "%rows, %sums = loop(%n, _, %x) body(%i: i64[], %go: bool[], %r: f32[4, 3]) { "
      "%at = reshape(%i, @shape) %sum = reduce_sum(%r, @zero) {keepdims = 1} %all = scatter_nd(%r, %at, %sum) "
      "yield %go, %all, %sum } return %rows, %sums }";
  text = std::string(constants) + text;
  Draw draw(1);
  for (int64_t trips : {0, 1, 4}) expect_as_reference(text, {draw.rows(4), Tensor::scalar_i64(trips)});
  driver::Built built = driver::build(ir::parse(text, ops::op_set(), "test"), {});
  EXPECT_EQ(built.host_calls, 0u);
  EXPECT_EQ(count(built.executable->program, program::Opcode::replace), 1u);
  EXPECT_EQ(count(built.executable->program, program::Opcode::alternate), 0u);
}

// What is yielded twice, or read after it was replaced, is a copy.
TEST(Replacements, CopyWhatIsStillUsed) {
  std::string text =
      std::string(constants) +
      "const @shape: i64[2] = {1, 1} "
      "func @main(%x: f32[4, 3], %n: i64[]) -> (f32[*], f32[*]) { "
      "%rows, %before = loop(%n, _, %x, %x) body(%i: i64[], %go: bool[], %r: f32[4, 3], %s: f32[4, 3]) { "
      "%at = reshape(%i, @shape) %sum = reduce_sum(%s, @zero) {keepdims = 1} %all = scatter_nd(%r, %at, %sum) "
      "yield %go, %all, %r } return %rows, %before }";
  Draw draw(2);
  for (int64_t trips : {0, 1, 2, 4}) expect_as_reference(text, {draw.rows(4), Tensor::scalar_i64(trips)});
}

TEST(Replacements, OfTuplesAndOfNothing) {
  std::string text =
      "func @main(%x: f32[N, M, 3], %at: i64[K, 2], %v: f32[K, 3]) -> (f32[*]) { "
      "%y = scatter_nd(%x, %at, %v) return %y }";
  Draw draw(3);
  for (int64_t count : {0, 1, 3}) {
    std::vector<int64_t> at;
    for (int64_t i = 0; i < 2 * count; ++i) at.push_back(draw.below(4) - 2);
    expect_as_reference(text,
                        {draw.rows(4).reshaped({2, 2, 3}), Tensor::of_i64(at).reshaped({count, 2}), draw.rows(count)});
  }
  EXPECT_THROW(
      run(text,
          {draw.rows(4).reshaped({2, 2, 3}), Tensor::of_i64(std::vector<int64_t>{0, 2}).reshaped({1, 2}), draw.rows(1)},
          true),
      Error);
}

}  // namespace
}  // namespace selkie::tests
