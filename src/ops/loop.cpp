// Loop: a region run a number of times, or while a condition holds, with values carried from one trip to the next.
#include <limits>

#include "ir/control.h"
#include "ops/support/regions.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  int64_t trips = e.has(0) ? int_of(e.tensor(0)) : std::numeric_limits<int64_t>::max();
  bool go_on = !e.has(1) || int_of(e.tensor(1)) != 0;
  std::vector<HostValue> carried;
  for (size_t i = 2; i < e.operand_count(); ++i) carried.push_back(e.operand(i));
  const ir::Region& body = e.region(0);
  size_t scans = body.yields.size() - 1 - carried.size();
  std::vector<std::vector<Tensor>> outputs(scans);
  std::vector<ir::EmptyResult> empty;
  if (scans > 0 && (trips <= 0 || !go_on)) {
    std::vector<HostValue> arguments{Tensor::scalar_i64(0), Tensor::scalar_bool(true)};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    empty = e.services().infer_region(body, arguments);
  }
  for (int64_t trip = 0; trip < trips && go_on; ++trip) {
    check_trip(e, trip);
    std::vector<HostValue> arguments{Tensor::scalar_i64(trip), Tensor::scalar_bool(go_on)};
    arguments.insert(arguments.end(), std::make_move_iterator(carried.begin()), std::make_move_iterator(carried.end()));
    std::vector<HostValue> yields = e.run_region(0, std::move(arguments));
    go_on = int_of(yields[0].tensor()) != 0;
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = std::move(yields[1 + i]);
    for (size_t i = 0; i < scans; ++i) outputs[i].push_back(yields[1 + carried.size() + i].tensor());
  }
  for (size_t i = 0; i < carried.size(); ++i) e.set(i, carried[i]);
  for (size_t i = 0; i < scans; ++i) {
    size_t yield = 1 + carried.size() + i;
    e.set(carried.size() + i,
          outputs[i].empty() ? empty_output(empty[yield], body.yields[yield]->type, 0) : stack(outputs[i], 0));
  }
}

// Whether a condition is known to hold: left out, or a known 1.
bool holds(const ForwardContext& c, size_t operand) {
  if (!c.has(operand)) return true;
  std::optional<ir::SymElements> known = c.contents(operand);
  return known && known->size() == 1 && known->at(0).constant() == 1;
}

std::vector<Type> forward(const ForwardContext& c) {
  LoopForm form{.skipped = 1};
  sym::Expr most = c.constant(ir::RunLimits{}.loop_trips);
  std::optional<ir::SymElements> limit = c.has(0) ? c.elements(0) : std::nullopt;
  bool limited = limit && limit->size() == 1;
  if (limited) most = sym::min(sym::max(limit->at(0), 0), most);
  form.trips = c.services().trips({.least = {}, .most = most});
  ir::Known index{.type = Type::tensor(DType::i64, SymDims{}), .contents = {}};
  index.contents = ir::Contents{.elements = {c.services().trip_index()}};
  ir::Known condition{.type = Type::tensor(DType::boolean, SymDims{}), .contents = {}};
  condition.contents = ir::Contents{.elements = {c.constant(1)}};  // else the body would not run
  form.leading = {index, condition};
  for (size_t i = 2; i < c.operand_count(); ++i) form.state.push_back(c.known(i));
  LoopShapes shapes = follow_loop(c, form);
  const std::optional<ir::Contents>& again = shapes.skipped[0].contents;
  bool goes_on = shapes.runs && again && again->complete() && again->elements.at(0).constant() == 1;
  sym::Expr trips = !shapes.runs ? c.constant(0) : goes_on && holds(c, 1) && limited ? most : form.trips;
  if (trips != form.trips && form.trips.is_symbol()) c.services().define_trips(trips);
  std::vector<Type> types;
  for (size_t i = 0; i < shapes.state.size(); ++i) {
    types.push_back(shapes.state[i].type);
    c.set_contents(i, shapes.state[i].contents);
  }
  for (const Type& output : shapes.outputs) types.push_back(stacked(c, types.size(), output, trips, 0));
  return types;
}

ir::ControlForm control(const ir::Node& node) {
  ir::ControlForm form{.kind = ir::ControlForm::Kind::loop, .counts = true, .first_state = 2};
  if (!node.operands.empty()) form.most_trips = 0;
  if (node.operands.size() > 1) form.first_trip = 1;
  form.states = node.operands.size() - std::min<size_t>(node.operands.size(), 2);
  form.outputs.resize(node.regions[0]->yields.size() - 1 - form.states);
  return form;
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
      .forward = forward,
      .backward = absent("nothing is known of the state before the body has run"),
      .value = absent("forward gives the contents of the final state"),
      .eval = eval,
      .lower = absent("control flow becomes bytecode, not a kernel"),
      .grad = later::training,
      .control = control,
      .samples = {{"$(i64[]{3}, bool[]{true}, i64[]{5}) body(%i: i64[], %c: bool[], %x: i64[]) { "
                   "%y = add(%x, %i) yield %c, %y, %y }",
                   "i64[]{8}, i64[3]{5, 6, 8}"},
                  {"$(i64[]{0}, _, f32[2]) body(%i: i64[], %c: bool[], %x: f32[2]) { %t = identity(%c) yield %t, %x }",
                   "f32[2]"},
                  {"$(i64[2], _) body(%i: i64[], %c: bool[]) { yield %c }", "error: one element"}},
  };
}

}  // namespace selkie::ops
