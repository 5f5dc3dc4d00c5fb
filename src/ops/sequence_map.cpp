// SequenceMap: a region run for each item of a sequence.
#include "ir/control.h"
#include "ops/support/containers.h"
#include "ops/support/regions.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  size_t count = e.operand(0).sequence().size();
  for (size_t i = 1; i < e.operand_count(); ++i)
    if (e.operand(i).is_sequence() && e.operand(i).sequence().size() != count)
      fail("sequences of {} and {} items cannot be mapped together", count, e.operand(i).sequence().size());
  std::vector<Sequence> results(e.result_count());
  for (size_t item = 0; item < count; ++item) {
    check_trip(e, static_cast<int64_t>(item));
    std::vector<HostValue> arguments;
    for (size_t i = 0; i < e.operand_count(); ++i)
      arguments.push_back(e.operand(i).is_sequence() ? e.operand(i).sequence()[item] : e.operand(i));
    std::vector<HostValue> yields = e.run_region(0, std::move(arguments));
    for (size_t i = 0; i < results.size(); ++i) results[i].items.push_back(yields[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) e.set(i, std::move(results[i]));
}

// The region's parameters are what is known of every item, so that its yields hold for every item of the results.
std::vector<Type> forward(const ForwardContext& c) {
  std::vector<ir::Known> parameters;
  for (size_t i = 0; i < c.operand_count(); ++i) {
    if (i == 0 || c.type(i).kind == Type::Kind::seq)
      parameters.push_back({.type = item_of(c.type(i)), .contents = {}});
    else
      parameters.push_back(c.known(i));
  }
  std::optional<std::vector<ir::Known>> yields =
      c.services().run_region(0, std::move(parameters), false, [](sym::Facts&) {});
  std::vector<Type> types;
  for (size_t i = 0; i < c.result_count(); ++i)
    types.push_back(
        Type::seq(yields ? visible_type(c, (*yields)[i].type) : without_dims(c.node()->regions[0]->yields[i]->type)));
  return types;
}

ir::ControlForm control(const ir::Node&) { return {.kind = ir::ControlForm::Kind::map}; }

}  // namespace

OpDef sequence_map_op() {
  return {
      .name = "sequence_map",
      .onnx = {"", "SequenceMap", {17}},
      .doc =
          "runs a region for each item of a sequence; other operands are the same each time, or sequences of equal "
          "length",
      .operands = {{"input_sequence", any_tensor, required, Container::seq},
                   {"additional_inputs", any_tensor, variadic, Container::any}},
      .results = {{"out_sequence", any_tensor, variadic, Container::seq}},
      .regions = {{.name = "body", .onnx = "body", .takes_operands = true}},
      .dynamism = isdos(),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = absent("the region is not entered where the sequence is empty, so that nothing is required"),
      .value = absent("contents of sequences are not followed"),
      .eval = eval,
      .lower = absent("control flow becomes bytecode, not a kernel"),
      .grad = later::training,
      .control = control,
      .samples =
          {{"$(seq(i32[1]{1}, i32[2]{2, 3}), i32[]{10}) body(%x: i32[*], %y: i32[]) { %z = add(%x, %y) yield %z }",
            "seq(i32[1]{11}, i32[2]{12, 13})"},
           {"$(seq()) body(%x: f32[*]) { yield %x }", "seq()"},
           {"$(f32[2]) body(%x: f32[2]) { yield }", "error: must be a sequence"}},
  };
}

}  // namespace selkie::ops
