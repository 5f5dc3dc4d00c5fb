// Pieces of text and the place that an error names.
#include "ir/text_reader.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/test_ops.h"

namespace selkie::ir {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string type_error(std::string_view text) {
  sym::Context symbols;
  return error_of([&] { TextReader(text, "f").type(symbols); });
}

std::string parse_error(std::string_view text) {
  return error_of([&] { parse(text, testing::test_ops(), "f"); });
}

TEST(TextReader, ErrorsNameLineAndColumn) {
  TextReader in("a\n  // comment\n   b c", "file.sk");
  in.expect("a");
  in.expect("b");
  EXPECT_EQ(error_of([&] { in.expect("d"); }), "file.sk:3:6: 'd' expected");
  EXPECT_EQ(parse_error("\n\n  what"), "f:3:3: 'data', 'const' or 'func' expected");
  EXPECT_EQ(parse_error("func @main(%x: f32[2]) -> () {\n  %y = zap(%x)\n}"), "f:2:11: unknown operator 'zap'");
  EXPECT_EQ(parse_error("func @main() -> () {\n  %y = neg(%q)\n}"), "f:2:14: value %q is not defined here");
  EXPECT_EQ(parse_error("func @main() -> () { return"), "f:1:28: '%' expected");
}

TEST(TextReader, WordsMatchAsWholes) {
  TextReader in("constant", "f");
  EXPECT_FALSE(in.accept("const"));
  EXPECT_TRUE(in.accept("constant"));
  EXPECT_TRUE(in.at_end());
}

TEST(TextReader, Strings) {
  EXPECT_EQ(TextReader(R"("a\"\\\n\x41")", "f").string(), "a\"\\\nA");
  EXPECT_EQ(error_of([] { TextReader("\"abc", "f").string(); }), "f:1:5: a string is not closed");
  EXPECT_EQ(error_of([] { TextReader(R"("\q")", "f").string(); }), "f:1:4: unknown escape in a string");
  EXPECT_EQ(error_of([] { TextReader(R"("\x4")", "f").string(); }), "f:1:4: two hexadecimal digits expected");
  EXPECT_EQ(error_of([] { TextReader("\"\\", "f").string(); }), "f:1:3: unknown escape in a string");
  for (std::string text : {"", "a b", "\"\\\n\x01\x1f", "\xff\x80", "é"})
    EXPECT_EQ(TextReader(quote(text), "f").string(), text);
}

TEST(TextReader, Numbers) {
  EXPECT_EQ(TextReader("-9223372036854775808", "f").integer(), INT64_MIN);
  EXPECT_NE(error_of([] { TextReader("9223372036854775808", "f").integer(); }).find("is not a 64-bit integer"),
            std::string::npos);
  EXPECT_NE(error_of([] { TextReader("1.5", "f").integer(); }).find("'1.5' is not a 64-bit integer"),
            std::string::npos);
  EXPECT_NE(error_of([] { TextReader("]", "f").number(); }).find("a number expected"), std::string::npos);
  for (float value : {0.0f, -0.0f, 1.0f, 0.1f, 1e-45f, 3.4e38f})
    EXPECT_EQ(std::strtof(spell_float(value).c_str(), nullptr), value);
}

TEST(TextReader, Types) {
  EXPECT_EQ(type_error("f32"), "f:1:4: '[' expected");
  EXPECT_EQ(type_error("f32[2"), "f:1:6: ',' expected");
  EXPECT_EQ(type_error("f32[-1]"), "f:1:7: a dimension is negative");
  EXPECT_EQ(type_error("seq f32[]"), "f:1:5: '<' expected");
  EXPECT_EQ(type_error("map<Tree, f32[]>"), "f:1:9: the key type of a map must be an element type");
  EXPECT_EQ(type_error("fn(f32[2])"), "f:1:11: '->' expected");
  EXPECT_EQ(type_error("7"), "f:1:1: a name expected");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "seq<";
  EXPECT_NE(type_error(deep).find("types are nested too deeply"), std::string::npos);
}

TEST(TextReader, Elements) {
  auto elements = [](std::string_view text, DType dtype, Dims dims) {
    return error_of([&] { TextReader(text, "f").elements(dtype, dims); });
  };
  EXPECT_NE(elements("{1, 2}", DType::i64, {3}).find("2 elements given for a shape of 3"), std::string::npos);
  EXPECT_NE(elements("{1, 2, 3}", DType::i64, {2}).find("more than the 2 elements"), std::string::npos);
  EXPECT_NE(elements("{1.5}", DType::i64, {1}).find("'1.5' is not an element of i64"), std::string::npos);
  EXPECT_NE(elements("{-1}", DType::u8, {1}).find("'-1' is not an element of u8"), std::string::npos);
  EXPECT_NE(elements("{maybe}", DType::boolean, {1}).find("'maybe' is not an element of bool"), std::string::npos);
  EXPECT_NE(elements("{1}", DType::c64, {1}).find("complex elements are written as hex"), std::string::npos);
  EXPECT_NE(elements("hex(\"0011\")", DType::f32, {1}).find("does not fit the shape"), std::string::npos);
  EXPECT_NE(elements("hex(\"zz\")", DType::u8, {1}).find("hexadecimal digits expected"), std::string::npos);
  EXPECT_EQ(elements("{}", DType::f32, {0}), "no error");
  EXPECT_EQ(elements("{true, false, 1}", DType::boolean, {3}), "no error");
}

TEST(Parser, RefusesWhatHasNoPlace) {
  EXPECT_NE(parse_error("data f32 { A() }").find("the type name 'f32' is taken"), std::string::npos);
  EXPECT_NE(parse_error("data A { X() } data A { Y() }").find("the type name 'A' is taken"), std::string::npos);
  EXPECT_NE(parse_error("const @a: i64[1] = {1} const @a: i64[1] = {1}").find("constant @a is defined twice"),
            std::string::npos);
  EXPECT_NE(parse_error("const @a: i64[N] = {1}").find("dimension N of i64[N] is not a number"), std::string::npos);
  EXPECT_NE(parse_error("const @a: seq<i64[1]> = {1}").find("has no fixed shape"), std::string::npos);
  EXPECT_NE(parse_error("func @f() -> () { return } func @f() -> () { return }").find("function @f is defined twice"),
            std::string::npos);
  EXPECT_NE(parse_error("func @f() -> () { any() {i = 1, i = 2} return }").find("attribute 'i' is given twice"),
            std::string::npos);
  EXPECT_NE(parse_error("func @f() -> () { any() {is = [1, 2.0]} return }").find("a list holds one kind of item"),
            std::string::npos);
  EXPECT_NE(parse_error("func @f() -> () { any() {f = 1.5.2} return }").find("'1.5.2' is not a number"),
            std::string::npos);
  EXPECT_NE(parse_error("func @f() -> (?) { return _ }").find("a value expected, not _"), std::string::npos);
  std::string deep = "func @f() -> () {";
  for (int i = 0; i < 200; ++i) deep += " nest() region() {";
  EXPECT_NE(parse_error(deep).find("regions are nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace selkie::ir
