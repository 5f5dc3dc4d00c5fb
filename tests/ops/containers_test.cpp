// What the analysis says about sequences, optionals and data values, held against runs: operands of samples tell it
// nothing about what such values hold, so these are whole modules.
#include <gtest/gtest.h>

#include "analysis/claims.h"
#include "base/convert.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

struct Checked {
  std::unique_ptr<ir::Module> module;
  std::unique_ptr<analysis::Rdp> rdp;

  // The type of the function's result i.
  std::string result(size_t i) const { return to_string(rdp->known(*module->main().body.yields[i]).type); }
};

// Runs a module of tensor parameters, whose elements are all 0, then all 1. Each claim must hold.
Checked check(std::string_view text, const std::vector<std::vector<Dims>>& inputs) {
  Checked out{ir::parse(std::string(text), ops::op_set(), "test"), nullptr};
  ir::verify(*out.module);
  out.rdp = std::make_unique<analysis::Rdp>(*out.module);
  for (const std::vector<Dims>& shapes : inputs)
    for (double element : {0, 1}) {
      std::vector<HostValue> values;
      for (size_t i = 0; i < shapes.size(); ++i) {
        std::vector<double> elements(static_cast<size_t>(element_count(shapes[i])), element);
        values.emplace_back(narrow<double>(elements, out.module->main().body.parameters[i]->type.dtype, shapes[i]));
      }
      analysis::ClaimChecker claims(*out.rdp);
      interp::Options options;
      options.observer = [&](const ir::Node& node, auto results) { claims.results(node, results); };
      options.on_enter = [&](const ir::Region& region, auto arguments) { claims.enter(region, arguments); };
      options.on_leave = [&](const ir::Region& region) { claims.leave(region); };
      interp::run(*out.module, values, options);
      EXPECT_EQ(claims.refusal(), "");
      for (const std::string& violation : claims.violations()) ADD_FAILURE() << violation;
    }
  return out;
}

TEST(Containers, ItemsThatAgreeKeepTheirDims) {
  Checked c = check(
      "func @main(%a: f32[N, 2], %i: i64[]) -> (?, ?) { %b = neg(%a) %s = sequence_construct(%a, %b) "
      "%t = sequence_insert(%s, %b) %u = sequence_erase(%t) %x = sequence_at(%u, %i) %n = sequence_length(%u) "
      "return %x, %n }",
      {{{3, 2}, {}}, {{0, 2}, {}}});
  EXPECT_EQ(c.result(0), "f32[N, 2]");
  EXPECT_EQ(c.result(1), "i64[]");
}

TEST(Containers, ItemsThatDifferHaveNoDims) {
  Checked c = check(
      "func @main(%a: f32[N], %b: f32[M], %i: i64[]) -> (?) { %s = sequence_construct(%a, %b) "
      "%x = sequence_at(%s, %i) return %x }",
      {{{3}, {2}, {}}, {{1}, {1}, {}}});
  EXPECT_EQ(c.result(0), "f32[*]");
}

TEST(Containers, PartsAreJoinedAgain) {
  Checked c = check(
      "func @main(%a: f32[N, 3]) -> (?, ?) { %s = split_to_sequence(%a) {axis = 1} "
      "%x = concat_from_sequence(%s) {axis = 0} %t = split_to_sequence(%a) {axis = 1, keepdims = 0} "
      "%y = concat_from_sequence(%t) {axis = -1, new_axis = 1} return %x, %y }",
      {{{2, 3}}, {{0, 3}}, {{1, 3}}});
  EXPECT_TRUE(c.result(0).ends_with(", 1]")) << c.result(0);
  EXPECT_TRUE(c.result(1).starts_with("f32[N, ")) << c.result(1);
}

TEST(Containers, AMapOfItemsHoldsForEach) {
  Checked c = check(
      "func @main(%a: f32[N], %b: f32[N], %i: i64[]) -> (?, ?) { %s = sequence_construct(%a, %b) "
      "%m, %z = sequence_map(%s, %b) body(%x: f32[*], %y: f32[*]) { %v = concat(%x, %y) {axis = 0} "
      "%w = non_zero(%x) yield %v, %w } %p = sequence_at(%m, %i) %q = sequence_at(%z, %i) return %p, %q }",
      {{{3}, {3}, {}}, {{0}, {0}, {}}});
  EXPECT_EQ(c.result(0), "f32[2*N]");
  EXPECT_EQ(c.result(1), "i64[*]");  // how many are not zero differs from item to item
}

TEST(Containers, ALoopThatGrowsItemsForgetsTheirDims) {
  Checked c = check(
      "func @main(%a: f32[N], %n: i64[], %i: i64[]) -> (?) { %s = sequence_construct(%a) "
      "%r, %e = loop(%n, _, %s, %a) body(%k: i64[], %c: bool[], %t: ?, %x: f32[*]) { "
      "%y = concat(%x, %x) {axis = 0} %u = sequence_insert(%t, %y) yield %c, %u, %y } "
      "%p = sequence_at(%r, %i) return %p }",
      {{{3}, {}, {}}});
  EXPECT_EQ(c.result(0), "f32[*]");
}

TEST(Containers, OptionalsAreFollowedThroughBranches) {
  Checked c = check(
      "func @main(%a: f32[N], %c: bool[]) -> (?, ?) { %o = if(%c) then() { %p = optional(%a) yield %p } "
      "else() { %q = neg(%a) %r = optional(%q) yield %r } %x = optional_get_element(%o) "
      "%h = optional_has_element(%a) return %x, %h }",
      {{{3}, {}}, {{0}, {}}});
  EXPECT_EQ(c.result(0), "f32[N]");
  EXPECT_EQ(c.result(1), "bool[]");
  const ir::Known& has = c.rdp->known(*c.module->main().body.yields[1]);
  ASSERT_TRUE(has.contents);
  EXPECT_EQ(has.contents->elements.at(0).constant(), 1);
}

TEST(Containers, WhatIsFoundInsideABranchStaysThere) {
  Checked c = check(
      "func @main(%a: f32[N], %c: bool[], %i: i64[]) -> (?) { %o = if(%c) then() { %p = non_zero(%a) "
      "%s = sequence_construct(%p, %p) yield %s } else() { %q = non_zero(%a) %r = sequence_construct(%q, %q) yield %r "
      "} "
      "%x = sequence_at(%o, %i) return %x }",
      {{{3}, {}, {}}});
  EXPECT_EQ(c.result(0), "i64[*]");
}

TEST(Containers, FieldsOfATupleKeepTheirDims) {
  Checked c = check(
      "func @main(%a: f32[N, 2], %b: i64[3]) -> (?, ?) { %t = tuple(%a, %b) %u = tuple(%t, %b) "
      "%v = tuple_get(%u) {index = 0} %x = tuple_get(%v) {index = 0} %y = tuple_get(%u) {index = 1} return %x, %y }",
      {{{4, 2}, {3}}, {{0, 2}, {3}}});
  EXPECT_EQ(c.result(0), "f32[N, 2]");
  EXPECT_EQ(c.result(1), "i64[3]");
}

TEST(Containers, CasesOfAMatchAreJoined) {
  Checked c = check(
      "data T { Leaf(f32[*]), Node(f32[*], f32[*]) } "
      "func @main(%a: f32[2, N], %b: f32[2, M]) -> (?) { %t = construct(%a) {type = T, constructor = \"Leaf\"} "
      "%r = match(%t) {constructors = [\"Leaf\", \"Node\"]} case(%x: f32[*]) { %p = neg(%a) yield %p } "
      "case(%y: f32[*], %z: f32[*]) { %q = neg(%b) yield %q } return %r }",
      {{{2, 3}, {2, 5}}, {{2, 0}, {2, 1}}});
  EXPECT_TRUE(c.result(0).starts_with("f32[2, ")) << c.result(0);
}

}  // namespace
}  // namespace selkie::tests
