// FusedConv of com.microsoft: a convolution, an optional sum, and an activation.
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/conv.h"
#include "ops/support/elementwise.h"

namespace selkie::ops {
namespace {

using Activation = std::function<double(double)>;

Activation activation_of(const EvalContext& e) {
  std::string name = e.has_attr("activation") ? e.attr_string("activation") : "";
  std::vector<float> params =
      e.has_attr("activation_params") ? e.attr<std::vector<float>>("activation_params") : std::vector<float>{};
  size_t wanted = name == "LeakyRelu" ? 1 : name == "Clip" || name == "HardSigmoid" ? 2 : 0;
  if (params.size() < wanted) fail("activation '{}' needs {} parameters, but has {}", name, wanted, params.size());
  double a = wanted > 0 ? params[0] : 0;
  double b = wanted > 1 ? params[1] : 0;
  if (name.empty()) return [](double x) { return x; };
  if (name == "Relu") return [](double x) { return std::isnan(x) ? x : std::max(x, 0.0); };
  if (name == "Tanh") return [](double x) { return std::tanh(x); };
  if (name == "Sigmoid") return [](double x) { return 1 / (1 + std::exp(-x)); };
  if (name == "HardSwish") return [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); };
  if (name == "LeakyRelu") return [a](double x) { return x >= 0 ? x : a * x; };
  if (name == "Clip") return [a, b](double x) { return std::min(std::max(x, a), b); };
  if (name == "HardSigmoid") return [a, b](double x) { return std::clamp(a * x + b, 0.0, 1.0); };
  fail("activation '{}' does not exist", name);
}

void eval(EvalContext& e) {
  Activation activate = activation_of(e);
  Tensor y = convolve_operands(e);
  if (e.has(3)) {
    if (e.tensor(3).dims() != y.dims())
      fail("the sum has shape {}, but the result {}", to_string(e.tensor(3).dims()), to_string(y.dims()));
    y = map_pairs<double>(y, e.tensor(3), y.dtype(), [](double a, double b) { return a + b; });
  }
  e.set(0, map_elements<double>(y, y.dtype(), activate));
}

void backward(BackwardContext& c) {
  conv_backward(c, 1);
  if (c.dims(1) && c.rank(1) > 0) c.set_dims(2, SymDims{c.dims(1)->at(0)});
  if (c.result_dims(0)) c.set_dims(3, *c.result_dims(0));
}

}  // namespace

OpDef ms_fused_conv_op() {
  TypeVar type{"T", dtypes::f16_f32_f64};
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "ms_fused_conv";
  op.onnx = {"com.microsoft", "FusedConv", {1}};
  op.doc = "activation(conv(x, w) + b + z)";
  op.operands = {{"x", type}, {"w", type}, {"b", type, optional}, {"z", type, optional}};
  op.results = {{"y", type}};
  op.attrs = conv_attrs();
  op.attrs.insert(op.attrs.end(),
                  {optional_attr("activation", AttrKind::text), optional_attr("activation_params", AttrKind::reals)});
  op.forward = [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(0), conv_forward(c, 1))}; };
  op.backward = backward;
  op.eval = eval;
  op.samples = {
      {"$(f32[1, 1, 3]{1, -2, 3}, f32[1, 1, 1]{2}, f32[1]{1}, f32[1, 1, 3]{-4, 0, 1}) {activation = \"Relu\"}",
       "f32[1, 1, 3]{0, 0, 8}"},
      {"$(f32[1, 1, 2]{1, -2}, f32[1, 1, 1]{1}) {activation = \"LeakyRelu\", activation_params = [0.5]}",
       "f32[1, 1, 2]{1, -1}"},
      {"$(f32[1, 1, 2]{3, -2}, f32[1, 1, 1]{1}) {activation = \"Clip\", activation_params = [-1.0, 2.0]}",
       "f32[1, 1, 2]{2, -1}"},
      {"$(f32[0, 1, 4], f32[2, 1, 3])", "f32[0, 2, 2]"},
      {"$(f32[1, 1, 4], f32[1, 1, 1]) {activation = \"Cube\"}", "error: does not exist"},
      {"$(f32[1, 1, 4], f32[1, 1, 1]) {activation = \"Clip\"}", "error: needs 2 parameters"},
      {"$(f32[1, 1, 4], f32[1, 1, 1], _, f32[1, 1, 3])", "error: the sum has shape"}};
  return op;
}

}  // namespace selkie::ops
