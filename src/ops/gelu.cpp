// Gelu: x times the probability that a normal variable is below x, exactly or by tanh.
#include <cmath>
#include <numbers>

#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const std::string& approximate = e.attr_string("approximate");
  if (approximate != "none" && approximate != "tanh")
    fail("'approximate' is '{}', but must be none or tanh", approximate);
  bool by_tanh = approximate == "tanh";
  e.set(0, map_elements<double>(x, x.dtype(), [&](double v) {
          double inner = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
          return 0.5 * v * (1 + (by_tanh ? std::tanh(inner) : std::erf(v / std::numbers::sqrt2)));
        }));
}

void lower(LowerContext& c) {
  bool by_tanh = c.attr_string("approximate") == "tanh";
  lower_elementwise(c, [by_tanh](const LowerContext&, std::span<const kir::Value> operands) {
    kir::Value x = operands[0];
    kir::Value inner = by_tanh ? (x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi) : x / std::numbers::sqrt2;
    return x * 0.5 * (unary(by_tanh ? kir::Op::tanh : kir::Op::erf, inner) + 1);
  });
}

}  // namespace

OpDef gelu_op() {
  return {
      .name = "gelu",
      .onnx = {"", "Gelu", {20}},
      .doc = "y = x·Φ(x), exactly or approximated by tanh",
      .operands = {{"x", float_tensor}},
      .results = {{"y", float_tensor}},
      .attrs = {string_attr("approximate", "none")},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = same_as_first,
      .backward = backward_same,
      .value = absent("activations do not occur in shape arithmetic"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(f32[2]{0, 1})", "f32[2]{0, 0.8413447}"},
                  {"$(f32[2]{0, 1}) {approximate = \"tanh\"}", "f32[2]{0, 0.841192}"},
                  {"$(f32[0])", "f32[0]"},
                  {"$(f32[2]) {approximate = \"sin\"}", "error: must be none or tanh"}},
  };
}

}  // namespace selkie::ops
