// The CPU backend against the reference evaluator: random programs and every operator's samples, with kernels compiled
// and with kernels interpreted under bounds checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "../ops/sample.h"
#include "../rdp/generator.h"
#include "analysis/rdp.h"
#include "difference.h"
#include "driver/build.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/registry.h"
#include "passes/pass.h"
#include "program/verify.h"

namespace selkie::tests {
namespace {

// What the analysis requires for its own sake may refuse a run that the reference evaluator completes, also by what
// follows from it.
bool has_own_checks(const analysis::Rdp& rdp, const ir::Region& region) {
  for (const analysis::Check& check : rdp.region(region).checks)
    if (!check.why.empty()) return true;
  for (const auto& node : region.nodes)
    for (const auto& inner : node->regions)
      if (has_own_checks(rdp, *inner)) return true;
  return false;
}

std::string difference_of_all(const std::vector<HostValue>& actual, const std::vector<HostValue>& expected) {
  if (actual.size() != expected.size()) return "another number of outputs";
  for (size_t i = 0; i < actual.size(); ++i)
    if (std::string text = difference(actual[i], expected[i]); !text.empty())
      return fmt::format("output {}: {}", i, text);
  return {};
}

// Where sums overflow they do so in one order and not in another, and to either side.
bool has_overflown(const HostValue& value) {
  if (value.is_sequence()) return std::ranges::any_of(value.sequence(), has_overflown);
  if (!value.is_tensor() || !is_float(value.tensor().dtype())) return false;
  return std::ranges::any_of(widen<double>(value.tensor()), [](double v) { return std::fabs(v) > 1e30; });
}

// What a loop stacks in no trips has dims that are told by what a trip would require.
bool are_empty(const HostValue& a, const HostValue& b) {
  return a.is_tensor() && b.is_tensor() && a.tensor().dtype() == b.tensor().dtype() &&
         a.tensor().dims().size() == b.tensor().dims().size() && element_count(a.tensor().dims()) == 0 &&
         element_count(b.tensor().dims()) == 0;
}

bool may_differ(const std::vector<HostValue>& actual, const std::vector<HostValue>& expected) {
  if (std::ranges::any_of(expected, has_overflown)) return true;
  return std::ranges::equal(actual, expected, [](const HostValue& a, const HostValue& b) {
    return are_empty(a, b) || difference(a, b).empty();
  });
}

struct Totals {
  int programs = 0;
  int runs = 0;
  int unsure = 0;   // of these, with more than one right answer, and not the reference's
  int decided = 0;  // of these, as the program is after the passes only
  int refused = 0;  // by what the analysis requires for its own sake, or as the program is after the passes
  int kernels = 0;
  int host_calls = 0;
};

bool fails(const ir::Module& module, const std::vector<HostValue>& inputs, const interp::Options& limits) {
  try {
    interp::run(module, inputs, limits);
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

// A run that fails in the reference evaluator fails here, too, unless what fails is not used; it writes nowhere else.
void run_what_fails(runtime::Context& context, const std::vector<HostValue>& inputs) {
  try {
    context.run(inputs);
  } catch (const std::exception&) {  // as it should
  }
}

void check_program(uint64_t seed, int nodes, int runs, Mix mix, bool check_kernels, Totals& totals) {
  RandomProgram reference = random_program(seed, nodes, mix);
  std::shared_ptr<ir::Module> module = random_program(seed, nodes, mix).module;
  std::string text = fmt::format("seed {}\n{}", seed, ir::print(*reference.module));
  SCOPED_TRACE(text);
  if (std::getenv("SELKIE_SHOW_PROGRAMS") != nullptr) fmt::print(stderr, "{}\n", text);  // to find one that aborts
  interp::Options limits{.limits = {.loop_trips = 12}, .memory_limit = 1 << 19};
  driver::Built built = driver::build(
      module,
      {.host = {.limits = limits.limits, .memory_limit = 8 * limits.memory_limit}, .check_kernels = check_kernels});
  EXPECT_NO_THROW(program::verify(built.executable->program, built.executable->functions))
      << program::disassemble(built.executable->program);
  runtime::Context context(built.executable);
  analysis::Rdp rdp(*reference.module);
  ++totals.programs;
  totals.kernels += static_cast<int>(built.kernels);
  totals.host_calls += static_cast<int>(built.host_calls);
  std::mt19937_64 random(seed);
  for (int run = 0; run < runs; ++run) {
    std::vector<HostValue> inputs = run == 0 ? reference.inputs : random_inputs(*reference.module, random);
    std::vector<HostValue> expected;
    try {
      expected = interp::run(*reference.module, inputs, limits);
    } catch (const std::exception&) {
      run_what_fails(context, inputs);
      continue;
    }
    std::vector<HostValue> outputs;
    try {
      outputs = context.run(inputs);
    } catch (const Error& error) {
      bool is_excused = has_own_checks(rdp, reference.module->main().body) || fails(*module, inputs, limits);
      EXPECT_TRUE(is_excused) << "a run that succeeds was refused: " << error.what();
      ++totals.refused;
      continue;
    }
    ++totals.runs;
    std::string found = difference_of_all(outputs, expected);
    if (found.empty()) continue;
    if (may_differ(outputs, expected)) {
      ++totals.unsure;
      continue;
    }
    // Where a loop has no trips, the shapes of its outputs are those that its body would give; facts that hold in every
    // trip have decided arms there. So it is after the passes, too.
    ++totals.decided;
    try {
      found = difference_of_all(outputs, interp::run(*module, inputs, limits));
    } catch (const std::exception& error) {
      found += fmt::format(" ({})", error.what());
    }
    EXPECT_EQ(found, "") << "in run " << run;
  }
}

struct Counts {
  int fixed;  // programs that are the same each time,
  int fresh;  // and others
  int nodes;  // that a program has at least
  int runs;   // of each
};

void check_programs(Mix mix, bool check_kernels, Counts counts) {
  uint64_t seed = std::random_device{}();
  if (const char* given = std::getenv("SELKIE_PROGRAMS")) {  // a soak
    counts.fixed = 0;
    counts.fresh = std::atoi(given);
  }
  if (const char* given = std::getenv("SELKIE_SEED")) seed = std::strtoull(given, nullptr, 10);
  fmt::print("fresh seed {}\n", seed);
  std::fflush(stdout);  // a program that aborts must not take it along
  Totals totals;
  for (auto [start, count] : {std::pair(uint64_t{2'000'000'000'000}, counts.fixed), std::pair(seed, counts.fresh)})
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i)
      check_program(start + static_cast<uint64_t>(i), counts.nodes + i % counts.nodes, counts.runs, mix, check_kernels,
                    totals);
  fmt::print(
      "{} programs, {} runs agree ({} after the passes, {} of more than one answer), {} refused, {} kernels, {} host "
      "calls\n",
      totals.programs, totals.runs, totals.decided, totals.unsure, totals.refused, totals.kernels, totals.host_calls);
  EXPECT_LE(totals.unsure, 5 + totals.runs / 1000);
  EXPECT_LE(totals.refused, 5 + totals.runs / 1000);
  if (counts.fixed > 0) EXPECT_GT(totals.kernels, 100);
}

TEST(CpuPrograms, InterpretedKernelsAgree) {
  check_programs(Mix::everything, true, {.fixed = 150, .fresh = 20, .nodes = 12, .runs = 5});
}
TEST(CpuPrograms, CompiledKernelsAgree) {
  check_programs(Mix::everything, false, {.fixed = 150, .fresh = 20, .nodes = 12, .runs = 5});
}
// With sanitizers a program takes twenty times as long: a tenth of them there, all of them without.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr int share = 10;
#else
constexpr int share = 1;
#endif
#else
constexpr int share = 1;
#endif

// Kernels are compiled for a few only, which takes most of the time.
TEST(CpuPrograms, NestedRegionsAgree) {
  check_programs(Mix::regions, true, {.fixed = 4000 / share, .fresh = 1000 / share, .nodes = 9, .runs = 3});
}
TEST(CpuPrograms, NestedRegionsAgreeCompiled) {
  check_programs(Mix::regions, false, {.fixed = 100, .fresh = 20, .nodes = 12, .runs = 5});
}

// The programs that are compared have something for every pass over regions to do.
TEST(CpuPrograms, PassesOverRegionsFire) {
  for (std::string_view name : {"merge_arms", "sink_into_arms", "hoist_invariants", "split_loops", "unroll_loops"}) {
    int fired = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      RandomProgram program = random_program(2'000'000'000'000 + i, 9 + static_cast<int>(i % 9), Mix::regions);
      fired += passes::run_pass(*passes::find_pass(name), *program.module) ? 1 : 0;
    }
    fmt::print("{} changes {} of 200 programs\n", name, fired);
    EXPECT_GT(fired, 0) << name;
  }
}

// What the passes are shown on is compiled, too, and runs at sizes of 0, 1 and others.
TEST(CpuPrograms, ExamplesOfPassesAgree) {
  int agree = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SELKIE_SOURCE_DIR "/tests/golden")) {
    std::ifstream in(entry.path());
    std::string text{std::istreambuf_iterator<char>(in), {}};
    size_t split = text.find("// expect:");
    if (!text.starts_with("// passes:") || split == std::string::npos) continue;
    text.resize(split);
    SCOPED_TRACE(entry.path().stem().string());
    std::unique_ptr<ir::Module> reference = ir::parse(text, ops::op_set());
    bool deterministic = true;
    ir::for_each_node(reference->main().body, [&](const ir::Node& node, ir::Region&) {
      deterministic = deterministic && node.op->deterministic;
    });
    if (!deterministic) continue;
    driver::Built built = driver::build(ir::parse(text, ops::op_set()), {});
    runtime::Context context(built.executable);
    std::mt19937_64 random(1);
    for (int run = 0; run < 20; ++run) {
      std::vector<HostValue> inputs, expected;
      try {
        inputs = random_inputs(*reference, random);
        expected = interp::run(*reference, inputs);
      } catch (const Error&) {
        continue;
      }
      EXPECT_EQ(difference_of_all(context.run(inputs), expected), "");
      ++agree;
    }
  }
  fmt::print("{} runs agree\n", agree);
  EXPECT_GT(agree, 300);
}

TEST(CpuOperators, SamplesAgree) {
  int kernels = 0;
  for (const ir::OpDef* op : ops::op_set().all()) {
    if (!op->deterministic || !op->eval) continue;
    for (const ir::Sample& s : op->samples) {
      ParsedSample sample = parse_sample(*op, s);
      if (!sample.good()) continue;
      SCOPED_TRACE(fmt::format("{} {}", op->name, s.call));
      std::vector<HostValue> inputs = sample.inputs(1);
      std::vector<HostValue> expected = interp::run(*sample.module(), inputs);
      std::shared_ptr<ir::Module> module = sample.module();
      type_parameters(*module, inputs);
      driver::Built built = driver::build(module, {});
      kernels += static_cast<int>(built.kernels);
      std::vector<HostValue> outputs = runtime::Context(built.executable).run(inputs);
      ASSERT_EQ(outputs.size(), expected.size());
      for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(difference(outputs[i], expected[i]), "") << "output " << i;
    }
  }
  EXPECT_GT(kernels, 50);
}

}  // namespace
}  // namespace selkie::tests
