// Control flow as instructions. A file tests/cpu/flow/NAME.sk holds a module and, after `// expect:`, its program;
// SELKIE_UPDATE=1 rewrites expectations. Then what programs do: limits, memory, files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/convert.h"
#include "difference.h"
#include "driver/artifact.h"
#include "driver/build.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "program/verify.h"

namespace selkie::tests {
namespace {

namespace fs = std::filesystem;
using program::Opcode;
constexpr std::string_view marker = "// expect:\n";
constexpr std::string_view folder = SELKIE_SOURCE_DIR "/tests/cpu/flow";

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string file_text(const std::string& name) {
  std::ifstream in(fs::path(folder) / (name + ".sk"));
  std::stringstream buffer;
  buffer << in.rdbuf();
  return buffer.str();
}

std::string text_of(const std::string& name) {
  std::string text = file_text(name);
  return text.substr(0, text.find(marker));
}

driver::Built build(const std::string& text, const driver::Options& options = {}) {
  driver::Built built = driver::build(ir::parse(text, ops::op_set(), "test"), options);
  program::verify(built.executable->program, built.executable->functions);
  return built;
}

class Disassembled : public testing::TestWithParam<std::string> {};

TEST_P(Disassembled, AsExpected) {
  std::string text = file_text(GetParam());
  size_t split = std::min(text.find(marker), text.size());
  driver::Built built = build(text.substr(0, split));
  std::string actual = program::disassemble(built.executable->program, built.executable->functions);
  if (std::getenv("SELKIE_UPDATE") != nullptr) {
    std::ofstream(fs::path(folder) / (GetParam() + ".sk")) << text.substr(0, split) << marker << actual;
    return;
  }
  ASSERT_LT(split, text.size()) << "no '// expect:' line";
  EXPECT_EQ(actual, text.substr(split + marker.size()));
}

INSTANTIATE_TEST_SUITE_P(All, Disassembled, testing::ValuesIn(files()), [](const auto& test) { return test.param; });

Tensor f32(Dims dims, std::vector<double> values) { return narrow<double>(values, DType::f32, dims); }

void expect_as_reference(const driver::Built& built, const std::string& text, const std::vector<HostValue>& inputs) {
  std::vector<HostValue> expected = interp::run(*ir::parse(text, ops::op_set(), "test"), inputs);
  std::vector<HostValue> actual = runtime::Context(built.executable).run(inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_EQ(difference(actual[i], expected[i]), "") << "output " << i;
}

std::string error_of(runtime::Context& context, const std::vector<HostValue>& inputs) {
  try {
    context.run(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Flow, NothingRunsOnTheHost) {
  for (const std::string& name : files()) {
    if (name == "map") continue;  // the ranks of its items are not known
    EXPECT_EQ(build(text_of(name)).host_calls, 0u) << name;
  }
}

TEST(Flow, AnyNumberOfTrips) {
  for (const char* name : {"loop", "loop_of_growing_state", "nested"}) {
    std::string text = text_of(name);
    driver::Built built = build(text);
    for (int64_t trips : {-1, 0, 1, 2, 3, 10}) {
      SCOPED_TRACE(fmt::format("{} {}", name, trips));
      bool is_matrix = std::string_view(name) == "loop";
      Tensor x = is_matrix ? f32({1, 4}, {0.5, -1, 2, 0}) : f32({2}, {0.25, -1});
      expect_as_reference(built, text, {x, Tensor::scalar_i64(trips)});
    }
  }
}

TEST(Flow, StatesThatSwapPlaces) {
  std::string text = text_of("loop_of_swapped_states");
  driver::Built built = build(text);
  for (int64_t trips : {0, 1, 2, 3, 4, 7})
    expect_as_reference(built, text, {f32({2}, {0.1, 0.2}), f32({2}, {-0.3, 0.4}), Tensor::scalar_i64(trips)});
}

TEST(Flow, SlicesOfAllAxes) {
  std::string text = text_of("scan");
  driver::Built built = build(text);
  for (int64_t steps : {0, 1, 3}) {
    std::vector<double> x(static_cast<size_t>(2 * steps));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) / 4 - 1;
    expect_as_reference(built, text, {f32({2}, {1, 2}), f32({steps, 2}, x), f32({2, steps}, x)});
  }
}

TEST(Flow, ItemsOfDifferentShapes) {
  std::string text = text_of("map");
  Sequence items{{f32({2}, {1, 2}), f32({0}, {}), f32({1}, {3})}};
  expect_as_reference(build(text), text, {items, f32({}, {10})});
  expect_as_reference(build(text), text, {Sequence{}, f32({}, {10})});
}

TEST(Flow, ConditionIsOneElement) {
  std::string text =
      "func @main(%c: bool[N], %x: f32[2]) -> (y: ?) { %y = if(%c) then() { yield %x } else() { %n = "
      "neg(%x) yield %n } return %y }";
  driver::Built built = build(text);
  runtime::Context context(built.executable);
  Tensor x = f32({2}, {1, 2});
  auto conditions = [](std::vector<int64_t> values) {
    Dims dims{static_cast<int64_t>(values.size())};
    return narrow<int64_t>(values, DType::boolean, dims);
  };
  EXPECT_EQ(difference(context.run(std::vector<HostValue>{conditions({0}), x})[0], f32({2}, {-1, -2})), "");
  EXPECT_NE(error_of(context, {conditions({1, 0}), x}).find("one element"), std::string::npos);
  EXPECT_EQ(difference(context.run(std::vector<HostValue>{conditions({1}), x})[0], x), "");
}

TEST(Flow, LimitsLeaveTheContextUsable) {
  std::string text = text_of("loop_of_unknown_trips");
  driver::Built built = build(text, {.host = {.limits = {.loop_trips = 10}}});
  runtime::Context context(built.executable);
  std::vector<HostValue> fine{f32({2}, {50, 1})};
  std::vector<HostValue> forever{f32({2}, {-1, 0})};
  std::vector<HostValue> expected = context.run(fine);
  EXPECT_NE(error_of(context, forever).find("the loop has run 10 trips, which is the limit"), std::string::npos);
  std::vector<HostValue> again = context.run(fine);
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(difference(again[i], expected[i]), "");
}

TEST(Flow, TimeIsLimited) {
  driver::Built built = build(text_of("loop_of_unknown_trips"), {.host = {.limits = {.seconds = 0.01}}});
  runtime::Context context(built.executable);
  EXPECT_NE(error_of(context, {f32({2}, {-1, 0})}).find("0.01 seconds, which is the limit"), std::string::npos);
  EXPECT_EQ(context.run(std::vector<HostValue>{f32({2}, {50, 1})}).size(), 2u);
}

// Both arms are never needed at once.
TEST(Flow, ArmsShareMemory) {
  auto arm = [](std::string_view name) {
    return fmt::format(
        "%{0}1 = softmax(%x) %{0}2 = transpose(%{0}1) %{0}3 = softmax(%{0}2) %{0}4 = transpose(%{0}3) "
        "%{0}5 = softmax(%{0}4) %{0}6 = reduce_sum(%{0}5) {{keepdims = 0}} yield %{0}6",
        name);
  };
  auto bytes = [&](std::string_view other) {
    driver::Built built = build(fmt::format(
        "func @main(%x: f32[64, 64], %c: bool[]) -> (y: ?) {{ %s = if(%c) then() {{ {} }} else() {{ {} }} %y = neg(%s) "
        "return %y }}",
        arm("a"), other));
    runtime::Context context(built.executable);
    context.run(std::vector<HostValue>{Tensor(DType::f32, {64, 64}), Tensor::scalar_bool(true)});
    return context.statistics().arena_bytes;
  };
  constexpr int64_t scalars = 256;
  EXPECT_LE(bytes(arm("b")), bytes("%z = reduce_sum(%x) {keepdims = 0} yield %z") + scalars);
}

// What only some trips need is not kept from one to the next.
TEST(Flow, LoopsKeepTwoPlacesPerState) {
  driver::Built built = build(text_of("loop"));
  runtime::Context context(built.executable);
  std::vector<double> zeros(4096 * 4);
  context.run(std::vector<HostValue>{f32({4096, 4}, zeros), Tensor::scalar_i64(5)});
  EXPECT_LE(context.statistics().arena_bytes, 2 * 4096 * 4 * 4 + 256);
}

// Operators inside regions travel with the file.
TEST(Flow, HostNodesInsideRegionsAreSaved) {
  std::string text =
      "func @main(%x: f32[N], %m: i64[], %c: bool[]) -> (y: ?) { %y = loop(%m, _, %x) body(%i: i64[], %g: bool[], %s: "
      "?) "
      "{ %t = if(%c) then() { %u, %p, %q, %r = unique(%s) yield %u } else() { %v = concat(%s, %x) {axis = 0} yield %v "
      "} "
      "yield %g, %t } return %y }";
  driver::Built built = build(text);
  EXPECT_EQ(built.host_calls, 1u);
  std::string path = testing::TempDir() + "flow_test.selkie";
  driver::save(built, path);
  driver::Built loaded = driver::load(path, {});
  for (bool condition : {false, true}) {
    std::vector<HostValue> inputs{f32({3}, {3, 1, 3}), Tensor::scalar_i64(3), Tensor::scalar_bool(condition)};
    expect_as_reference(built, text, inputs);
    expect_as_reference(loaded, text, inputs);
  }
}

// Functions are compiled where they are called, unless they may come to call themselves: those are programs of their
// own.
TEST(Flow, CallsAreInlinedOrHaveFrames) {
  std::string plain =
      "const @one: f32[] = {1} func @more(%a: f32[N]) -> (?) { %b = add(%a, @one) return %b } func @main(%x: f32[N, "
      "M]) -> "
      "(y: ?) { %u = call(%x) {callee = @more} %y = call(%u) {callee = @more} return %y }";
  driver::Built built = build(plain);
  EXPECT_EQ(built.host_calls, 0u);
  EXPECT_EQ(built.kernels, 1u);
  EXPECT_TRUE(built.executable->functions.empty());
  expect_as_reference(built, plain, {f32({1, 2}, {1, 2})});
  std::string recursive = text_of("recursion");
  built = build(recursive, {.host = {.limits = {.call_depth = 20}}});
  EXPECT_EQ(built.host_calls, 0u);
  ASSERT_EQ(built.executable->functions.size(), 1u);
  EXPECT_EQ(count(built.executable->functions[0], Opcode::product), 1u);
  Tensor x = f32({2, 3}, {1, 2, 3, -1, 0.5, 0});
  for (int64_t n : {0, 1, 2, 18}) expect_as_reference(built, recursive, {Tensor::scalar_i64(n), x});
  runtime::Context context(built.executable);
  EXPECT_NE(error_of(context, {Tensor::scalar_i64(30), x}).find("calls are nested 20 deep, which is the limit"),
            std::string::npos);
  EXPECT_EQ(context.run(std::vector<HostValue>{Tensor::scalar_i64(3), x}).size(), 1u);
}

// Far deeper than the thread's own stack would reach, and frames beyond some are not kept.
TEST(Flow, CallsDoNotNestOnTheStack) {
  driver::Built built = build(text_of("recursion"), {.host = {.limits = {.call_depth = 200'000}}});
  runtime::Context context(built.executable);
  Tensor x = f32({1, 3}, {0, 0, 0});
  for (int64_t n : {100'000, 3}) EXPECT_EQ(context.run(std::vector<HostValue>{Tensor::scalar_i64(n), x}).size(), 1u);
}

// Each frame has an arena of its own, so that what a caller made is there when the call comes back.
TEST(Flow, CallsInArmsAndLoopsOfEachOther) {
  std::string text =
      "const @none: i64[] = {0} const @one: i64[] = {1} const @two: i64[] = {2} const @half: f32[] = {0.5} "
      "func @even(%n: i64[], %x: f32[N]) -> (f32[N]) { %end = equal(%n, @none) %s = if(%end) then() { yield %x } "
      "else() { "
      "%a = exp(%x) %m = sub(%n, @one) %r = call(%m, %a) {callee = @odd} %b = mul(%r, %a) %t = add(%b, @half) yield %t "
      "} "
      "return %s } "
      "func @odd(%n: i64[], %x: f32[N]) -> (f32[N]) { %end = equal(%n, @none) %s = if(%end) then() { %z = neg(%x) "
      "yield %z } "
      "else() { %m = sub(%n, @one) %w = loop(@two, _, %x) body(%i: i64[], %g: bool[], %u: ?) { %v = sin(%u) %c = "
      "call(%m, %v) {callee = @even} %d = mul(%c, @half) %e = tanh(%d) yield %g, %e } yield %w } return %s } "
      "func @main(%n: i64[], %x: f32[N]) -> (y: ?, z: ?) { %y = call(%n, %x) {callee = @even} %z = call(%n, %y) "
      "{callee "
      "= @odd} return %y, %z }";
  driver::Built built = build(text);
  EXPECT_EQ(built.host_calls, 0u);
  EXPECT_EQ(built.executable->functions.size(), 2u);
  for (int64_t n : {0, 1, 2, 5})
    for (Tensor x : {f32({3}, {0.5, -1, 2}), f32({1}, {0.25}), f32({0}, {})})
      expect_as_reference(built, text, {Tensor::scalar_i64(n), x});
  std::string path = testing::TempDir() + "calls_test.selkie";
  driver::save(built, path);
  driver::Built loaded = driver::load(path, {});
  EXPECT_EQ(program::disassemble(loaded.executable->program, loaded.executable->functions),
            program::disassemble(built.executable->program, built.executable->functions));
  expect_as_reference(loaded, text, {Tensor::scalar_i64(3), f32({2}, {0.5, -1})});
}

// The analysis relies on what a function declares: a call does not come back with anything else.
TEST(Flow, CallsReturnWhatTheirFunctionsDeclare) {
  for (std::string_view result : {"f32[2]", "f32[N, N]", "f32[N, 2]"}) {
    std::string text = fmt::format(
        "const @none: i64[] = {{0}} const @one: i64[] = {{1}} func @f(%n: i64[], %x: f32[N]) -> ({}) {{ %end = "
        "equal(%n, "
        "@none) %s = if(%end) then() {{ %y = concat(%x, %x) {{axis = 0}} yield %y }} else() {{ %m = sub(%n, @one) %t = "
        "call(%m, %x) {{callee = @f}} %e = exp(%t) yield %e }} return %s }} func @main(%n: i64[], %x: f32[N]) -> (y: "
        "?) "
        "{{ %y = call(%n, %x) {{callee = @f}} %z = exp(%y) return %z }}",
        result);
    SCOPED_TRACE(text);
    driver::Built built = build(text);
    std::vector<HostValue> inputs{Tensor::scalar_i64(1), f32({3}, {1, 2, 3})};
    runtime::Context context(built.executable);
    EXPECT_EQ(built.executable->functions.size(), 1u);
    EXPECT_NE(error_of(context, inputs), "no error");
  }
}

// One that cannot be completed refuses only runs that call it.
TEST(Flow, FunctionsThatAlwaysFailMayBeLeftUncalled) {
  std::string text =
      "const @a: f32[2] = {1, 2} const @b: f32[3] = {1, 2, 3} func @f(%x: f32[N]) -> (f32[N]) { %c = add(@a, @b) %d = "
      "concat(%c, %x) {axis = 0} %y = call(%d) {callee = @f} return %y } func @main(%c: bool[], %x: f32[N]) -> (y: ?) "
      "{ %y = if(%c) then() { %r = "
      "call(%x) {callee = @f} yield %r } else() { %e = exp(%x) yield %e } return %y }";
  driver::Built built = build(text);
  EXPECT_TRUE(built.executable->functions.empty());
  Tensor x = f32({2}, {0.5, 1});
  expect_as_reference(built, text, {Tensor::scalar_bool(false), x});
  runtime::Context context(built.executable);
  EXPECT_NE(error_of(context, {Tensor::scalar_bool(true), x}), "no error");
}

// A function with an operator that has no kernel runs on the host with all that it calls, and so do those that call it.
TEST(Flow, RecursionWithoutKernelsRunsOnTheHost) {
  std::string text =
      "const @none: i64[] = {0} const @one: i64[] = {1} func @f(%n: i64[], %x: f32[N]) -> (?) { %end = equal(%n, "
      "@none) "
      "%s = if(%end) then() { yield %x } else() { %u, %p, %q, %r = unique(%x) %m = sub(%n, @one) %t = call(%m, %u) "
      "{callee = @f} yield %t } return %s } func @main(%n: i64[], %x: f32[N]) -> (y: ?) { %y = call(%n, %x) {callee = "
      "@f} return %y }";
  driver::Built built = build(text);
  EXPECT_EQ(built.host_calls, 1u);
  EXPECT_TRUE(built.executable->functions.empty());
  expect_as_reference(built, text, {Tensor::scalar_i64(2), f32({3}, {3, 1, 3})});
}

// Sequences that grow are not copied for each item, and have a limit.
TEST(Flow, SequencesGrowInPlace) {
  std::string text =
      "const @last: i64[] = {-1} func @main(%x: f32[N], %m: i64[]) -> (y: ?) { %q = sequence_empty() %r = loop(%m, _, "
      "%q) body(%i: i64[], %g: bool[], "
      "%s: ?) { %t = sequence_insert(%s, %x) yield %g, %t } %y = sequence_at(%r, @last) return %y }";
  driver::Built built = build(text, {.host = {.limits = {.sequence_items = 50}}});
  ASSERT_EQ(built.executable->program.insertions.size(), 1u);
  EXPECT_TRUE(built.executable->program.insertions[0].takes);
  expect_as_reference(built, text, {f32({1}, {2}), Tensor::scalar_i64(50)});
  runtime::Context context(built.executable);
  EXPECT_NE(error_of(context, {f32({1}, {2}), Tensor::scalar_i64(51)}).find("51 items, which is over the limit"),
            std::string::npos);
  EXPECT_EQ(context.run(std::vector<HostValue>{f32({1}, {2}), Tensor::scalar_i64(2)}).size(), 1u);
}

// Where a later node requires dims that only the run tells, the analysis takes them to be so. The run checks it: a
// kernel that relies on them would read beyond the end.
TEST(Flow, RequiredDimsOfHostResultsAreChecked) {
  for (std::string text : {"func @main(%x: f32[N], %w: f32[3, 2]) -> (y: ?) { %z, %i, %j, %k = unique(%x) %e = exp(%z) "
                           "%y = matmul(%e, %w) "
                           "return %y }",
                           "func @main(%x: f32[N], %w: f32[M, 2]) -> (y: ?) { %z, %i, %j, %k = unique(%x) %y = "
                           "matmul(%z, %w) return %y }"}) {
    driver::Built built = build(text);
    runtime::Context context(built.executable);
    Tensor w = f32({3, 2}, {1, 2, 3, 4, 5, 6});
    expect_as_reference(built, text, {f32({4}, {3, 1, 2, 3}), w});
    std::string error = error_of(context, {f32({4}, {1, 1, 1, 1}), w});
    EXPECT_NE(error.find("required by node '%y' (matmul)"), std::string::npos) << error;
  }
}

// What a body requires of a slice is checked before the slice is cut.
TEST(Flow, RequiredDimsOfSlicesAreChecked) {
  driver::Built built = build(R"(
func @main(%x: f32[A, B], %w: f32[1, 3], %s: f32[3]) -> (y: ?) {
  %y = scan(%s, %x) {num_scan_inputs = 1, scan_input_axes = [1]} body(%in: ?, %slice: ?) {
    %t = tanh(%slice)
    %m = matmul(%t, %w)
    %next = add(%in, %m)
    yield %next
  }
  return %y
})",
                              {.check_kernels = true});
  runtime::Context context(built.executable);
  std::vector<HostValue> inputs{f32({5, 1}, {1, 2, 3, 4, 5}), f32({1, 3}, {1, 2, 3}), f32({3}, {0, 0, 0})};
  std::string said = error_of(context, inputs);
  EXPECT_NE(said.find("but the sides are 5 and 1"), std::string::npos) << said;
  inputs[0] = f32({1, 2}, {0, 0});
  EXPECT_EQ(difference(context.run(inputs)[0], f32({3}, {0, 0, 0})), "");
}

// The rank that a later node requires is checked, too.
TEST(Flow, RequiredRanksAreChecked) {
  driver::Built built = build(R"(
func @main(%n: i64[], %x: f32[*]) -> (y: ?) {
  %all = loop(%n, _) body(%i: i64[], %go: bool[]) {
    yield %go, %x
  }
  %y = transpose(%all) {perm = [1, 0]}
  return %y
})");
  runtime::Context context(built.executable);
  Tensor twice = Tensor::scalar_i64(2);
  std::string said = error_of(context, {twice, f32({1, 2}, {1, 2})});
  EXPECT_NE(said.find("rank"), std::string::npos) << said;
  EXPECT_EQ(difference(context.run(std::vector<HostValue>{twice, f32({1}, {1})})[0], f32({1, 2}, {1, 1})), "");
}

// What the product requires is known of the result of the branch only, not inside its arms.
TEST(Flow, RequiredDimsOfBranchesAreChecked) {
  driver::Built built = build(R"(
func @main(%p: bool[], %x: f32[B], %y: f32[1], %w: f32[1, 3]) -> (z: ?) {
  %r = if(%p) then() {
    %a = relu(%x)
    yield %a
  } else() {
    %b = neg(%y)
    yield %b
  }
  %z = matmul(%r, %w)
  return %z
})",
                              {.check_kernels = true});
  runtime::Context context(built.executable);
  Tensor w = f32({1, 3}, {1, 2, 3});
  Tensor y = f32({1}, {2});
  Tensor yes = Tensor::scalar_bool(true);
  std::string said = error_of(context, {yes, f32({5}, {1, 2, 3, 4, 5}), y, w});
  EXPECT_NE(said.find("but the sides are 5 and 1"), std::string::npos) << said;
  EXPECT_EQ(difference(context.run(std::vector<HostValue>{yes, f32({1}, {2}), y, w})[0], f32({3}, {2, 4, 6})), "");
}

// The slices that a loop stacks, and a state that it begins with, are as large as they are, whatever follows.
TEST(Flow, RequiredDimsOfLoopsAreChecked) {
  driver::Built built = build(R"(
func @main(%n: i64[], %x: f32[B], %y: f32[1], %w: f32[1, 3]) -> (z: ?, v: ?) {
  %s, %all = loop(%n, _, %x) body(%i: i64[], %go: bool[], %in: ?) {
    %a = relu(%in)
    %b = neg(%y)
    yield %go, %b, %a
  }
  %z = matmul(%s, %w)
  %v = matmul(%all, %w)
  return %z, %v
})",
                              {.check_kernels = true});
  runtime::Context context(built.executable);
  Tensor w = f32({1, 3}, {1, 2, 3});
  Tensor y = f32({1}, {2});
  Tensor five = f32({5}, {1, 2, 3, 4, 5});
  for (int64_t n : {0, 1}) {
    std::string said = error_of(context, {Tensor::scalar_i64(n), five, y, w});
    EXPECT_NE(said.find("but the sides are 5 and 1"), std::string::npos) << said;
  }
  std::vector<HostValue> out = context.run(std::vector<HostValue>{Tensor::scalar_i64(1), f32({1}, {2}), y, w});
  EXPECT_EQ(difference(out[0], f32({3}, {-2, -4, -6})), "");
  EXPECT_EQ(difference(out[1], f32({1, 3}, {2, 4, 6})), "");
}

// A state whose last dim is B in the first trip and A in all others, although the product requires B in each. Only the
// check still names the trip.
TEST(Flow, RequiredDimsOfStatesThatChangeAreChecked) {
  std::string text = R"(
func @main(%w: f32[B, A], %x: f32[D, C, B]) -> (y: ?, all: ?) {
  %y, %all = scan(%x, %x) {num_scan_inputs = 1} body(%in: ?, %slice: ?) {
    %out = matmul(%in, %w)
    yield %out, %out
  }
  return %y, %all
})";
  driver::Built built = build(text, {.check_kernels = true});
  runtime::Context context(built.executable);
  auto zeros = [](Dims dims) { return Tensor(DType::f32, std::move(dims)); };
  expect_as_reference(built, text, {zeros({2, 8}), zeros({1, 4, 2})});
  expect_as_reference(built, text, {zeros({3, 3}), zeros({4, 2, 3})});
  std::string said = error_of(context, {zeros({2, 8}), zeros({2, 4, 2})});
  EXPECT_NE(said.find("but the sides are 8 and 2"), std::string::npos) << said;
}

// What both arms require is required of every run once it is computed before the branch; so is what the body of a loop
// of one trip requires. Before, only the checks of the model as it was given were made.
TEST(Flow, RequirementsThatPassesBringOutOfRegionsAreChecked) {
  for (std::string_view region :
       {"if(%p) then() { %a = reshape(%x, %s) %b = add(%a, %y) yield %b } else() { %c = reshape(%x, %s) %d = "
        "mul(%c, %y) yield %d }",
        "loop(@one, _, %y) body(%i: i64[], %go: bool[], %in: ?) { %a = reshape(%x, %s) %b = add(%a, %in) yield "
        "%go, %b }"}) {
    std::string text = fmt::format(
        "const @one: i64[] = {{1}} func @main(%p: bool[], %x: f32[A, B], %y: f32[C, D]) -> (z: ?) {{ %s = shape(%y) %r "
        "= {} %z = relu(%r) return %z }}",
        region);
    SCOPED_TRACE(text);
    driver::Built built = build(text, {.check_kernels = true});
    runtime::Context context(built.executable);
    Tensor yes = Tensor::scalar_bool(true);
    Tensor wide = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    expect_as_reference(built, text, {yes, wide, f32({3, 2}, {1, 1, 1, 1, 1, 1})});
    std::string said = error_of(context, {yes, f32({1, 2}, {1, 2}), wide});
    EXPECT_NE(said.find("reshape"), std::string::npos) << said;
  }
}

// Random numbers are others in every trip.
TEST(Flow, RandomNumbersDifferFromTripToTrip) {
  driver::Built built = build(
      "const @three: i64[] = {3} func @main(%x: f32[4]) -> (y: ?) { %y = loop(@three, _) body(%i: "
      "i64[], %g: bool[]) { %r = random_uniform_like(%x) yield %g, %r } return %y }");
  runtime::Context context(built.executable);
  std::vector<HostValue> inputs{f32({4}, {0, 0, 0, 0})};
  Tensor out = context.run(inputs)[0].tensor();
  std::span<const float> values = out.values<float>();
  EXPECT_NE(values[0], values[4]);
  EXPECT_NE(values[4], values[8]);
  // And from run to run they are the same ones.
  EXPECT_TRUE(std::ranges::equal(values, context.run(inputs)[0].tensor().values<float>()));
}

}  // namespace
}  // namespace selkie::tests
