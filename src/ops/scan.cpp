// Scan: a region run over the slices of some operands, with state carried along.
#include "ir/control.h"
#include "ops/support/regions.h"

namespace selkie::ops {
namespace {

// Attribute lists give one entry per scan input or output; none at all means zero for each.
std::vector<int64_t> list_of(const EvalContext& e, std::string_view name, size_t count) {
  std::vector<int64_t> list = e.has_attr(name) ? e.attr_ints(name) : std::vector<int64_t>{};
  if (list.empty()) list.resize(count, 0);
  if (list.size() != count) fail("{} has {} entries, but there are {}", name, list.size(), count);
  return list;
}

// The slices of all trips, in their order or reversed, along `axis` of the result.
Tensor stack_trips(std::vector<Tensor>& slices, int64_t axis, bool reverse) {
  if (reverse) std::reverse(slices.begin(), slices.end());
  return stack(slices, normalize_axis(axis, slices[0].rank() + 1));
}

void eval(EvalContext& e) {
  int64_t given = e.attr_int("num_scan_inputs");
  if (given < 1 || given > static_cast<int64_t>(e.operand_count()))
    fail("num_scan_inputs is {}, but there are {} operands", given, e.operand_count());
  auto inputs = static_cast<size_t>(given);
  size_t states = e.operand_count() - inputs;
  const ir::Region& body = e.region(0);
  if (body.yields.size() < states)
    fail("the body returns {} values, fewer than the {} states", body.yields.size(), states);
  size_t outputs = body.yields.size() - states;
  std::vector<int64_t> input_axes = list_of(e, "scan_input_axes", inputs);
  std::vector<int64_t> input_reversed = list_of(e, "scan_input_directions", inputs);
  std::vector<int64_t> output_axes = list_of(e, "scan_output_axes", outputs);
  std::vector<int64_t> output_reversed = list_of(e, "scan_output_directions", outputs);
  std::vector<HostValue> state;
  for (size_t i = 0; i < states; ++i) state.push_back(e.operand(i));
  std::optional<int64_t> trips;
  for (size_t i = 0; i < inputs; ++i) {
    const Tensor& x = e.tensor(states + i);
    input_axes[i] = normalize_axis(input_axes[i], x.rank());
    if (trips && *trips != x.dim(input_axes[i]))
      fail("scan inputs have {} and {} slices", *trips, x.dim(input_axes[i]));
    trips = x.dim(input_axes[i]);
  }
  std::vector<ir::EmptyResult> empty;
  if (*trips == 0 && outputs > 0) {
    std::vector<HostValue> arguments = state;
    for (size_t i = 0; i < inputs; ++i) {
      Dims slice = e.tensor(states + i).dims();
      slice.erase(slice.begin() + input_axes[i]);
      arguments.emplace_back(Tensor(e.tensor(states + i).dtype(), std::move(slice)));
    }
    empty = e.services().infer_region(body, arguments);
  }
  std::vector<std::vector<Tensor>> stacked(outputs);
  for (int64_t trip = 0; trip < *trips; ++trip) {
    check_trip(e, trip);
    std::vector<HostValue> arguments = std::move(state);
    for (size_t i = 0; i < inputs; ++i) {
      int64_t at = input_reversed[i] != 0 ? *trips - 1 - trip : trip;
      arguments.emplace_back(without_axis(slice_axis(e.tensor(states + i), input_axes[i], at, 1), input_axes[i]));
    }
    std::vector<HostValue> yields = e.run_region(0, std::move(arguments));
    state.assign(yields.begin(), yields.begin() + static_cast<std::ptrdiff_t>(states));
    for (size_t i = 0; i < outputs; ++i) stacked[i].push_back(yields[states + i].tensor());
  }
  for (size_t i = 0; i < states; ++i) e.set(i, state[i]);
  for (size_t i = 0; i < outputs; ++i) {
    if (!stacked[i].empty()) {
      e.set(states + i, stack_trips(stacked[i], output_axes[i], output_reversed[i] != 0));
      continue;
    }
    e.set(states + i, empty_output(empty[states + i], body.yields[states + i]->type, output_axes[i]));
  }
}

// The axes of scan inputs or outputs, as an attribute gives them.
std::vector<int64_t> axes_of(const ir::ShapeContext& c, std::string_view name, size_t count) {
  const ir::Attribute* given = c.find_attr(name);
  std::vector<int64_t> axes = given != nullptr ? std::get<std::vector<int64_t>>(*given) : std::vector<int64_t>{};
  if (axes.empty()) axes.resize(count, 0);
  if (axes.size() != count) fail("{} has {} entries, but there are {}", name, axes.size(), count);
  return axes;
}

// The number of scan inputs; the operands before them are the state.
size_t scan_inputs(const ir::ShapeContext& c) {
  int64_t given = c.attr_int("num_scan_inputs");
  if (given < 1 || given > static_cast<int64_t>(c.operand_count()))
    fail("num_scan_inputs is {}, but there are {} operands", given, c.operand_count());
  return static_cast<size_t>(given);
}

std::vector<Type> forward(const ForwardContext& c) {
  size_t inputs = scan_inputs(c);
  size_t states = c.operand_count() - inputs;
  std::vector<int64_t> axes = axes_of(c, "scan_input_axes", inputs);
  LoopForm form;
  for (size_t i = 0; i < states; ++i) form.state.push_back(c.known(i));
  for (size_t i = 0; i < inputs; ++i) {
    Type slice = c.type(states + i);
    if (slice.dims) {
      auto axis = normalize_axis(axes[i], static_cast<int64_t>(slice.dims->size()));
      if (!form.trips) form.trips = (*slice.dims)[static_cast<size_t>(axis)];
      slice.dims->erase(slice.dims->begin() + axis);
    }
    form.trailing.push_back({.type = std::move(slice), .contents = {}});
  }
  if (!form.trips) form.trips = c.services().trips({.least = {}, .most = c.constant(ir::RunLimits{}.loop_trips)});
  LoopShapes shapes = follow_loop(c, form);
  std::vector<int64_t> output_axes = axes_of(c, "scan_output_axes", shapes.outputs.size());
  std::vector<Type> types;
  for (size_t i = 0; i < states; ++i) {
    types.push_back(shapes.state[i].type);
    c.set_contents(i, shapes.state[i].contents);
  }
  for (size_t i = 0; i < shapes.outputs.size(); ++i)
    types.push_back(stacked(c, types.size(), shapes.outputs[i], form.trips, output_axes[i]));
  return types;
}

// All scan inputs have as many slices.
void backward(BackwardContext& c) {
  size_t inputs = scan_inputs(c);
  size_t states = c.operand_count() - inputs;
  std::vector<int64_t> axes = axes_of(c, "scan_input_axes", inputs);
  sym::Expr trips;
  for (size_t i = 0; i < inputs; ++i) {
    if (!c.dims(states + i)) continue;
    auto axis = normalize_axis(axes[i], static_cast<int64_t>(c.rank(states + i)));
    sym::Expr slices = (*c.dims(states + i))[static_cast<size_t>(axis)];
    if (trips) c.equal(trips, slices);
    trips = slices;
  }
}

std::vector<ir::ControlForm::Slices> slices(const ir::Node& node, std::string_view axes, std::string_view directions,
                                            size_t count) {
  std::vector<ir::ControlForm::Slices> out(count);
  auto list = [&](std::string_view name) {
    const ir::Attribute* given = node.attrs.find(name);
    return given != nullptr ? std::get<std::vector<int64_t>>(*given) : std::vector<int64_t>{};
  };
  std::vector<int64_t> axis = list(axes);
  std::vector<int64_t> direction = list(directions);
  for (size_t i = 0; i < count; ++i) {
    if (i < axis.size()) out[i].axis = axis[i];
    if (i < direction.size()) out[i].reversed = direction[i] != 0;
  }
  return out;
}

ir::ControlForm control(const ir::Node& node) {
  ir::ControlForm form{.kind = ir::ControlForm::Kind::loop};
  auto inputs = static_cast<size_t>(std::get<int64_t>(*node.attrs.find("num_scan_inputs")));
  form.states = node.operands.size() - inputs;
  form.inputs = slices(node, "scan_input_axes", "scan_input_directions", inputs);
  form.outputs =
      slices(node, "scan_output_axes", "scan_output_directions", node.regions[0]->yields.size() - form.states);
  return form;
}

// Opset 8 scanned a batch: every operand had a leading batch axis, and an optional operand gave sequence lengths.
void batched_form(UpgradeContext& c) { c.become("batched_scan"); }

void eval_batched(EvalContext& e) {
  int64_t given = e.attr_int("num_scan_inputs");
  if (given < 1 || given > static_cast<int64_t>(e.operand_count()) - 1)
    fail("num_scan_inputs is {}, but there are {} operands", given, e.operand_count());
  auto inputs = static_cast<size_t>(given);
  size_t states = e.operand_count() - 1 - inputs;
  size_t outputs = e.region(0).yields.size() - std::min(states, e.region(0).yields.size());
  std::vector<int64_t> reversed = list_of(e, "directions", inputs);
  for (size_t i = 1; i < e.operand_count(); ++i)
    if (e.tensor(i).rank() < (i > states ? 2 : 1))
      fail("operand {} has too few dims: {}", i, to_string(e.tensor(i).dims()));
  int64_t batch = e.tensor(1).dim(0);
  int64_t longest = e.tensor(1 + states).dim(1);
  std::vector<int64_t> lengths =
      e.has(0) ? ints_of(e.tensor(0)) : std::vector<int64_t>(static_cast<size_t>(batch), longest);
  if (static_cast<int64_t>(lengths.size()) != batch)
    fail("{} sequence lengths are given for a batch of {}", lengths.size(), batch);
  std::vector<std::vector<Tensor>> finals(states + outputs);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t length = lengths[static_cast<size_t>(b)];
    std::vector<HostValue> state;
    auto entry = [&](size_t i) {
      const Tensor& t = e.tensor(i);
      if (t.dim(0) != batch) fail("operand {} has a batch of {}, not {}", i, t.dim(0), batch);
      return without_axis(slice_axis(t, 0, b, 1), 0);
    };
    for (size_t i = 0; i < states; ++i) state.emplace_back(entry(1 + i));
    std::vector<std::vector<Tensor>> stacked(outputs);
    for (int64_t trip = 0; trip < length; ++trip) {
      check_trip(e, trip);
      std::vector<HostValue> arguments = std::move(state);
      for (size_t i = 0; i < inputs; ++i) {
        Tensor x = entry(1 + states + i);
        if (length < 0 || length > x.dim(0)) fail("sequence length {} is outside 0..{}", length, x.dim(0));
        arguments.emplace_back(without_axis(slice_axis(x, 0, reversed[i] != 0 ? length - 1 - trip : trip, 1), 0));
      }
      std::vector<HostValue> yields = e.services().run_region(e.region(0), std::move(arguments));
      state.assign(yields.begin(), yields.begin() + static_cast<std::ptrdiff_t>(states));
      for (size_t i = 0; i < outputs; ++i) stacked[i].push_back(yields[states + i].tensor());
    }
    for (size_t i = 0; i < states; ++i) finals[i].push_back(state[i].tensor());
    for (size_t i = 0; i < outputs; ++i) {
      if (stacked[i].empty()) fail("a batch entry has no slices");
      // Shorter sequences are filled up with zeros.
      Tensor padding(stacked[i][0].dtype(), stacked[i][0].dims());
      stacked[i].resize(static_cast<size_t>(longest), padding);
      finals[states + i].push_back(stack(stacked[i], 0));
    }
  }
  for (size_t i = 0; i < finals.size(); ++i) {
    if (finals[i].empty()) fail("the batch is empty");
    e.set(i, stack(finals[i], 0));
  }
}

OpDef record() {
  return {
      .name = "scan",
      .onnx = {"", "Scan", {8, 9, 11, 16, 19, 21, 23, 24, 25}},
      .doc = "runs a region over the slices of the last operands; carries the first ones as state and stacks outputs",
      .operands = {{"initial_state_and_scan_inputs", mixed_tensors, variadic}},
      .results = {{"final_state_and_scan_outputs", any_tensor, variadic, Container::any}},
      .attrs = {required_attr("num_scan_inputs", AttrKind::integer),
                optional_attr("scan_input_axes", AttrKind::integers),
                optional_attr("scan_input_directions", AttrKind::integers),
                optional_attr("scan_output_axes", AttrKind::integers),
                optional_attr("scan_output_directions", AttrKind::integers)},
      .regions = {{.name = "body", .onnx = "body", .takes_operands = true}},
      .dynamism = isdos(),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = backward,
      .value = absent("forward gives the contents of the final state"),
      .eval = eval,
      .lower = absent("control flow becomes bytecode, not a kernel"),
      .grad = later::training,
      .control = control,
      .upgrades = {{9, batched_form}},
      .samples = {{"$(i32[]{0}, i32[3]{1, 2, 3}) {num_scan_inputs = 1} body(%s: i32[], %x: i32[]) { %t = add(%s, %x) "
                   "yield %t, %t }",
                   "i32[]{6}, i32[3]{1, 3, 6}"},
                  {"$(i32[2]{1, 2}) {num_scan_inputs = 1, scan_input_directions = [1]} body(%x: i32[]) { %t = "
                   "identity(%x) yield %t }",
                   "i32[2]{2, 1}"},
                  {"$(i32[0]) {num_scan_inputs = 1} body(%x: i32[]) { %t = neg(%x) : i32[] yield %t }", "i32[0]"},
                  {"$(f32[2]) {num_scan_inputs = 2} body(%x: f32[]) { yield }", "error: num_scan_inputs is 2"}},
  };
}

OpDef batched() {
  OpDef op = record();
  op.name = "batched_scan";
  op.onnx = {};
  op.doc = "scan as opset 8 had it: over a batch, with sequence lengths";
  op.operands = {{"sequence_lens", i64_tensor, optional}, {"initial_state_and_scan_inputs", mixed_tensors, variadic}};
  op.attrs = {required_attr("num_scan_inputs", AttrKind::integer), optional_attr("directions", AttrKind::integers)};
  op.regions = {{.name = "body", .onnx = "body", .variadic = true}};
  op.eval = eval_batched;
  op.forward = absent("a form of opset 8 that is run by the reference evaluator only");
  op.backward = absent("a form of opset 8 that is run by the reference evaluator only");
  op.control = nullptr;
  op.upgrades = {};
  op.samples = {{"$(_, i32[1]{0}, i32[1, 3]{1, 2, 3}) {num_scan_inputs = 1} body(%s: i32[], %x: i32[]) { %t = add(%s, "
                 "%x) yield %t, %t }",
                 "i32[1]{6}, i32[1, 3]{1, 3, 6}"},
                {"$(i64[1]{2}, i32[1]{0}, i32[1, 3]{1, 2, 3}) {num_scan_inputs = 1} body(%s: i32[], %x: i32[]) { %t = "
                 "add(%s, %x) yield %t, %t }",
                 "i32[1]{3}, i32[1, 3]{1, 3, 0}"},
                {"$(_, f32[2, 3]) {num_scan_inputs = 1} body(%x: ?) { %t = identity(%x) yield %t }", "f32[2, 3]"},
                {"$(i64[1]{1}, f32[2, 3]) {num_scan_inputs = 1} body(%x: ?) { yield }", "error: 1 sequence lengths"}};
  return op;
}

}  // namespace

std::vector<OpDef> scan_family() { return {record(), batched()}; }

}  // namespace selkie::ops
