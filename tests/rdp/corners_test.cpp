// Small programs that were once analysed wrongly, as random ones showed: each runs, and every claim holds.
#include <gtest/gtest.h>

#include "analysis/claims.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

Tensor zeros(Dims dims) { return Tensor(DType::f32, std::move(dims)); }

struct Outcome {
  std::string refusal;
  std::vector<std::string> violations;
};

// Runs the program with its claims held against the run.
Outcome run_checked(std::string_view text, std::vector<HostValue> inputs) {
  auto module = ir::parse(text, ops::op_set());
  analysis::Rdp rdp(*module);
  analysis::ClaimChecker claims(rdp);
  interp::Options options;
  options.observer = [&](const ir::Node& node, auto results) { claims.results(node, results); };
  options.on_enter = [&](const ir::Region& region, auto arguments) { claims.enter(region, arguments); };
  options.on_leave = [&](const ir::Region& region) { claims.leave(region); };
  interp::run(*module, std::move(inputs), options);
  return {.refusal = claims.refusal(), .violations = claims.violations()};
}

void expect_sound(std::string_view text, std::vector<HostValue> inputs) {
  Outcome outcome = run_checked(text, std::move(inputs));
  EXPECT_EQ(outcome.refusal, "");
  EXPECT_EQ(outcome.violations, std::vector<std::string>{});
}

// A check of the analysis's own does not hold, and nothing is found wrong before it.
void expect_refused(std::string_view text, std::vector<HostValue> inputs, std::string_view why) {
  Outcome outcome = run_checked(text, std::move(inputs));
  EXPECT_NE(outcome.refusal.find(why), std::string::npos) << outcome.refusal;
  EXPECT_EQ(outcome.violations, std::vector<std::string>{});
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

TEST(Corners, ALoopWithoutTripsThatTakesMoreThanThereIsHasNoOutputShape) {
  std::string_view text =
      "func @main(%x: f32[0], %k: i64[1]) -> (f32[*]) { "
      "%last, %all = scan(%k, %x) {num_scan_inputs = 1} body(%n: i64[1], %row: f32[]) { "
      "%v, %at = top_k(%x, %n) {axis = 0} yield %n, %v } return %all }";
  expect_sound(text, {zeros({0}), Tensor::scalar_i64(0).reshaped({1})});
  EXPECT_NE(run_error(text, {zeros({0}), Tensor::scalar_i64(5).reshaped({1})}).find("k is 5"), std::string::npos);
}

// The size is 1 in the first trip and 0, which keeps the old one, in the second.
TEST(Corners, NothingIsAssumedOfSomeTripsOnly) {
  expect_sound(
      "const @two: i64[] = {2} const @half: f32[] = {2} "
      "func @main(%x: f32[1]) -> (f32[*]) { %k = shape(%x) "
      "%last, %n, %all = loop(@two, _, %x, %k) body(%i: i64[], %go: bool[], %s: f32[*], %n: i64[*]) { "
      "%y = reshape(%s, %n) {allowzero = 0} %a = cast(%n) {to = 1} %b = div(%a, @half) %c = floor(%b) "
      "%d = cast(%c) {to = 7} yield %go, %a, %d, %y } return %all }",
      {zeros({1})});
}

// In the arm the inner dim must be 1; that says nothing about runs that take the other one.
TEST(Corners, WhatAnArmRequiresOfAnOuterSymbolIsNoEntryCheck) {
  expect_sound(
      "const @first: i64[1] = {0} const @second: i64[1] = {1} const @pads: i64[4] = {2, 1, 0, 1} "
      "func @main(%x: f32[*], %c: bool[]) -> (f32[*]) { "
      "%m = reduce_mean(%x, @first) {keepdims = 1} %p = pad(%m, @pads) %q = reduce_max(%p, @second) {keepdims = 0} "
      "%y = if(%c) then() { %a = sub(%m, %m) %r = reduce_max(%p, @first) {keepdims = 1} %s = add(%r, %q) yield %a } "
      "else() { yield %m } return %y }",
      {zeros({2, 0}), Tensor::scalar_bool(false)});
}

// The dims of the slice are told by the concatenation before those of its source are, and then by each other.
TEST(Corners, NoSymbolStandsForItself) {
  expect_sound(
      "const @last: i64[1] = {-1} const @most: i64[1] = {9223372036854775807} const @one: i64[1] = {1} "
      "const @pads: i64[4] = {1, 1, 1, 2} "
      "func @main(%x: f32[*]) -> (f32[*]) { %s = slice(%x, @last, @most, @one, @one) "
      "%y = concat(%s, %x) {axis = 0} %p = pad(%y, @pads) return %p }",
      {zeros({2, 1})});
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

// The body of the outer loop does not run, but the inner loop would: once, so that its state is what it starts with.
TEST(Corners, ALoopOfOneTripInALoopWithoutTripsIsFollowedAsFar) {
  expect_sound(
      "const @once: i64[] = {1} func @main(%x: f32[A, 6], %n: i64[]) -> (f32[*]) { "
      "%all = loop(%n, _) body(%i: i64[], %go: bool[]) { "
      "%last, %rows = loop(@once, _, %x) body(%j: i64[], %more: bool[], %s: f32[*]) { "
      "%twice = concat(%s, %s) {axis = 1} yield %more, %twice, %twice } yield %go, %rows } return %all }",
      {zeros({3, 6}), Tensor::scalar_i64(0)});
}

TEST(Corners, ElementsThatABranchGivesAreKnownInALoopWithoutTrips) {
  expect_sound(
      "const @three: i64[1] = {3} func @main(%x: f32[1], %c: bool[], %n: i64[]) -> (f32[*]) { "
      "%all = loop(%n, _) body(%i: i64[], %go: bool[]) { "
      "%k = if(%c) then() { %a = identity(@three) yield %a } else() { %b = neg(@three) %d = neg(%b) yield %d } "
      "%y = tile(%x, %k) yield %go, %y } return %all }",
      {zeros({1}), Tensor::scalar_bool(true), Tensor::scalar_i64(0)});
}

TEST(Corners, AFunctionIsFollowedInALoopWithoutTrips) {
  expect_sound(
      "func @pair(%a: f32[*]) -> (f32[*]) { %b = concat(%a, %a) {axis = 0} return %b } "
      "func @main(%x: f32[N], %n: i64[]) -> (f32[*]) { %all = loop(%n, _) body(%i: i64[], %go: bool[]) { "
      "%y = call(%x) {callee = @pair} yield %go, %y } return %all }",
      {zeros({3}), Tensor::scalar_i64(0)});
}

// What was assumed in the body became a fact about the input, without a check outside.
TEST(Corners, WhatABodyAssumesIsCheckedOutsideBeforeItIsAFactThere) {
  expect_refused(
      "const @first: i64[1] = {0} const @trips: i64[] = {2} func @main(%x: f32[C, C, B]) -> (f32[*]) { "
      "%s = shape(%x) %u = unsqueeze(%x, @first) %all = loop(@trips, _) body(%i: i64[], %go: bool[]) { "
      "%y = reshape(%u, %s) yield %go, %y } return %all }",
      {zeros({0, 0, 3})}, "a dim of 0 in a shape keeps the old one");
}

// The number of unique elements is said by the shape that it must fit, but the check is still about that number.
TEST(Corners, ACheckIsMadeOfASizeThatIsSaidByOthers) {
  expect_refused(
      "func @main(%x: f32[C]) -> (f32[*]) { %a, %b = split(%x, _) {axis = 0} %u = unique(%a) %s = shape(%b) "
      "%y = reshape(%u, %s) return %y }",
      {zeros({1})}, "a dim of 0 in a shape keeps the old one");
}

TEST(Corners, AShapeWithTwoDimsLeftIsRefusedBeforeTheRun) {
  auto module =
      ir::parse("const @s: i64[2] = {-1, -1} func @main(%x: f32[N]) -> (f32[*]) { %y = reshape(%x, @s) return %y }",
                ops::op_set());
  EXPECT_THROW(analysis::Rdp{*module}, Error);
}

// Its elements were known, but not how many there are, and whoever reads elements relied on that.
TEST(Corners, ADataDependentSizeOfConstantsIsANumber) {
  expect_sound(
      "const @k: f32[3] = {1, 2, 1} func @main(%x: f32[2]) -> (f32[*], f32[*]) { "
      "%u = unique(@k) %y = sub(%u, %u) %z = mul(%x, %u) return %y, %z }",
      {zeros({2})});
}

// Inside the scan there is a trip, so that max(n, 0) is n; where it does not run, the outputs were said so, too.
TEST(Corners, WhatATripSaysOfItsNumberIsNotSaidWithoutTrips) {
  Tensor negative = Tensor::scalar_i64(-1);
  expect_sound(
      "func @main(%x: f32[A], %n: i64[]) -> (f32[*]) { "
      "%rows = loop(%n, _) body(%i: i64[], %go: bool[]) { %r = neg(%x) yield %go, %r } "
      "%all = loop(%n, _) body(%j: i64[], %on: bool[]) { "
      "%last, %each = scan(%rows, %rows) {num_scan_inputs = 1} body(%s: f32[*], %row: f32[*]) { "
      "%t = neg(%s) yield %t, %t } yield %on, %each } return %all }",
      {zeros({3}), negative});
}

}  // namespace
}  // namespace selkie::tests
