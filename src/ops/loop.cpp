// Loop: a region run a number of times, or while a condition holds, with values carried from one trip to the next.
#include <limits>

#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// The scan output of a loop without trips: no rows; the inner shape comes from the region's declared type, 0 where
// unknown.
Tensor no_trips(const Type& declared) {
  Dims dims{0};
  if (declared.is_tensor() && declared.dims)
    for (sym::Expr d : *declared.dims) dims.push_back(d.constant().value_or(0));
  return Tensor(declared.is_tensor() ? declared.dtype : DType::f32, std::move(dims));
}

void eval(EvalContext& e) {
  const int64_t limit = e.services().limits().loop_trips;
  int64_t trips = e.has(0) ? int_of(e.tensor(0)) : std::numeric_limits<int64_t>::max();
  bool go_on = !e.has(1) || int_of(e.tensor(1)) != 0;
  std::vector<HostValue> carried;
  for (size_t i = 2; i < e.operand_count(); ++i) carried.push_back(e.operand(i));
  const ir::Region& body = e.region(0);
  size_t scans = body.yields.size() - 1 - carried.size();
  std::vector<std::vector<Tensor>> outputs(scans);
  for (int64_t trip = 0; trip < trips && go_on; ++trip) {
    if (trip >= limit) fail("the loop has run {} trips, which is the limit", limit);
    std::vector<HostValue> arguments{Tensor::scalar_i64(trip), Tensor::scalar_bool(go_on)};
    arguments.insert(arguments.end(), std::make_move_iterator(carried.begin()), std::make_move_iterator(carried.end()));
    std::vector<HostValue> yields = e.run_region(0, std::move(arguments));
    go_on = int_of(yields[0].tensor()) != 0;
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = std::move(yields[1 + i]);
    for (size_t i = 0; i < scans; ++i) outputs[i].push_back(yields[1 + carried.size() + i].tensor());
  }
  for (size_t i = 0; i < carried.size(); ++i) e.set(i, carried[i]);
  for (size_t i = 0; i < scans; ++i)
    e.set(carried.size() + i,
          outputs[i].empty() ? no_trips(body.yields[1 + carried.size() + i]->type) : stack(outputs[i], 0));
}

}  // namespace

OpDef loop_op() {
  return {
      .name = "loop",
      .onnx = {"", "Loop", {1, 11, 13, 16, 19, 21, 23, 24, 25}},
      .doc = "runs a region up to M times while its condition holds; carries values and stacks scan outputs",
      .operands = {{"M", i64_tensor, optional},
                   {"cond", bool_tensor, optional},
                   {"initial", any_tensor, variadic, Container::any}},
      .results = {{"final_and_scan", any_tensor, variadic, Container::any}},
      .regions = {{.name = "body", .onnx = "body", .takes_operands = true, .extra_yields = 1}},
      .dynamism = edo({"M", "cond"}),
      .mapping = Mapping::opaque,
      .forward = later::rdp,
      .backward = later::rdp,
      .value = later::rdp,
      .eval = eval,
      .lower = absent("control flow becomes bytecode, not a kernel"),
      .grad = later::training,
      .samples = {{"$(i64[]{3}, bool[]{true}, i64[]{5}) body(%i: i64[], %c: bool[], %x: i64[]) { "
                   "%y = add(%x, %i) yield %c, %y, %y }",
                   "i64[]{8}, i64[3]{5, 6, 8}"},
                  {"$(i64[]{0}, _, f32[2]) body(%i: i64[], %c: bool[], %x: f32[2]) { %t = identity(%c) yield %t, %x }",
                   "f32[2]"},
                  {"$(i64[2], _) body(%i: i64[], %c: bool[]) { yield %c }", "error: one element"}},
  };
}

}  // namespace selkie::ops
