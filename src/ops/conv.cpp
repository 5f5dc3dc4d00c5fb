// Conv: weighted sums under a sliding window, any number of spatial axes.
#include "ops/support/conv.h"

#include "ops/support/record.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

template <class T>
Tensor run(const EvalContext& e, const ConvShape& shape, const T* x, const T* w) {
  Dims dims = shape.output();
  std::vector<T> y = zeros<T>(dims);
  convolve(shape, x, w, y.data());
  if (e.has(2)) add_channel_bias<T>(y, widen<T>(e.tensor(2)), product(dims, 2, static_cast<int64_t>(dims.size())));
  return narrow<T>(y, e.tensor(0).dtype(), dims);
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const Tensor& w = e.tensor(1);
  ConvShape shape = conv_shape(e, x, w);
  if (e.has(2) && e.tensor(2).dims() != Dims{shape.out_channels})
    fail("the bias has shape {}, but there are {} output channels", to_string(e.tensor(2).dims()), shape.out_channels);
  if (x.dtype() == DType::f32)
    e.set(0, run(e, shape, x.data<float>(), w.data<float>()));
  else
    e.set(0, run(e, shape, widen<double>(x).data(), widen<double>(w).data()));
}

}  // namespace

OpDef conv_op() {
  return {
      .name = "conv",
      .onnx = {"", "Conv", {1, 11, 22}},
      .doc = "weighted sums of the elements under a sliding window, per output channel",
      .operands = {{"x", float_tensor}, {"w", float_tensor}, {"b", float_tensor, optional}},
      .results = {{"y", float_tensor}},
      .attrs = conv_attrs(),
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward =
          [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(0), conv_forward(c, 1))}; },
      .backward = later::rdp,
      .value = absent("convolutions do not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(f32[1, 1, 4]{1, 2, 3, 4}, f32[1, 1, 2]{1, 10}, f32[1]{100})", "f32[1, 1, 3]{121, 132, 143}"},
                  {"$(f32[1, 1, 3]{1, 2, 3}, f32[1, 1, 2]{1, 10}) {pads = [1, 0], dilations = [2]}",
                   "f32[1, 1, 2]{20, 31}"},
                  {"$(f32[2, 4, 7, 8], f32[6, 2, 3, 2]) {group = 2, strides = [2, 3], auto_pad = \"SAME_LOWER\"}",
                   "f32[2, 6, 4, 3]"},
                  {"$(f32[1, 2, 3, 4, 5], f32[3, 2, 1, 1, 1]) {kernel_shape = [1, 1, 1]}", "f32[1, 3, 3, 4, 5]"},
                  {"$(f32[0, 1, 4], f32[1, 1, 2])", "f32[0, 1, 3]"},
                  {"$(f32[1, 1, 0], f32[1, 1, 3]) {pads = [1, 1]}", "f32[1, 1, 0]"},
                  {"$(f32[1, 3, 4], f32[1, 2, 2])", "error: do not fit weights"},
                  {"$(f32[1, 1, 2], f32[1, 1, 3])", "error: does not fit"},
                  {"$(f32[1, 1, 4], f32[2, 1, 3], f32[1])", "error: the bias has shape [1]"}},
  };
}

}  // namespace selkie::ops
