// Properties of canonical expressions on random trees: value, text, substitution, ring laws.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sym/random_tree.h"

namespace selkie::sym {
namespace {

using namespace testing;

// Calls check(context, random) `count` times per seed; an expression beyond the size limits is skipped.
template <class Check>
void for_random(int count, Check check) {
  for (uint64_t seed : seeds()) {
    Random random(seed);
    int skipped = 0;
    for (int i = 0; i < count;) {
      Context context;
      for (int j = 0; j < 100; ++j, ++i) {
        try {
          check(context, random);
        } catch (const Error&) {
          ++skipped;
        }
      }
      ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    }
    EXPECT_LT(skipped, count / 100);
  }
}

std::string show(const Values& values) { return fmt::format("{}", fmt::join(values, ", ")); }

TEST(Property, SimplifiedValueIsDirectValue) {
  int compared = 0;
  for_random(60000, [&](Context& context, Random& random) {
    RawTree tree = random_tree(random, static_cast<int>(pick(random, 1, 7)));
    Expr e = build(context, tree);
    for (int i = 0; i < 3; ++i) {
      Values values = random_values(random);
      auto expected = evaluate(tree, values);
      if (!expected) continue;
      ++compared;
      EXPECT_EQ(evaluate(e, values), expected) << to_string(e) << " at " << show(values);
    }
  });
  fmt::print("{} values compared\n", compared);
  EXPECT_GT(compared, 200000);
}

TEST(Property, RangeContainsEveryValue) {
  for_random(20000, [](Context& context, Random& random) {
    Expr e = build(context, random_tree(random, static_cast<int>(pick(random, 1, 5))));
    Values values = random_values(random);
    auto value = evaluate(e, values);
    if (!value) return;
    EXPECT_LE(e.range().lo.value_or(*value), *value) << to_string(e) << " at " << show(values);
    EXPECT_GE(e.range().hi.value_or(*value), *value) << to_string(e) << " at " << show(values);
  });
}

TEST(Property, PrintedTextParsesToTheSameExpression) {
  for_random(20000, [](Context& context, Random& random) {
    Expr e = build(context, random_tree(random, static_cast<int>(pick(random, 0, 8))));
    EXPECT_EQ(parse(context, to_string(e)), e) << to_string(e);
  });
}

TEST(Property, TextDoesNotDependOnCreationOrder) {
  for_random(20000, [](Context& context, Random& random) {
    std::string text = to_string(build(context, random_tree(random, static_cast<int>(pick(random, 0, 6)))));
    Context other;
    for (size_t i = symbol_names.size(); i-- > 0;) other.symbol(symbol_names[i]);
    EXPECT_EQ(to_string(parse(other, text)), text);
  });
}

TEST(Property, SumsAndProductsAreARing) {
  for_random(20000, [](Context& context, Random& random) {
    auto next = [&] { return build(context, random_tree(random, static_cast<int>(pick(random, 0, 3)))); };
    Expr a = next();
    Expr b = next();
    Expr c = next();
    EXPECT_EQ((a + b) + c, a + (b + c));
    EXPECT_EQ((a * b) * c, a * (b * c));
    EXPECT_EQ(a * (b + c), a * b + a * c);
    EXPECT_EQ(a + b, b + a);
    EXPECT_EQ(a * b, b * a);
    EXPECT_EQ(min(a, b), min(b, a));
    EXPECT_EQ(a - a, context.constant(0));
  });
}

TEST(Property, SubstitutionCommutesWithEvaluation) {
  for_random(20000, [](Context& context, Random& random) {
    Expr e = build(context, random_tree(random, static_cast<int>(pick(random, 1, 5))));
    Expr n = context.symbol(symbol_names[0]);
    Expr replacement = context.symbol(symbol_names[1]) + pick(random, 0, 4);
    Expr result = substitute(e, [&](Expr s) { return s == n ? replacement : Expr(); });
    Values values = random_values(random);
    Values bound = values;
    bound[0] = *evaluate(replacement, values);
    auto expected = evaluate(e, bound);
    if (!expected) return;
    EXPECT_EQ(evaluate(result, values), expected) << to_string(e) << " at " << show(values);
  });
}

}  // namespace
}  // namespace selkie::sym
