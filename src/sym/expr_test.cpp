// Unit tests of canonical expressions, one table of examples per root operation.
#include "sym/expr.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace selkie::sym {
namespace {

struct ExprTest : ::testing::Test {
  Context context;

  std::string canonical(std::string_view text) { return to_string(parse(context, text)); }
  void expect_same(std::string_view a, std::string_view b) {
    EXPECT_EQ(parse(context, a), parse(context, b)) << canonical(a) << " and " << canonical(b);
  }
  std::string error(std::string_view text) {
    try {
      parse(context, text);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
};

TEST_F(ExprTest, ConstantsAndSymbols) {
  Expr null;
  EXPECT_FALSE(null);
  Expr four = context.constant(4);
  EXPECT_EQ(four.constant(), 4);
  EXPECT_TRUE(four.is_constant());
  EXPECT_EQ(four, context.constant(4));
  Expr n = context.symbol("N");
  EXPECT_TRUE(n.is_symbol());
  EXPECT_EQ(n.symbol_name(), "N");
  EXPECT_EQ(n, context.symbol("N"));
  EXPECT_EQ(n.constant(), std::nullopt);
  EXPECT_EQ(&n.context(), &context);
  EXPECT_THROW(context.symbol(""), Error);
}

TEST_F(ExprTest, FreshNamesAreNotTaken) {
  EXPECT_EQ(context.fresh("u").symbol_name(), "u");
  EXPECT_EQ(context.fresh("u").symbol_name(), "u_1");
  context.symbol("u_2");
  EXPECT_EQ(context.fresh("u").symbol_name(), "u_3");
}

TEST_F(ExprTest, Text) {
  EXPECT_EQ(canonical("3+N*2"), "2*N + 3");
  EXPECT_EQ(canonical("floordiv(1 + N, 2)"), "floordiv(N + 1, 2)");
  EXPECT_EQ(canonical("min(b, a, b)"), "min(a, b)");
  EXPECT_EQ(canonical("-N - -3"), "-N + 3");
  EXPECT_EQ(canonical("H*(N + 1)*H"), "H*H*N + H*H");
  EXPECT_EQ(canonical("H % 32"), "mod(H, 32)");
  EXPECT_EQ(canonical("min(N, 4)"), "min(N, 4)");
  EXPECT_EQ(canonical("-9223372036854775808"), "-9223372036854775808");
}

TEST_F(ExprTest, OddNamesAreQuoted) {
  for (std::string name :
       {"past_len + 1", "batch/2", "it's", "back\\slash", "min", "in", "two\nlines", "9lives", "größe"}) {
    Expr e = context.symbol(name) + 1;
    EXPECT_EQ(parse(context, to_string(e)), e) << to_string(e);
  }
  EXPECT_EQ(to_string(context.symbol("past_len + 1")), "'past_len + 1'");
  EXPECT_EQ(to_string(context.symbol("unk__12")), "unk__12");
}

TEST_F(ExprTest, BadTextSaysWhere) {
  EXPECT_NE(error("N + ").find("position 4"), std::string::npos) << error("N + ");
  EXPECT_NE(error("min(N, M").find("expected ')'"), std::string::npos);
  EXPECT_NE(error("floordiv(N)").find("two operands"), std::string::npos);
  EXPECT_NE(error("N M").find("unexpected text"), std::string::npos);
  EXPECT_NE(error("'N").find("closing quote"), std::string::npos);
  EXPECT_NE(error("9223372036854775808").find("64 bits"), std::string::npos);
  EXPECT_NE(error(std::string(1000, '(')).find("nesting"), std::string::npos);
  EXPECT_NE(error("").find("expected an expression"), std::string::npos);
}

TEST_F(ExprTest, FloordivRules) {
  expect_same("floordiv(4*N + 7, 4)", "N + 1 + floordiv(3, 4)");
  expect_same("floordiv(N*H + H*3 + 2, H)", "N + 3 + floordiv(2, H)");
  expect_same("floordiv((N + 1)*H, N + 1)", "H");
  expect_same("floordiv(floordiv(N, 4), 6)", "floordiv(N, 24)");
  expect_same("floordiv(floordiv(N + 1, 2) + 1, 2)", "floordiv(N + 3, 4)");
  expect_same("floordiv(4*N, 6)", "floordiv(2*N, 3)");
  expect_same("floordiv(N*a, N*b)", "floordiv(a, b)");
  expect_same("floordiv(mod(N, 8), 8)", "0");
  expect_same("floordiv(N - mod(N, 8), 8)", "floordiv(N, 8)");
  expect_same("-floordiv(-N, 2)", "ceildiv(N, 2)");
  expect_same("ceildiv(N, 2)", "floordiv(N + 1, 2)");
  expect_same("floordiv(N, -3)", "floordiv(-N, 3)");
  expect_same("floordiv(2*N + mod(M, 2), 4)", "floordiv(N, 2)");
}

TEST_F(ExprTest, ModRules) {
  expect_same("mod(4*N + 7, 4)", "3");
  expect_same("mod(mod(N, 12), 4)", "mod(N, 4)");
  expect_same("mod(N + mod(M, 8), 4)", "mod(N + M, 4)");
  expect_same("mod(N*H + 2, H)", "mod(2, H)");
  expect_same("mod(6*N, 9)", "3*mod(2*N, 3)");
  expect_same("mod(mod(N, 4), 9)", "mod(N, 4)");
  expect_same("mod(N*a, N*b)", "N*mod(a, b)");
  expect_same("mod(N, N + 1)", "N");
}

TEST_F(ExprTest, MinMaxRules) {
  expect_same("min(N, N + 3)", "N");
  expect_same("max(N, 0)", "N");
  expect_same("max(N, -1, 2, 1)", "max(N, 2)");
  expect_same("min(a, max(a, b))", "a");
  expect_same("max(a, min(a, b))", "a");
  expect_same("min(2*a, 2*b)", "2*min(a, b)");
  expect_same("min(-a, -b)", "-max(a, b)");
  expect_same("min(N*a, N*b)", "N*min(a, b)");
  expect_same("min(a + N + 1, b + N + 1)", "min(a, b) + N + 1");
  expect_same("min(min(a, b), c)", "min(c, min(b, a))");
}

TEST_F(ExprTest, SliceToTheEnd) {
  expect_same("min(N, 9223372036854775807)", "N");
  expect_same("max(N - 9223372036854775808, -1)", "-1");
  expect_same("max(min(N, 9223372036854775807), 0)", "N");
}

TEST_F(ExprTest, UndefinedStaysUndefinedOrGoes) {
  auto bound = [](std::string_view) { return std::optional<int64_t>(3); };
  EXPECT_EQ(evaluate(parse(context, "floordiv(N, 0)"), bound), std::nullopt);
  EXPECT_EQ(evaluate(parse(context, "mod(N, M - M)"), bound), std::nullopt);
  EXPECT_EQ(evaluate(parse(context, "N*M"), bound), 9);
  EXPECT_EQ(evaluate(parse(context, "N"), [](std::string_view) { return std::optional<int64_t>(); }), std::nullopt);
}

TEST_F(ExprTest, OverflowIsAnError) {
  Expr big = context.constant(std::numeric_limits<int64_t>::max());
  Expr least = context.constant(std::numeric_limits<int64_t>::min());
  Expr n = context.symbol("N");
  EXPECT_THROW(big + 1, Error);
  EXPECT_THROW(big * 2, Error);
  EXPECT_THROW(-least, Error);
  EXPECT_THROW(floordiv(least, -1), Error);
  EXPECT_EQ(mod(least, -1), context.constant(0));
  EXPECT_THROW(big * n + n, Error);
  EXPECT_EQ(evaluate(big * n, [](std::string_view) { return std::optional<int64_t>(2); }), std::nullopt);
  EXPECT_NO_THROW(mod(n + 5, big));
  EXPECT_NO_THROW(floordiv(n + 5, big));
}

TEST_F(ExprTest, SizeIsLimited) {
  Expr sum = context.constant(1);
  for (int i = 0; i < 80; ++i) sum = sum + context.fresh("s");
  EXPECT_THROW(sum * sum, Error);
  Expr power = context.symbol("N");
  EXPECT_THROW(for (int i = 0; i < 64; ++i) power = power * power, Error);
  Expr deep = context.symbol("N");
  EXPECT_THROW(for (int i = 0; i < 10000; ++i) deep = mod(deep * deep + i, context.symbol("M") + i) + floordiv(deep, 7),
               Error);
  Expr many = context.symbol("N");
  EXPECT_THROW(for (int i = 0; i < 10000; ++i) many = min(many, context.fresh("m")), Error);
}

TEST_F(ExprTest, SubstituteAndCollect) {
  Expr e = parse(context, "floordiv(N*M + b, 2) + max(N, c)");
  std::vector<Expr> symbols;
  collect_symbols(e, symbols);
  std::vector<std::string_view> names;
  for (Expr symbol : symbols) names.push_back(symbol.symbol_name());
  EXPECT_EQ(names.size(), 4u);
  collect_symbols(e, symbols);
  EXPECT_EQ(symbols.size(), 4u);
  Expr n = context.symbol("N");
  EXPECT_EQ(substitute(e, [&](Expr s) { return s == n ? context.constant(2) : Expr(); }),
            parse(context, "M + floordiv(b, 2) + max(c, 2)"));
}

TEST_F(ExprTest, Ranges) {
  EXPECT_EQ(parse(context, "N + 1").range(), (Range{1, {}}));
  EXPECT_EQ(parse(context, "mod(N, 8)").range(), (Range{0, 7}));
  EXPECT_EQ(parse(context, "3 - N").range(), (Range{{}, 3}));
  EXPECT_EQ(parse(context, "min(N, 8)").range(), (Range{0, 8}));
  EXPECT_EQ(parse(context, "floordiv(min(N, 8), 3)").range(), (Range{0, 2}));
}

TEST_F(ExprTest, IdsFollowCreation) {
  Expr a = context.symbol("z");
  Expr b = context.symbol("a");
  EXPECT_LT(a.id(), b.id());
  EXPECT_EQ(to_string(a + b), "a + z");
}

}  // namespace
}  // namespace selkie::sym
