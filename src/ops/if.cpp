// If: one of two regions, chosen by a condition.
#include "ir/control.h"
#include "ops/support/regions.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& condition = e.tensor(0);
  if (condition.count() != 1)
    fail("the condition must have one element, but its shape is {}", to_string(condition.dims()));
  std::vector<HostValue> results = e.run_region(*condition.data<bool>() ? 0 : 1, {});
  for (size_t i = 0; i < results.size(); ++i) e.set(i, std::move(results[i]));
}

// What an arm gives, under the condition that it is taken; nothing if it cannot be.
std::optional<std::vector<ir::Known>> arm(const ir::ShapeContext& c, size_t region, sym::Expr condition) {
  return c.services().run_region(region, {}, false, [&](sym::Facts& facts) {
    if (condition) facts.add_equal(condition, c.constant(region == 0 ? 1 : 0), "the condition of the branch");
  });
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<ir::SymElements> elements = c.elements(0);
  sym::Expr condition = elements && elements->size() == 1 ? elements->at(0) : sym::Expr();
  std::optional<std::vector<ir::Known>> then_values = arm(c, 0, condition);
  std::optional<std::vector<ir::Known>> else_values = arm(c, 1, condition);
  if (!then_values && !else_values) fail("neither arm can be completed");
  std::vector<Type> types;
  for (size_t i = 0; i < c.result_count(); ++i) {
    ir::Known known = !then_values   ? leave_arm(c, i, (*else_values)[i], 1)
                      : !else_values ? leave_arm(c, i, (*then_values)[i], 0)
                                     : join_arms(c, i, (*then_values)[i], (*else_values)[i]);
    types.push_back(known.type);
    c.set_contents(i, known.contents);
  }
  return types;
}

// Where later nodes need a rank that only one arm gives, that arm is taken.
void backward(BackwardContext& c) {
  std::optional<ir::SymElements> condition = c.contents(0);
  if (!condition || condition->size() != 1 || condition->at(0).is_constant()) return;
  for (size_t region = 0; region < 2; ++region) {
    std::optional<std::vector<ir::Known>> values = arm(c, region, condition->at(0));
    for (size_t i = 0; values && i < c.result_count(); ++i) {
      const std::optional<SymDims>& given = (*values)[i].type.dims;
      const std::optional<SymDims>& needed = c.result_dims(i);
      if (!given || !needed || given->size() == needed->size()) continue;
      c.equal(condition->at(0), c.constant(region == 0 ? 0 : 1));
      return;
    }
  }
}

ir::ControlForm control(const ir::Node&) { return {.kind = ir::ControlForm::Kind::branch}; }

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
      .forward = forward,
      .backward = backward,
      .value = absent("forward gives the contents of the results"),
      .eval = eval,
      .lower = absent("control flow becomes bytecode, not a kernel"),
      .grad = later::training,
      .control = control,
      .samples = {{"$(bool[]{true}) then() { yield } else() { yield }", ""},
                  {"$(bool[2]) then() { yield } else() { yield }", "error: must have one element"},
                  {"$(f32[]) then() { yield } else() { yield }", "error: must be one of"}},
  };
}

}  // namespace selkie::ops
