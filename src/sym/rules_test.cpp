// The rule fuzzer: every row of every table is applied to random operands, and both sides are evaluated.
#include "sym/rules.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sym/random_tree.h"

namespace selkie::sym {
namespace {

using namespace testing;

constexpr int rounds = 15000;
constexpr int bindings_per_match = 6;
constexpr int wanted_matches = 100;

Expr random_expr(Context& context, Random& random, int operations) {
  return build(context, random_tree(random, static_cast<int>(pick(random, 0, operations))));
}

// Operands shaped so that every row has something to match.
std::pair<Expr, Expr> random_operands(Context& context, Random& random) {
  Expr p = random_expr(context, random, 2);
  Expr q = random_expr(context, random, 2);
  Expr r = random_expr(context, random, 1);
  Expr y = pick(random, 0, 1) ? context.constant(pick(random, -6, 12)) : random_expr(context, random, 1);
  Expr n = context.symbol(symbol_names[static_cast<size_t>(pick(random, 0, 3))]);
  int64_t g = pick(random, 1, 6);
  switch (pick(random, 0, 9)) {
    case 0:
      return {y * p + r, y};
    case 1:
      return {p - mod(p, y), y};
    case 2:
      return {floordiv(p, g) + q, y};
    case 3:
      return {n * p, n * y};
    case 4:
      return {g * p + r, g * y};
    case 5:
      return {g * p + mod(q, g), context.constant(g * pick(random, 1, 4))};
    case 6:
      return {mod(p, y * g) + r, y};
    case 7:
      return {floordiv(p, q), y};
    case 8:
      return {n, n + g};
    default:
      return {p, y};
  }
}

template <class Rules, class Try>
void fuzz(Rules rules, const char* table, Try attempt) {
  for (uint64_t seed : seeds()) {
    Random random(seed);
    std::vector<int> matches(rules.size());
    for (int round = 0; round < rounds; ++round) {
      Context context;
      try {
        for (size_t row = 0; row < rules.size(); ++row) matches[row] += attempt(context, random, rules[row]);
      } catch (const Error&) {  // Beyond the size limits, which is an answer too.
      }
      ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    }
    for (size_t row = 0; row < rules.size(); ++row) {
      EXPECT_GE(matches[row], wanted_matches) << table << ": the fuzzer hardly reaches " << rules[row].equation;
    }
  }
}

bool check_binary(Context& context, Random& random, const BinaryRule& rule, Op op) {
  auto [x, y] = random_operands(context, random);
  Expr result = rule.rewrite(x, y);
  if (!result) return false;
  for (int i = 0; i < bindings_per_match; ++i) {
    Values values = random_values(random);
    auto a = evaluate(x, values);
    auto b = evaluate(y, values);
    auto expected = a && b ? apply(op, *a, *b) : std::nullopt;
    if (!expected) continue;
    EXPECT_EQ(evaluate(result, values), expected)
        << rule.equation << "\nx = " << to_string(x) << "\ny = " << to_string(y) << "\nresult " << to_string(result)
        << "\nat " << values[0] << ", " << values[1] << ", " << values[2] << ", " << values[3];
  }
  return true;
}

bool check_lattice(Context& context, Random& random, const LatticeRule& rule) {
  std::vector<Expr> operands;
  int64_t count = pick(random, 1, 4);
  Expr n = context.symbol(symbol_names[static_cast<size_t>(pick(random, 0, 3))]);
  int64_t shape = pick(random, 0, 5);
  for (int64_t i = 0; i < count; ++i) {
    Expr e = random_expr(context, random, 2);
    operands.push_back(shape == 0 ? e * 3 : shape == 1 ? e * n : shape == 2 ? e + n : shape == 3 ? -e : e);
  }
  if (shape == 4) operands.push_back(max(operands[0], n));
  if (shape == 5) operands.push_back(min(operands[0], n));
  Kind kind = pick(random, 0, 1) ? Kind::min : Kind::max;
  Expr result = rule.rewrite(kind, operands);
  if (!result) return false;
  for (int i = 0; i < bindings_per_match; ++i) {
    Values values = random_values(random);
    std::optional<int64_t> expected = evaluate(operands[0], values);
    for (Expr operand : operands) {
      auto value = evaluate(operand, values);
      expected = expected && value ? apply(kind == Kind::min ? Op::min : Op::max, *expected, *value) : std::nullopt;
    }
    if (!expected) continue;
    EXPECT_EQ(evaluate(result, values), expected) << rule.equation << "\nresult " << to_string(result);
  }
  return true;
}

TEST(Rules, FloordivRowsHold) {
  fuzz(floordiv_rules(), "floordiv",
       [](Context& c, Random& r, const BinaryRule& rule) { return check_binary(c, r, rule, Op::floordiv); });
}

TEST(Rules, CeildivRowsHold) {
  fuzz(ceildiv_rules(), "ceildiv",
       [](Context& c, Random& r, const BinaryRule& rule) { return check_binary(c, r, rule, Op::ceildiv); });
}

TEST(Rules, ModRowsHold) {
  fuzz(mod_rules(), "mod",
       [](Context& c, Random& r, const BinaryRule& rule) { return check_binary(c, r, rule, Op::mod); });
}

TEST(Rules, MinMaxRowsHold) { fuzz(lattice_rules(), "min/max", check_lattice); }

}  // namespace
}  // namespace selkie::sym
