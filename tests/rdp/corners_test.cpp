// Small programs that were once analysed wrongly, as random ones showed: each runs, and every claim holds.
#include <gtest/gtest.h>

#include "analysis/claims.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

Tensor zeros(Dims dims) { return Tensor(DType::f32, std::move(dims)); }

// Runs the program with its claims held against the run.
void expect_sound(std::string_view text, std::vector<HostValue> inputs) {
  auto module = ir::parse(text, ops::op_set());
  analysis::Rdp rdp(*module);
  analysis::ClaimChecker claims(rdp);
  interp::Options options;
  options.observer = [&](const ir::Node& node, auto results) { claims.results(node, results); };
  options.on_enter = [&](const ir::Region& region, auto arguments) { claims.enter(region, arguments); };
  options.on_leave = [&](const ir::Region& region) { claims.leave(region); };
  interp::run(*module, std::move(inputs), options);
  EXPECT_EQ(claims.refusal(), "");
  EXPECT_EQ(claims.violations(), std::vector<std::string>{});
}

std::string run_error(std::string_view text, std::vector<HostValue> inputs) {
  auto module = ir::parse(text, ops::op_set());
  try {
    interp::run(*module, std::move(inputs), {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Corners, ALoopWithoutTripsWhoseBodyCannotExpandHasNoOutputShape) {
  std::string_view text =
      "func @main(%x: f32[1, 2], %shape: i64[1], %n: i64[]) -> (f32[*], f32[*]) { "
      "%last, %all = loop(%n, _, %x) body(%i: i64[], %go: bool[], %s: f32[*]) { "
      "%e = expand(%s, %shape) yield %go, %e, %e } return %last, %all }";
  Tensor none = Tensor::scalar_i64(0);
  expect_sound(text, {zeros({1, 2}), Tensor::scalar_i64(2).reshaped({1}), none});
  EXPECT_NE(run_error(text, {zeros({1, 2}), none.reshaped({1}), none}).find("do not broadcast"), std::string::npos);
}

// An empty input has no row to squeeze out, but the form of what would be squeezed is plain.
TEST(Corners, ALoopWithoutTripsOverNoRowsHasAnOutputShape) {
  expect_sound(
      "const @first: i64[1] = {0} const @next: i64[1] = {1} func @main(%x: f32[N, 2], %n: i64[]) -> (f32[*]) { "
      "%all = loop(%n, _) body(%i: i64[], %go: bool[]) { "
      "%row = slice(%x, @first, @next, @first) %y = squeeze(%row, @first) yield %go, %y } return %all }",
      {zeros({0, 2}), Tensor::scalar_i64(0)});
}

// That floor(N / 6) is not 0 unless N is was assumed, so that the dims are those of the shape; with N == 1 it cannot
// be.
constexpr std::string_view keeps_by_zero =
    "%s = shape(%x) %k = div(%s, @six) %y = reshape(%x, %k) %z = squeeze(%x, @first) ";
constexpr std::string_view constants = "const @six: i64[1] = {6} const @first: i64[1] = {0} ";

TEST(Corners, WhatIsOnlyAssumedRefusesNoProgram) {
  expect_sound(
      fmt::format("{} func @main(%x: f32[N]) -> (f32[*], f32[*]) {{ {} return %y, %z }}", constants, keeps_by_zero),
      {zeros({1})});
}

TEST(Corners, WhatIsOnlyAssumedFailsNoArm) {
  expect_sound(fmt::format("{} func @main(%x: f32[N], %c: bool[]) -> (f32[*]) {{ %r = if(%c) then() {{ {} yield %y }} "
                           "else() {{ %n = neg(%x) yield %n }} return %r }}",
                           constants, keeps_by_zero),
               {zeros({1}), Tensor::scalar_bool(true)});
}

}  // namespace
}  // namespace selkie::tests
