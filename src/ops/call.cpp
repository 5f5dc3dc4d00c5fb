// call: a function of the module, with the operands as its arguments.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  std::vector<HostValue> arguments;
  for (size_t i = 0; i < e.operand_count(); ++i) arguments.push_back(e.has(i) ? e.operand(i) : HostValue());
  std::vector<HostValue> results = e.services().call(e.attr<ir::FunctionRef>("callee").name, std::move(arguments));
  for (size_t i = 0; i < results.size(); ++i) e.set(i, std::move(results[i]));
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
      .forward = later::rdp,
      .backward = later::rdp,
      .value = later::rdp,
      .eval = eval,
      .lower = absent("control flow becomes bytecode, not a kernel"),
      .grad = later::training,
      .samples = {},
  };
}

}  // namespace selkie::ops
