// ConvInteger and QLinearConv: convolution of quantized operands.
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/conv.h"
#include "ops/support/conv_lower.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

constexpr DTypeSet bytes{DType::i8, DType::u8};
constexpr TypeVar x_type{"T1", bytes};
constexpr TypeVar w_type{"T2", bytes};
constexpr TypeVar y_type{"T3", bytes};
constexpr TypeVar sum_type{"sum", DTypeSet{DType::i32}};
constexpr TypeVar scale_type{"f32", dtypes::f32};

// One value for all channels, or one per channel: the values, repeated as needed.
template <class T>
std::vector<T> per_channel(const Tensor& t, int64_t channels, std::string_view what) {
  if (t.rank() > 1 || (t.count() != 1 && t.count() != channels))
    fail("{} has shape {}, but must have one element or one per {} channels", what, to_string(t.dims()), channels);
  std::vector<T> values = widen<T>(t);
  if (t.count() == 1) values.assign(static_cast<size_t>(channels), values[0]);
  return values;
}

std::vector<int64_t> centred(const Tensor& t, const Tensor* zero_points, int64_t channels, std::string_view what) {
  std::vector<int64_t> values = widen<int64_t>(t);
  if (zero_points == nullptr) return values;
  std::vector<int64_t> zeros = per_channel<int64_t>(*zero_points, channels, what);
  auto size = static_cast<size_t>(channels == 0 ? 0 : t.count() / channels);
  for (size_t i = 0; i < values.size(); ++i) values[i] -= zeros[i / size];
  return values;
}

std::vector<int64_t> sums(const EvalContext& e, const ConvShape& shape, size_t w, const Tensor* x_zero,
                          const Tensor* w_zero) {
  std::vector<int64_t> xs = centred(e.tensor(0), x_zero, 1, "the input's zero point");
  std::vector<int64_t> ws = centred(e.tensor(w), w_zero, shape.out_channels, "the weights' zero point");
  std::vector<int64_t> y = zeros<int64_t>(shape.output());
  convolve(shape, xs.data(), ws.data(), y.data());
  return y;
}

void eval_integer(EvalContext& e) {
  ConvShape shape = conv_shape(e, e.tensor(0), e.tensor(1));
  std::vector<int64_t> y = sums(e, shape, 1, e.has(2) ? &e.tensor(2) : nullptr, e.has(3) ? &e.tensor(3) : nullptr);
  e.set(0, narrow<int64_t>(y, DType::i32, shape.output()));
}

void eval_linear(EvalContext& e) {
  ConvShape shape = conv_shape(e, e.tensor(0), e.tensor(3));
  std::vector<int64_t> y = sums(e, shape, 3, &e.tensor(2), &e.tensor(5));
  Dims dims = shape.output();
  int64_t plane = product(dims, 2, static_cast<int64_t>(dims.size()));
  if (e.has(8)) {
    if (e.tensor(8).dims() != Dims{shape.out_channels}) fail("the bias has shape {}", to_string(e.tensor(8).dims()));
    add_channel_bias<int64_t>(y, widen<int64_t>(e.tensor(8)), plane);
  }
  std::vector<double> scales = per_channel<double>(e.tensor(4), shape.out_channels, "the weights' scale");
  double common = double_of(e.tensor(1)) / double_of(e.tensor(6));
  double zero = double_of(e.tensor(7));
  DType dtype = e.tensor(7).dtype();
  double low = dtype == DType::i8 ? -128 : 0;
  std::vector<double> out(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    double scale = common * scales[i / static_cast<size_t>(plane) % scales.size()];
    out[i] = std::clamp(std::nearbyint(static_cast<double>(y[i]) * scale) + zero, low, low + 255);
  }
  e.set(0, narrow<double>(out, dtype, dims));
}

// In i32, which wraps as the reference's result does.
void lower_integer(LowerContext& c) {
  ir::ConvolutionForm form = convolution_form(c, 1);
  if (c.has(2) && !has_one_element(c, 2)) c.refuse("the input's zero point may not fit");
  bool per_channel = c.has(3) && !has_one_element(c, 3);
  if (per_channel && (c.rank(3) != 1 || !c.proves_equal(c.dims(3)->at(0), c.dims(1)->at(0))))
    c.refuse("the weights' zero points may not fit");
  if (c.rank(0) <= 5) c.set_convolution(form);
  c.define(0, [&c, form, per_channel](const Index& at) {
    kir::Value none = c.builder().number(DType::i32, 0);
    kir::Value of_x = c.has(2) ? only_element(c, 2, DType::i32) : none;
    kir::Value of_w = per_channel ? cast(c.operand(3, {at[1]}), DType::i32)
                      : c.has(3)  ? only_element(c, 3, DType::i32)
                                  : none;
    return convolved_element(c, 1, form, at, DType::i32,
                             [&](kir::Value x, kir::Value w) { return (x - of_x) * (w - of_w); });
  });
}

OpDef base() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.attrs = conv_attrs();
  op.value = absent("convolutions do not occur in shape arithmetic");
  op.grad = absent("the operands are integers");
  return op;
}

OpDef integer() {
  OpDef op = base();
  op.name = "conv_integer";
  op.onnx = {"", "ConvInteger", {10}};
  op.doc = "convolution of integers less their zero points, summed in 32 bits";
  op.operands = {{"x", x_type}, {"w", w_type}, {"x_zero_point", x_type, optional}, {"w_zero_point", w_type, optional}};
  op.results = {{"y", sum_type}};
  op.forward = [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(DType::i32, conv_forward(c, 1))}; };
  op.backward = [](BackwardContext& c) { conv_backward(c, 1); };
  op.eval = eval_integer;
  op.lower = lower_integer;
  op.samples = {{"$(u8[1, 1, 3]{2, 3, 4}, i8[1, 1, 2]{1, -1}, u8[]{1})", "i32[1, 1, 2]{-1, -1}"},
                {"$(u8[1, 1, 2]{2, 3}, u8[2, 1, 1]{1, 2}, _, u8[2]{0, 1})", "i32[1, 2, 2]{2, 3, 2, 3}"},
                {"$(u8[0, 1, 3], u8[2, 1, 1])", "i32[0, 2, 3]"},
                {"$(u8[1, 1, 3], u8[2, 1, 1], _, u8[3])", "error: one per 2 channels"}};
  return op;
}

OpDef linear() {
  OpDef op = base();
  op.name = "qlinear_conv";
  op.onnx = {"", "QLinearConv", {10}};
  op.doc = "convolution of quantized tensors, requantized to the scale and zero point of y";
  op.operands = {{"x", x_type},           {"x_scale", scale_type},  {"x_zero_point", x_type},
                 {"w", w_type},           {"w_scale", scale_type},  {"w_zero_point", w_type},
                 {"y_scale", scale_type}, {"y_zero_point", y_type}, {"b", {"T4", DTypeSet{DType::i32}}, optional}};
  op.results = {{"y", y_type}};
  op.forward = [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(7), conv_forward(c, 3))}; };
  op.backward = [](BackwardContext& c) { conv_backward(c, 3, 8); };
  op.eval = eval_linear;
  op.samples = {
      {"$(u8[1, 1, 3]{12, 13, 255}, f32[]{0.5}, u8[]{10}, i8[1, 1, 1]{2}, f32[]{1}, i8[]{0}, f32[]{0.5}, u8[]{3}, "
       "i32[1]{1})",
       "u8[1, 1, 3]{8, 10, 255}"},
      {"$(u8[1, 1, 1]{3}, f32[]{1}, u8[]{0}, i8[2, 1, 1]{2, 2}, f32[2]{1, 0.5}, i8[2]{0, 1}, f32[]{1}, i8[]{0})",
       "i8[1, 2, 1]{6, 2}"},
      {"$(u8[0, 1, 1], f32[]{1}, u8[]{0}, i8[2, 1, 1], f32[]{1}, i8[]{0}, f32[]{1}, i8[]{0})", "i8[0, 2, 1]"},
      {"$(u8[1, 1, 1], f32[2], u8[]{0}, i8[2, 1, 1], f32[]{1}, i8[]{0}, f32[]{1}, i8[]{0})", "error: one element"}};
  return op;
}

}  // namespace

std::vector<OpDef> conv_integer_family() { return {integer(), linear()}; }

}  // namespace selkie::ops
