// The prover against all small bindings: products of symbols and symbolic divisors, where Z3 is of no use.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sym/random_facts.h"

namespace selkie::sym {
namespace {

using namespace testing;

constexpr int fact_sets = 700;
constexpr int64_t values_per_symbol = 6;
constexpr Shape everything{.products = true, .symbolic_divisors = true};

std::vector<Values> small_bindings() {
  std::vector<Values> result;
  Values values;
  for (int64_t i = 0; i < values_per_symbol * values_per_symbol * values_per_symbol * values_per_symbol; ++i) {
    int64_t rest = i;
    for (int64_t& value : values) {
      value = rest % values_per_symbol;
      rest /= values_per_symbol;
    }
    result.push_back(values);
  }
  return result;
}

// Keeps the bindings that satisfy the fact; where it is undefined, the facts say nothing.
void keep_models(std::vector<Values>& models, const Statement& fact) {
  std::erase_if(models, [&](const Values& values) { return holds(fact, values) != true; });
}

// States random facts; false if they contradict each other, which must then be so for every binding.
bool state(Facts& facts, Context& context, Random& random, std::vector<Values>& models) {
  int64_t count = pick(random, 0, 4);
  for (int64_t i = 0; i < count; ++i) {
    Statement fact = random_statement(random, 2, everything);
    keep_models(models, fact);
    try {
      add(facts, context, fact);
    } catch (const Error& error) {
      bool limit = std::string_view(error.what()).find("contradicts") == std::string_view::npos;
      EXPECT_TRUE(limit || models.empty()) << error.what();
      return false;
    }
  }
  return true;
}

TEST(Enumeration, NoDecisionHasACounterexample) {
  const std::vector<Values> all = small_bindings();
  int decided = 0;
  int simplified = 0;
  for (uint64_t seed : seeds()) {
    Random random(seed);
    for (int round = 0; round < fact_sets; ++round) {
      Context context;
      Facts facts(context);
      std::vector<Values> models = all;
      if (!state(facts, context, random, models)) continue;
      for (int i = 0; i < 6; ++i) {
        Statement goal = random_statement(random, 3, everything);
        Truth answer = prove(facts, context, goal);
        decided += answer != Truth::unknown;
        Expr before = build(context, goal.left);
        Expr after = facts.simplify(before);
        simplified += before != after;
        Range range = facts.range(before);
        for (const Values& values : models) {
          auto value = evaluate(goal.left, values);
          if (!value) continue;
          ASSERT_EQ(evaluate(after, values), value) << to_string(before) << " became " << to_string(after) << "\nfacts "
                                                    << fmt::format("{}", fmt::join(facts.to_strings(), ", "));
          ASSERT_TRUE(range.lo.value_or(*value) <= *value && *value <= range.hi.value_or(*value)) << to_string(before);
          auto truth = holds(goal, values);
          if (answer == Truth::unknown || !truth) continue;
          ASSERT_EQ(*truth, answer == Truth::yes)
              << to_string(before) << " seed " << seed << "\nfacts "
              << fmt::format("{} at {}", fmt::join(facts.to_strings(), ", "), fmt::join(values, ", "));
        }
      }
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
  }
  fmt::print("{} goals decided, {} expressions simplified by facts\n", decided, simplified);
  EXPECT_GT(decided, fact_sets);
}

}  // namespace
}  // namespace selkie::sym
