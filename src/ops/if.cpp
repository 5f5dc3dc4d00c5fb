// If: one of two regions, chosen by a condition.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& condition = e.tensor(0);
  if (condition.count() != 1)
    fail("the condition must have one element, but its shape is {}", to_string(condition.dims()));
  std::vector<HostValue> results = e.run_region(*condition.data<bool>() ? 0 : 1, {});
  for (size_t i = 0; i < results.size(); ++i) e.set(i, std::move(results[i]));
}

}  // namespace

OpDef if_op() {
  return {
      .name = "if",
      .onnx = {"", "If", {1, 11, 13, 16, 19, 21, 23, 24, 25}},
      .doc = "runs one of two regions, chosen by the condition",
      .operands = {{"cond", bool_tensor}},
      .results = {{"outputs", any_tensor, variadic, Container::any}},
      .regions = {{.name = "then", .onnx = "then_branch"}, {.name = "else", .onnx = "else_branch"}},
      .dynamism = edo({"cond"}),
      .mapping = Mapping::opaque,
      .forward = later::rdp,
      .backward = later::rdp,
      .value = later::rdp,
      .eval = eval,
      .lower = absent("control flow becomes bytecode, not a kernel"),
      .grad = later::training,
      .samples = {{"$(bool[]{true}) then() { yield } else() { yield }", ""},
                  {"$(bool[2]) then() { yield } else() { yield }", "error: must have one element"},
                  {"$(f32[]) then() { yield } else() { yield }", "error: must be one of"}},
  };
}

}  // namespace selkie::ops
