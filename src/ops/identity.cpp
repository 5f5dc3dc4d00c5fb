// Identity: the operand itself, whatever it is.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {

OpDef identity_op() {
  return {
      .name = "identity",
      .onnx = {"", "Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}},
      .doc = "the operand itself: a tensor, sequence or optional",
      .operands = {{"input", any_tensor, required, Container::any}},
      .results = {{"output", any_tensor, required, Container::any}},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = same_as_first,
      .backward = backward_same,
      .value = value_by_moving,
      .eval = [](EvalContext& e) { e.set(0, e.operand(0)); },
      .lower = lower_reorganized,
      .grad = later::training,
      .samples = {{"$(f32[2, 3])", "f32[2, 3]"}, {"$(seq(f32[2]))", "seq(f32[2])"}, {"$()", "error: at least 1"}},
  };
}

}  // namespace selkie::ops
