// call: a function of the module, with the operands as its arguments.
#include "ir/control.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  std::vector<HostValue> arguments;
  for (size_t i = 0; i < e.operand_count(); ++i) arguments.push_back(e.has(i) ? e.operand(i) : HostValue());
  std::vector<HostValue> results = e.services().call(e.attr<ir::FunctionRef>("callee").name, std::move(arguments));
  if (results.size() < e.result_count())
    fail("{} results are needed, but there are {}", e.result_count(), results.size());
  for (size_t i = 0; i < results.size(); ++i) e.set(i, std::move(results[i]));
}

std::vector<Type> forward(const ForwardContext& c) {
  std::vector<ir::Known> arguments;
  for (size_t i = 0; i < c.operand_count(); ++i) arguments.push_back(c.known(i));
  std::vector<ir::Known> results =
      c.services().call(std::get<ir::FunctionRef>(*c.find_attr("callee")).name, std::move(arguments));
  std::vector<Type> types;
  for (size_t i = 0; i < results.size(); ++i) {
    types.push_back(results[i].type);
    c.set_contents(i, results[i].contents);
  }
  return types;
}

ir::ControlForm control(const ir::Node& node) {
  const auto* callee = std::get_if<ir::FunctionRef>(node.attrs.find("callee"));
  return {.kind = ir::ControlForm::Kind::call, .callee = callee != nullptr ? callee->name : ""};
}

}  // namespace

OpDef call_op() {
  return {
      .name = "call",
      .onnx = {},
      .doc = "runs a function of the module",
      .operands = {{"arguments", any_tensor, variadic, Container::any}},
      .results = {{"results", any_tensor, variadic, Container::any}},
      .attrs = {required_attr("callee", AttrKind::function)},
      .dynamism = edo({}),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = absent("what a function requires is found inside it"),
      .value = absent("forward gives the contents of the results"),
      .eval = eval,
      .lower = absent("control flow becomes bytecode, not a kernel"),
      .grad = later::training,
      .control = control,
      .samples = {{"func @f(%a: f32[*], %b: f32[*]) -> (?, ?) { %c = add(%a, %b) return %c, %a } $(f32[2]{1, 2}, "
                   "f32[1]{3}) {callee = @f}",
                   "f32[2]{4, 5}, f32[2]{1, 2}"},
                  {"func @f() -> () { return } $() {callee = @f}", ""},
                  {"func @f() -> () { return } $(f32[2]) {callee = @f}", "error: takes 0 arguments, but 1 are given"}},
  };
}

}  // namespace selkie::ops
