// Soundness of RDP: whatever it claims about a random program holds in every run of the program.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/checks.h"
#include "analysis/claims.h"
#include "generator.h"
#include "interp/interp.h"
#include "ir/print.h"

namespace selkie::tests {
namespace {

struct Totals {
  size_t programs = 0, runs = 0, facts = 0, refused = 0, excused = 0;
};

std::string describe(const RandomProgram& program, uint64_t seed) {
  return fmt::format("seed {}\n{}", seed, ir::print(*program.module));
}

// One run with claims held against it. A run that entry checks refuse must fail, unless the analysis made a check of
// its own: what it requires may follow from that.
// Whether the analysis requires something itself, in a region or in those inside it.
bool has_own_check(const analysis::Rdp& rdp, const ir::Region& region) {
  auto is_own = [](const analysis::Check& check) { return !check.why.empty(); };
  auto is_inside = [&](const auto& node) {
    return std::ranges::any_of(node->regions, [&](const auto& inner) { return has_own_check(rdp, *inner); });
  };
  return std::ranges::any_of(rdp.region(region).checks, is_own) || std::ranges::any_of(region.nodes, is_inside);
}

void check_run(const RandomProgram& program, const analysis::Rdp& rdp, std::vector<HostValue> inputs, Totals& totals,
               uint64_t seed) {
  std::string refusal;
  try {
    analysis::check_inputs(rdp, inputs);
  } catch (const Error& error) {
    refusal = error.what();
  }
  analysis::ClaimChecker claims(rdp);
  interp::Options options;
  options.limits.loop_trips = 12;
  options.memory_limit = 1 << 19;
  options.observer = [&](const ir::Node& node, auto results) { claims.results(node, results); };
  options.on_enter = [&](const ir::Region& region, auto arguments) { claims.enter(region, arguments); };
  options.on_leave = [&](const ir::Region& region) { claims.leave(region); };
  try {
    interp::run(*program.module, std::move(inputs), options);
  } catch (const Error&) {
    ++totals.refused;
    return;
  } catch (const std::bad_alloc&) {  // absurd sizes
    ++totals.refused;
    return;
  }
  bool own_check = has_own_check(rdp, program.module->main().body);
  if (!refusal.empty() && own_check) ++totals.excused;
  EXPECT_TRUE(refusal.empty() || own_check) << "refused a run that succeeds: " << refusal << "\n"
                                            << describe(program, seed);
  if (!refusal.empty() || !claims.refusal().empty()) return;
  ++totals.runs;
  totals.facts += claims.checked();
  for (const std::string& violation : claims.violations())
    ADD_FAILURE() << violation << "\n" << describe(program, seed);
}

void check_programs(uint64_t seed, int count, Totals& totals) {
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    uint64_t own = seed + static_cast<uint64_t>(i);
    RandomProgram program = random_program(own, 12 + i % 24);
    if (std::getenv("SELKIE_TRACE") != nullptr) fmt::print(stderr, "{}\n", describe(program, own));
    std::optional<analysis::Rdp> rdp;
    try {
      rdp.emplace(*program.module);
    } catch (const Error& error) {
      ADD_FAILURE() << "a program that runs was refused: " << error.what() << "\n" << describe(program, own);
      return;
    }
    ++totals.programs;
    std::mt19937_64 random(own);
    check_run(program, *rdp, program.inputs, totals, own);
    for (int run = 0; run < 6; ++run) check_run(program, *rdp, random_inputs(*program.module, random), totals, own);
  }
}

TEST(RandomPrograms, EveryClaimHolds) {
  int fixed = 1500;
  int fresh = 500;
  if (const char* given = std::getenv("SELKIE_PROGRAMS")) {  // a soak
    fixed = 0;
    fresh = std::atoi(given);
  }
  uint64_t seed = std::random_device{}();
  if (const char* given = std::getenv("SELKIE_SEED")) seed = std::strtoull(given, nullptr, 10);
  Totals totals;
  check_programs(1'000'000'000'000, fixed, totals);
  check_programs(seed, fresh, totals);
  fmt::print(
      "fixed seed and fresh seed {}: {} programs, {} runs, {} facts checked ({} inputs do not run, {} are refused by "
      "the analysis's own checks)\n",
      seed, totals.programs, totals.runs, totals.facts, totals.refused, totals.excused);
  EXPECT_LE(totals.excused, 5 + totals.runs / 500);
  if (fixed > 0) EXPECT_GE(totals.facts, size_t{100'000});
}

}  // namespace
}  // namespace selkie::tests
