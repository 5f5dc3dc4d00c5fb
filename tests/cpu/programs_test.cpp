// The CPU backend against the reference evaluator: random programs and every operator's samples, with kernels compiled
// and with kernels interpreted under bounds checks.
#include <gtest/gtest.h>

#include "../ops/sample.h"
#include "../rdp/generator.h"
#include "analysis/rdp.h"
#include "difference.h"
#include "driver/build.h"
#include "interp/interp.h"
#include "ir/print.h"
#include "ops/registry.h"
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

struct Totals {
  int runs = 0;
  int kernels = 0;
  int host_calls = 0;
};

void check_program(uint64_t seed, int nodes, bool check_kernels, Totals& totals) {
  RandomProgram reference = random_program(seed, nodes);
  std::shared_ptr<ir::Module> module = random_program(seed, nodes).module;
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, ir::print(*reference.module)));
  driver::Built built = driver::build(module, {.check_kernels = check_kernels});
  program::verify(built.executable->program);
  runtime::Context context(built.executable);
  analysis::Rdp rdp(*reference.module);
  totals.kernels += static_cast<int>(built.kernels);
  totals.host_calls += static_cast<int>(built.host_calls);
  std::mt19937_64 random(seed);
  for (int run = 0; run < 5; ++run) {
    std::vector<HostValue> inputs = run == 0 ? reference.inputs : random_inputs(*reference.module, random);
    interp::Options limits;
    limits.limits.loop_trips = 12;
    limits.memory_limit = 1 << 19;
    std::vector<HostValue> expected;
    try {
      expected = interp::run(*reference.module, inputs, limits);
    } catch (const std::exception&) {
      continue;
    }
    std::vector<HostValue> outputs;
    try {
      outputs = context.run(inputs);
    } catch (const Error& error) {
      EXPECT_TRUE(has_own_checks(rdp, reference.module->main().body)) << "a run that succeeds was refused: " << error.what();
      continue;
    }
    ++totals.runs;
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(difference(outputs[i], expected[i]), "") << "output " << i << " of run " << run;
  }
}

void check_programs(bool check_kernels) {
  int fixed = 150;
  int fresh = 20;
  uint64_t seed = std::random_device{}();
  if (const char* given = std::getenv("SELKIE_PROGRAMS")) {  // a soak
    fixed = 0;
    fresh = std::atoi(given);
  }
  if (const char* given = std::getenv("SELKIE_SEED")) seed = std::strtoull(given, nullptr, 10);
  Totals totals;
  for (auto [start, count] : {std::pair(uint64_t{2'000'000'000'000}, fixed), std::pair(seed, fresh)})
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i)
      check_program(start + static_cast<uint64_t>(i), 12 + i % 24, check_kernels, totals);
  fmt::print("fixed seed and fresh seed {}: {} runs agree, {} kernels, {} host calls\n", seed, totals.runs,
             totals.kernels, totals.host_calls);
  if (fixed > 0) EXPECT_GT(totals.kernels, 100);
}

TEST(CpuPrograms, InterpretedKernelsAgree) { check_programs(true); }
TEST(CpuPrograms, CompiledKernelsAgree) { check_programs(false); }

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
