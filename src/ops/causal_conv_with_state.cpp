// CausalConvWithState: a depthwise convolution over a sequence that continues where the last call ended.
#include <cmath>

#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", DTypeSet{DType::f32, DType::f16, DType::bf16}};

Tensor with_past(const EvalContext& e, int64_t kernel) {
  const Tensor& x = e.tensor(0);
  Dims dims{x.dim(0), x.dim(1), kernel - 1};
  if (e.has(3) && e.tensor(3).dims() != dims)
    fail("'past_state' has shape {}, but must have {}", to_string(e.tensor(3).dims()), to_string(dims));
  return concat(std::vector<Tensor>{e.has(3) ? e.tensor(3) : Tensor(x.dtype(), dims), x}, 2);
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const Tensor& w = e.tensor(1);
  const std::string& activation = e.attr_string("activation");
  if (activation != "none" && activation != "silu" && activation != "swish")
    fail("there is no activation '{}'", activation);
  if (x.rank() != 3) fail("the input has shape {}, but must be of rank 3", to_string(x.dims()));
  if (w.rank() != 3 || w.dim(0) != x.dim(1) || w.dim(1) != 1 || w.dim(2) < 1)
    fail("weights of shape {} do not fit {} channels", to_string(w.dims()), x.dim(1));
  if (e.has(2) && e.tensor(2).dims() != Dims{x.dim(1)}) fail("the bias has shape {}", to_string(e.tensor(2).dims()));
  int64_t kernel = w.dim(2);
  Tensor whole = with_past(e, kernel);
  std::vector<double> values = widen<double>(whole);
  std::vector<double> weights = widen<double>(w);
  std::vector<double> bias = e.has(2) ? widen<double>(e.tensor(2)) : std::vector<double>(static_cast<size_t>(x.dim(1)));
  std::vector<double> out;
  out.reserve(static_cast<size_t>(x.count()));
  for (int64_t plane = 0; plane < x.dim(0) * x.dim(1); ++plane) {
    int64_t channel = plane % x.dim(1);
    for (int64_t t = 0; t < x.dim(2); ++t) {
      double sum = bias[static_cast<size_t>(channel)];
      for (int64_t k = 0; k < kernel; ++k)
        sum += values[static_cast<size_t>(plane * whole.dim(2) + t + k)] *
               weights[static_cast<size_t>(channel * kernel + k)];
      out.push_back(activation == "none" ? sum : sum / (1 + std::exp(-sum)));
    }
  }
  e.set(0, narrow<double>(out, x.dtype(), x.dims()));
  e.set(1, slice_axis(whole, 2, whole.dim(2) - (kernel - 1), kernel - 1));
}

std::vector<Type> forward(const ForwardContext& c) {
  SymDims state = c.unknown_dims(1, 3);
  if (c.dims(0) && c.rank(0) == 3) std::copy_n(c.dims(0)->begin(), 2, state.begin());
  if (c.dims(1) && c.rank(1) == 3) state[2] = c.dims(1)->at(2) - 1;
  return {c.type(0), Type::tensor(c.dtype(0), state)};
}

void backward(BackwardContext& c) {
  c.set_rank(0, 3);
  const SymDims x = *c.dims(0);
  c.set_dims(1, SymDims{x[1], c.constant(1), sym::Expr()});
  sym::Expr kernel = c.dims(1)->at(2);
  c.less_equal(c.constant(1), kernel);
  c.set_dims(2, SymDims{x[1]});
  c.set_dims(3, SymDims{x[0], x[1], kernel - 1});
}

}  // namespace

OpDef causal_conv_with_state_op() {
  return {
      .name = "causal_conv_with_state",
      .onnx = {"", "CausalConvWithState", {27}},
      .doc = "depthwise convolution with current and past elements only; the last ones are the state of the next call",
      .operands = {{"input", type}, {"weight", type}, {"bias", type, optional}, {"past_state", type, optional}},
      .results = {{"output", type}, {"present_state", type}},
      .attrs = {string_attr("activation", "none")},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("convolutions do not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(f32[1, 1, 2]{3, 4}, f32[1, 1, 2]{10, 1}, f32[1]{100}, f32[1, 1, 1]{2})",
                   "f32[1, 1, 2]{123, 134}, f32[1, 1, 1]{4}"},
                  {"$(f32[2, 3, 1], f32[3, 1, 4]) {activation = \"silu\"}", "f32[2, 3, 1], f32[2, 3, 3]"},
                  {"$(f32[2, 3, 0], f32[3, 1, 1])", "f32[2, 3, 0], f32[2, 3, 0]"},
                  {"$(f32[2, 3, 5], f32[2, 1, 4])", "error: do not fit 3 channels"},
                  {"$(f32[2, 3, 5], f32[3, 1, 4]) {activation = \"relu\"}", "error: no activation 'relu'"}},
  };
}

}  // namespace selkie::ops
