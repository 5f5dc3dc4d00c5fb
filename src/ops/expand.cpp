// Expand: a tensor broadcast to a shape given at run time.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<ir::SymElements> shape = c.elements(1);
  return {Type::tensor(c.dtype(0), shape ? broadcast(c, c.dims(0), *shape) : std::nullopt)};
}

// The dims of the shape are natural, and the operand broadcasts to the result.
void backward(BackwardContext& c) {
  for (sym::Expr e : c.contents(1).value_or(ir::SymElements{})) c.less_equal(c.constant(0), e);
  if (!c.dims(0) || !c.result_dims(0)) return;
  const SymDims& out = *c.result_dims(0);
  for (size_t i = 0; i < std::min(c.rank(0), out.size()); ++i) {
    sym::Expr dim = (*c.dims(0))[c.rank(0) - 1 - i];
    if (c.excludes(dim, 1) || out[out.size() - 1 - i].constant() == 1) c.equal(dim, out[out.size() - 1 - i]);
  }
}

}  // namespace

OpDef expand_op() {
  return {
      .name = "expand",
      .onnx = {"", "Expand", {8, 13}},
      .doc = "the tensor broadcast together with a shape",
      .operands = {{"input", any_tensor}, {"shape", i64_tensor}},
      .results = {{"output", any_tensor}},
      .dynamism = isvdos({"shape"}),
      .mapping = Mapping::one_to_many,
      .forward = forward,
      .backward = backward,
      .value = value_by_moving,
      .eval =
          [](EvalContext& e) {
            e.set(0, broadcast_to(e.tensor(0), broadcast(e.tensor(0).dims(), ints_of(e.tensor(1)))));
          },
      .lower =
          [](LowerContext& c) {
            c.define(0, [&c](const Index& at) { return broadcast_operand(c, 0, at, c.dtype(0)); });
          },
      .grad = later::training,
      .samples = {{"$(i32[2, 1]{1, 2}, i64[2]{1, 2})", "i32[2, 2]{1, 1, 2, 2}"},
                  {"$(f32[3], i64[3]{2, 1, 3})", "f32[2, 1, 3]"},
                  {"$(f32[3, 1], i64[1]{0})", "f32[3, 0]"},
                  {"$(f32[3], i64[1]{2})", "error: do not broadcast"},
                  {"$(f32[1], i64[1]{4611686018427387904})", "error: too many elements"},
                  {"$(f32[1], i64[1]{1152921504606846976})", "error: out of memory"}},
  };
}

}  // namespace selkie::ops
