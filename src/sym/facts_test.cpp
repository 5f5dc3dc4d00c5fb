// Unit tests of facts: what follows, what contradicts, and how it is printed.
#include "sym/facts.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace selkie::sym {
namespace {

struct FactsTest : ::testing::Test {
  Context context;
  Facts facts{context};

  Expr e(std::string_view text) { return parse(context, text); }
  void know(std::string_view text) { EXPECT_TRUE(facts.add(text, "test")) << text; }
  std::string simple(std::string_view text) { return to_string(facts.simplify(e(text))); }
  Truth less_equal(std::string_view a, std::string_view b) { return facts.prove_less_equal(e(a), e(b)); }
  Truth equal(std::string_view a, std::string_view b) { return facts.prove_equal(e(a), e(b)); }
  std::string conflict(std::string_view text, std::string source) {
    try {
      facts.add(text, std::move(source));
    } catch (const Error& error) {
      return error.what();
    }
    return "no conflict";
  }
  void expect_conflict(std::string_view text, std::string_view other) {
    std::string message = conflict(text, "second source");
    EXPECT_NE(message.find("second source"), message.npos) << message;
    EXPECT_NE(message.find(other), message.npos) << message;
  }
};

TEST_F(FactsTest, NothingKnown) {
  EXPECT_EQ(less_equal("0", "N"), Truth::yes);
  EXPECT_EQ(less_equal("N", "2*N"), Truth::yes);
  EXPECT_EQ(less_equal("N + 1", "N"), Truth::no);
  EXPECT_EQ(less_equal("N", "M"), Truth::unknown);
  EXPECT_EQ(equal("N", "M"), Truth::unknown);
  EXPECT_EQ(equal("2*N", "2*M + 1"), Truth::no);
  EXPECT_EQ(equal("4*floordiv(N, 4) + mod(N, 4)", "N"), Truth::yes);
  EXPECT_EQ(facts.prove_divisible(e("6*N + 4"), 2), Truth::yes);
  EXPECT_EQ(facts.prove_divisible(e("6*N + 3"), 2), Truth::no);
  EXPECT_EQ(facts.prove_divisible(e("N"), 2), Truth::unknown);
}

TEST_F(FactsTest, EqualSymbolsHaveOneRepresentative) {
  Expr a = context.symbol("a");
  Expr b = context.symbol("b");
  Expr c = context.symbol("c");
  EXPECT_TRUE(facts.add_equal(c, b, "x"));
  EXPECT_TRUE(facts.add_equal(b, a, "x"));
  EXPECT_FALSE(facts.add_equal(c, a, "x"));
  EXPECT_EQ(facts.simplify(c), a);
  EXPECT_EQ(facts.simplify(b - c), context.constant(0));
  EXPECT_EQ(facts.prove_equal(b * 2, c + a), Truth::yes);
}

TEST_F(FactsTest, EqualitySolvesForASymbol) {
  know("N == 2*M");
  EXPECT_EQ(simple("N + 1"), "2*M + 1");
  EXPECT_EQ(simple("mod(N, 2)"), "0");
  know("a == b + 1");
  EXPECT_EQ(simple("a - b"), "1");
  EXPECT_EQ(less_equal("1", "a"), Truth::yes);
  know("M == 8");
  EXPECT_EQ(simple("N"), "16");
}

TEST_F(FactsTest, DefinitionsCarryOlderFacts) {
  know("N in 4..12");
  know("N % 4 == 0");
  know("N == 2*M");
  EXPECT_EQ(facts.range(e("M")), (Range{2, 6}));
  EXPECT_EQ(facts.prove_divisible(e("M"), 2), Truth::yes);
}

TEST_F(FactsTest, RangesPropagate) {
  know("N in 1..512, M == 2*N + 1");
  EXPECT_EQ(facts.range(e("M")), (Range{3, 1025}));
  EXPECT_EQ(facts.range(e("floordiv(N, 4)")), (Range{0, 128}));
  know("a <= N");
  EXPECT_EQ(facts.range(e("a")), (Range{0, 512}));
  know("floordiv(b, 4) == 3");
  EXPECT_EQ(facts.range(e("b")), (Range{12, 15}));
  know("2*c + 3 <= 10");
  EXPECT_EQ(facts.range(e("c")), (Range{0, 3}));
}

TEST_F(FactsTest, RangeSimplifiesAtoms) {
  know("N in 1..512");
  EXPECT_EQ(simple("min(N, 1024)"), "N");
  EXPECT_EQ(simple("max(N, 1)"), "N");
  EXPECT_EQ(simple("floordiv(N, 1024)"), "0");
  EXPECT_EQ(simple("mod(N, 513)"), "N");
  know("a <= b");
  EXPECT_EQ(simple("min(a, b) + max(a, b)"), "a + b");
  know("c == 4");
  EXPECT_EQ(simple("floordiv(N, c)*c"), "4*floordiv(N, 4)");
}

TEST_F(FactsTest, Divisibility) {
  know("H % 32 == 0");
  EXPECT_FALSE(facts.add("H % 8 == 0", "test"));
  EXPECT_EQ(simple("mod(H, 8)"), "0");
  EXPECT_EQ(simple("mod(3*H + 5, 8)"), "5");
  EXPECT_EQ(simple("4*floordiv(H, 4)"), "H");
  EXPECT_EQ(simple("4*N*floordiv(H, 4)"), "H*N");
  EXPECT_EQ(simple("floordiv(H + 3, 4)"), "floordiv(H, 4)");
  EXPECT_EQ(facts.prove_divisible(e("H*N + 64"), 32), Truth::yes);
  EXPECT_EQ(facts.prove_divisible(e("H + 2"), 4), Truth::no);
  EXPECT_EQ(facts.prove_equal(e("H"), e("5")), Truth::no);
  know("H % 3 == 0");
  EXPECT_EQ(facts.prove_divisible(e("H"), 96), Truth::yes);
  know("H >= 1");
  EXPECT_EQ(facts.range(e("H")).lo, 96);
  know("mod(a + b, 4) == 2");
  EXPECT_EQ(facts.prove_divisible(e("a + b"), 2), Truth::yes);
  EXPECT_EQ(facts.prove_divisible(e("a + b"), 4), Truth::no);
  EXPECT_EQ(facts.prove_divisible(e("5*a + b + 2"), 4), Truth::yes);
}

TEST_F(FactsTest, OrderChains) {
  know("a <= b, b < c, c <= d, d <= f");
  EXPECT_EQ(less_equal("a", "f"), Truth::yes);
  EXPECT_EQ(less_equal("a + 1", "d"), Truth::yes);
  EXPECT_EQ(less_equal("f", "a"), Truth::no);
  EXPECT_EQ(less_equal("2*a", "c + d"), Truth::yes);
  EXPECT_EQ(less_equal("f", "c"), Truth::unknown);
  EXPECT_EQ(equal("a", "c"), Truth::no);
}

TEST_F(FactsTest, OrderThroughAtoms) {
  EXPECT_EQ(less_equal("floordiv(N, 2)", "N"), Truth::yes);
  EXPECT_EQ(less_equal("floordiv(N, M)", "N"), Truth::yes);
  EXPECT_EQ(less_equal("M*floordiv(N, M)", "N"), Truth::yes);
  EXPECT_EQ(less_equal("mod(N, M) + 1", "M"), Truth::yes);
  EXPECT_EQ(less_equal("min(a, b)", "a"), Truth::yes);
  EXPECT_EQ(less_equal("min(a, b)", "a + b"), Truth::yes);
  EXPECT_EQ(less_equal("max(a, b)", "a + b"), Truth::yes);
  EXPECT_EQ(less_equal("a + b", "2*max(a, b)"), Truth::yes);
  EXPECT_EQ(less_equal("N", "4*ceildiv(N, 4)"), Truth::yes);
  know("H >= 1");
  EXPECT_EQ(less_equal("N", "N*H"), Truth::yes);
  know("M <= N");
  EXPECT_EQ(less_equal("0", "floordiv(N - M + 1, 2)"), Truth::yes);
  EXPECT_EQ(less_equal("H*M", "H*N"), Truth::yes);
}

TEST_F(FactsTest, ProductEquality) {
  know("N >= 1");
  Expr left[] = {e("N"), e("H"), e("4")};
  Expr right[] = {e("N"), e("K")};
  EXPECT_TRUE(facts.add_product_equal(left, right, "reshape"));
  EXPECT_EQ(simple("K"), "4*H");
  Expr a[] = {e("a"), e("b")};
  Expr c[] = {e("c"), e("d")};
  EXPECT_TRUE(facts.add_product_equal(a, c, "reshape"));
  EXPECT_EQ(equal("2*a*b + 1", "2*c*d + 1"), Truth::yes);
  EXPECT_EQ(equal("a*b*N", "c*d*N"), Truth::yes);
}

TEST_F(FactsTest, ProductKeepsAFactorThatMayBeZero) {
  Expr left[] = {e("N"), e("H")};
  Expr right[] = {e("N"), e("K")};
  EXPECT_TRUE(facts.add_product_equal(left, right, "reshape"));
  EXPECT_EQ(equal("H", "K"), Truth::unknown);
  EXPECT_EQ(equal("H*N", "K*N"), Truth::yes);
}

TEST_F(FactsTest, ContradictionsNameBothSources) {
  facts.add("N in 1..512, H % 32 == 0, a < b, b < c", "first source");
  expect_conflict("N >= 600", "first source");
  expect_conflict("N == 0", "first source");
  expect_conflict("mod(H, 8) == 1", "first source");
  expect_conflict("b <= a", "first source");
  expect_conflict("c <= a", "first source");
  expect_conflict("M < 0", "natural");
  expect_conflict("2*M == 7", "natural");
}

TEST_F(FactsTest, TextRoundTrip) {
  facts.add(
      "N in 1..512, H % 32 == 0, a <= b, c + 3 <= 2*a, K == 2*N, 'odd name' >= 7, M <= 9, mod(a + b, 4) == 2, "
      "p*q == r*s, 2*t == 3*u",
      "x");
  std::vector<std::string> texts = facts.to_strings();
  Facts again(context);
  for (const std::string& text : texts) EXPECT_TRUE(again.add(text, "y")) << text;
  std::vector<std::string> second = again.to_strings();
  EXPECT_EQ(texts, second);
  EXPECT_EQ(texts.size(), 10u);
}

TEST_F(FactsTest, BadTextSaysWhere) {
  EXPECT_NE(conflict("N in 1", "x").find("position 6"), std::string::npos) << conflict("N in 1", "x");
  EXPECT_THROW(facts.add("N", "x"), Error);
  EXPECT_THROW(facts.add("N in 5..2", "x"), Error);
  EXPECT_THROW(facts.add("N == 1 M", "x"), Error);
  EXPECT_THROW(facts.add_divisible(e("N"), 0, "x"), Error);
}

TEST_F(FactsTest, CopiesAreIndependent) {
  know("N in 1..512");
  Facts inner = facts;
  inner.add("N == 4", "branch");
  EXPECT_EQ(inner.range(e("N")), (Range{4, 4}));
  EXPECT_EQ(facts.range(e("N")), (Range{1, 512}));
}

TEST_F(FactsTest, SelfReferenceDoesNotLoop) {
  facts.add("a*b == min(a*b*c, d)", "x");
  facts.add("c == a*b + 1", "x");
  facts.add("floordiv(n, 2) == floordiv(m, 3)", "x");
  facts.add("m == floordiv(n, 2) + k", "x");
  facts.add("p*q == r*s, r == p*t, s == q*u + 1", "x");
  EXPECT_EQ(facts.prove_less_equal(e("a*b"), e("d")), Truth::yes);
  facts.simplify(e("p*q*r*s*a*b*floordiv(m, 3)*floordiv(n, 2)"));
}

TEST_F(FactsTest, DivergingBoundsDoNotOverflow) {
  for (std::string_view text : {"a % 5 == 3", "d >= a*b", "c >= 1", "a >= 2*b + 1", "b >= c + d", "3*b >= 4*a"}) {
    EXPECT_EQ(conflict(text, "x").find("64 bits"), std::string::npos) << text;
  }
  facts.simplify(e("a*b + c*d"));
  facts.range(e("a*b*c*d"));
}

TEST_F(FactsTest, AboutSomeExpressions) {
  for (std::string_view text :
       {"a <= b", "b == 2*c", "c in 1..9", "a % 4 == 0", "p*q == r*s", "d in 1..5", "f == d + 1"})
    know(text);
  auto about = [&](std::initializer_list<std::string_view> texts) {
    std::vector<Expr> expressions;
    for (std::string_view text : texts) expressions.push_back(e(text));
    return facts.about(expressions);
  };
  Facts of_a = about({"a + 1"});
  EXPECT_EQ(of_a.prove_less_equal(e("a"), e("18")), Truth::yes);
  EXPECT_EQ(of_a.prove_divisible(e("a"), 4), Truth::yes);
  EXPECT_EQ(to_string(about({"b"}).simplify(e("b"))), "2*c");
  EXPECT_EQ(of_a.prove_less_equal(e("d"), e("5")), Truth::unknown);
  // What is stated of a product counts where all of its factors are asked for.
  EXPECT_EQ(about({"p", "q", "r", "s"}).prove_equal(e("p*q"), e("r*s")), Truth::yes);
  EXPECT_EQ(about({"f"}).prove_less_equal(e("f"), e("6")), Truth::yes);
  // It goes on like the whole.
  of_a.add("c <= 2", "later");
  EXPECT_EQ(of_a.prove_less_equal(e("a"), e("4")), Truth::yes);
  EXPECT_THROW(of_a.add("a == 8", "conflict"), Error);
  EXPECT_EQ(facts.prove_less_equal(e("a"), e("4")), Truth::unknown);
}

TEST_F(FactsTest, ThousandsOfFacts) {
  std::vector<Expr> dims;
  for (int i = 0; i < 3000; ++i) dims.push_back(context.fresh("d"));
  for (size_t i = dims.size() - 1; i > 0; --i) {
    if (i % 3 == 0) facts.add_equal(dims[i], dims[i - 1] + 1, "eq");
    if (i % 3 == 1) facts.add_less_equal(dims[i - 1], dims[i], "le");
    if (i % 3 == 2) facts.add_range(dims[i], {.lo = 0, .hi = 10000}, "range");
  }
  EXPECT_EQ(facts.prove_less_equal(dims[3], dims[4]), Truth::yes);
  EXPECT_EQ(facts.prove_less_equal(dims[0], dims[2999]), Truth::unknown);
}

}  // namespace
}  // namespace selkie::sym
