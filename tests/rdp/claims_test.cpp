// The checker of claims must be able to find a false one, and entry checks must say what is wrong.
#include "analysis/claims.h"

#include <gtest/gtest.h>

#include "analysis/checks.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

Tensor zeros(Dims dims, DType dtype = DType::f32) { return Tensor(dtype, std::move(dims)); }

// The violations of a run of `text` under the analysis of `claimed`, a module of the same form.
std::vector<std::string> violations(std::string_view claimed, std::vector<HostValue> inputs) {
  auto module = ir::parse(claimed, ops::op_set());
  analysis::Rdp rdp(*module);
  for (const auto& p : module->main().body.parameters) p->type.dims.reset();  // so that the run takes what it is given
  module->main().facts = sym::Facts(module->symbols());
  analysis::ClaimChecker claims(rdp);
  interp::Options options;
  options.observer = [&](const ir::Node& node, auto results) { claims.results(node, results); };
  options.on_enter = [&](const ir::Region& region, auto arguments) { claims.enter(region, arguments); };
  options.on_leave = [&](const ir::Region& region) { claims.leave(region); };
  interp::run(*module, std::move(inputs), options);
  return claims.violations();
}

TEST(Claims, HoldWhereTheyAreTrue) {
  EXPECT_TRUE(violations("func @main(%x: f32[N, 3]) -> (f32[*]) { %y = relu(%x) return %y }", {zeros({2, 3})}).empty());
}

TEST(Claims, AFalseDimIsFound) {
  EXPECT_FALSE(
      violations("func @main(%x: f32[N, 3]) -> (f32[*]) { %y = relu(%x) return %y }", {zeros({2, 4})}).empty());
}

TEST(Claims, ADimThatDiffersBetweenInputsIsFound) {
  std::string_view text =
      "func @main(%x: f32[N], %y: f32[N]) -> (f32[*], f32[*]) { %a = relu(%x) %b = relu(%y) return %a, %b }";
  EXPECT_TRUE(violations(text, {zeros({2}), zeros({2})}).empty());
  EXPECT_FALSE(violations(text, {zeros({2}), zeros({3})}).empty());
}

TEST(Claims, AFalseRankIsFound) {
  EXPECT_FALSE(violations("func @main(%x: f32[N]) -> (f32[*]) { %y = relu(%x) return %y }", {zeros({2, 2})}).empty());
}

TEST(Claims, AFalseRangeIsFound) {
  EXPECT_FALSE(
      violations("func @main(%x: f32[N]) -> (f32[*]) where N in 1..4 { %y = relu(%x) return %y }", {zeros({9})})
          .empty());
}

TEST(Claims, FalseContentsAreFound) {
  EXPECT_FALSE(
      violations("func @main(%x: f32[N, 3]) -> (i64[*]) { %y = shape(%x) return %y }", {zeros({2, 5})}).empty());
}

TEST(Claims, AnArmThatIsNeverEnteredIsFound) {
  std::string_view text =
      "const @five: i64[1] = {5} func @main(%x: f32[N]) -> (f32[*]) where N in 1..4 { %s = shape(%x) "
      "%c = greater(%s, @five) %y = if(%c) then() { %a = neg(%x) yield %a } else() { %b = relu(%x) yield %b } return "
      "%y }";
  EXPECT_TRUE(violations(text, {zeros({3})}).empty());
  EXPECT_FALSE(violations(text, {zeros({8})}).empty());
}

std::string refusal(std::string_view text, std::vector<HostValue> inputs) {
  auto module = ir::parse(text, ops::op_set());
  analysis::Rdp rdp(*module);
  try {
    analysis::check_inputs(rdp, inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr std::string_view masked =
    "func @main(%ids: f32[B, S], %mask: f32[B, T]) -> (f32[*]) where S in 2..512, T in 2..512 "
    "{ %y = add(%ids, %mask) from \"Add_37\" return %y }";

TEST(EntryChecks, NameInputsAndNode) {
  EXPECT_EQ(refusal(masked, {zeros({1, 12}), zeros({1, 12})}), "");
  EXPECT_EQ(refusal(masked, {zeros({1, 12}), zeros({1, 17})}),
            "input 'mask' dim 1 is 17, but must equal dim 1 of 'ids' (12): required by Add_37");
}

TEST(EntryChecks, NumbersAndRanks) {
  std::string_view text =
      "const @w: f32[4, 2] = {1, 2, 3, 4, 5, 6, 7, 8} func @main(%x: f32[N, K], %z: f32[*]) -> (f32[*], f32[*]) "
      "{ %y = matmul(%x, @w) from \"MatMul_1\" %t = transpose(%z) {perm = [1, 0]} from \"Transpose_2\" return %y, %t }";
  EXPECT_EQ(refusal(text, {zeros({3, 5}), zeros({2, 2})}), "input 'x' dim 1 is 5, but must be 4: required by MatMul_1");
  EXPECT_EQ(refusal(text, {zeros({3, 4}), zeros({2, 2, 2})}),
            "input 'z' has shape [2, 2, 2], but must have rank 2: required by Transpose_2");
}

TEST(EntryChecks, WhatFollowsFromOthersIsLeftOut) {
  auto module = ir::parse(
      "func @main(%a: f32[A, 3], %b: f32[B, 3], %c: f32[C, 3]) -> (f32[*], f32[*], f32[*]) where A in 2..9, B in 2..9, "
      "C in 2..9 "
      "{ %x = add(%a, %b) %y = add(%b, %c) %z = add(%a, %c) return %x, %y, %z }",
      ops::op_set());
  EXPECT_EQ(analysis::Rdp(*module).entry_checks().size(), 2u);
}

}  // namespace
}  // namespace selkie::tests
