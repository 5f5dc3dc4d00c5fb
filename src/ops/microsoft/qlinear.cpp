// QLinearAdd, QLinearMul and QLinearGlobalAveragePool of com.microsoft.
#include "ops/support/blank.h"
#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/quantize.h"

namespace selkie::ops {
namespace {

constexpr TypeVar byte{"T", DTypeSet{DType::u8, DType::i8}};
constexpr TypeVar scale{"f32", dtypes::f32};

// x / scale, rounded, plus the zero point; one scale for all.
Tensor requantize(const std::vector<double>& values, const Tensor& by, const Tensor* zero, DType dtype, Dims dims) {
  double divisor = double_of(by);
  double shift = zero != nullptr ? double_of(*zero) : 0;
  std::vector<double> out;
  for (double v : values) out.push_back(add_zero_point(v / divisor, shift, dtype));
  return store_quantized(out, dtype, std::move(dims));
}

// The operand at `i` with its scale and zero point behind it.
Tensor operand(const EvalContext& e, size_t i) {
  double_of(e.tensor(i + 1));
  if (e.has(i + 2)) double_of(e.tensor(i + 2));
  return dequantized(e.tensor(i), e.tensor(i + 1), optional_tensor(e, i + 2));
}

void eval_pair(EvalContext& e, bool product) {
  Tensor result = map_pairs<double>(operand(e, 0), operand(e, 3), DType::f64,
                                    [&](double a, double b) { return product ? a * b : a + b; });
  e.set(0, requantize(widen<double>(result), e.tensor(6), optional_tensor(e, 7), e.tensor(0).dtype(), result.dims()));
}

void eval_pool(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  bool last = e.attr_int("channels_last") != 0;
  if (x.rank() < 2) fail("shape {} has no channels", to_string(x.dims()));
  std::vector<double> values = widen<double>(operand(e, 0));
  int64_t batch = x.dim(0);
  int64_t channels = x.dim(last ? x.rank() - 1 : 1);
  int64_t plane = product(x.dims(), last ? 1 : 2, last ? x.rank() - 1 : x.rank());
  if (plane == 0) fail("shape {} has nothing to average", to_string(x.dims()));
  std::vector<double> means(static_cast<size_t>(batch * channels), 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    int64_t channel = last ? at / (plane * channels) * channels + at % channels : at / plane;
    means[static_cast<size_t>(channel)] += values[i] / static_cast<double>(plane);
  }
  Dims dims(x.dims().size(), 1);
  dims[0] = batch;
  dims[last ? dims.size() - 1 : 1] = channels;
  e.set(0, requantize(means, e.tensor(3), &e.tensor(4), x.dtype(), std::move(dims)));
}

std::vector<Type> forward_pair(const ForwardContext& c) {
  return {Type::tensor(c.dtype(0), broadcast(c, c.dims(0), c.dims(3)))};
}

void backward_pair(BackwardContext& c) {
  constexpr size_t pair[] = {0, 3};
  backward_broadcast_of(c, pair);
}

std::vector<Type> forward_pool(const ForwardContext& c) {
  if (!c.dims(0) || c.rank(0) < 2) return {Type::tensor(c.dtype(0))};
  const SymDims& x = *c.dims(0);
  SymDims dims(x.size(), c.constant(1));
  size_t channel = c.attr_int("channels_last") != 0 ? x.size() - 1 : 1;
  dims[channel] = x[channel];
  dims[0] = x[0];
  return {Type::tensor(c.dtype(0), dims)};
}

void backward_pool(BackwardContext& c) {
  if (c.result_dims(0)) c.set_rank(0, c.result_dims(0)->size());
}

using kir::Value;

void check_parameters(const LowerContext& c, std::initializer_list<size_t> operands) {
  for (size_t i : operands)
    if (c.has(i) && !has_one_element(c, i)) c.refuse("a scale or zero point may have more than one element");
}

// In f64, in which the products of the reference are exact, too.
Value dequantized_element(const LowerContext& c, size_t i, const Index& at) {
  Value x = cast(c.operand(i, at), DType::f64);
  if (c.has(i + 2)) x = x - only_element(c, i + 2, DType::f64);
  return x * only_element(c, i + 1, DType::f64);
}

Value requantized(const LowerContext& c, Value x, size_t scale_operand, size_t zero_point) {
  kir::Builder& b = c.builder();
  Value q = x / only_element(c, scale_operand, DType::f64);
  Value zero = c.has(zero_point) ? only_element(c, zero_point, DType::f64) : b.number(DType::f64, 0);
  Value y = select(is_nan(q), zero, unary(kir::Op::round, q) + zero);
  double low = c.result_dtype() == DType::i8 ? -128 : 0;
  return cast(max(min(y, b.number(DType::f64, low + 255)), b.number(DType::f64, low)), c.result_dtype());
}

void lower_pair(LowerContext& c, bool product) {
  check_parameters(c, {1, 2, 4, 5, 6, 7});
  c.define(0, [&c, product](const Index& at) {
    auto element = [&](size_t i) {
      return dequantized_element(c, i, broadcast_index(c, *c.dims(i), c.result_dims(), at));
    };
    return requantized(c, product ? element(0) * element(3) : element(0) + element(3), 6, 7);
  });
}

OpDef pair(std::string_view name, std::string_view onnx, std::string_view doc, bool product) {
  OpDef op = blank_record(Mapping::one_to_one);
  op.name = name;
  op.onnx = {"com.microsoft", onnx, {1}};
  op.doc = doc;
  op.operands = {{"a", byte},
                 {"a_scale", scale},
                 {"a_zero_point", byte, optional},
                 {"b", byte},
                 {"b_scale", scale},
                 {"b_zero_point", byte, optional},
                 {"c_scale", scale},
                 {"c_zero_point", byte, optional}};
  op.results = {{"c", byte}};
  op.forward = forward_pair;
  op.backward = backward_pair;
  op.eval = [product](EvalContext& e) { eval_pair(e, product); };
  op.lower = [product](LowerContext& c) { lower_pair(c, product); };
  op.grad = absent("the result is quantised");
  op.samples = {{"$(u8[2, 0], f32[], _, u8[1], f32[], _, f32[])", "u8[2, 0]"},
                {"$(u8[1, 3], f32[], u8[], u8[2, 1], f32[1], u8[1], f32[1], u8[])", "u8[2, 3]"},
                {"$(u8[2], f32[], _, u8[3], f32[], _, f32[])", "error: do not broadcast"},
                {"$(u8[2], f32[2], _, u8[2], f32[], _, f32[])", "error: one element"}};
  return op;
}

OpDef pool() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "ms_qlinear_global_average_pool";
  op.onnx = {"com.microsoft", "QLinearGlobalAveragePool", {1}};
  op.doc = "the mean of each channel of a quantised tensor, quantised again";
  op.operands = {{"x", byte}, {"x_scale", scale}, {"x_zero_point", byte}, {"y_scale", scale}, {"y_zero_point", byte}};
  op.results = {{"y", byte}};
  op.attrs = {int_attr("channels_last", 0)};
  op.forward = forward_pool;
  op.backward = backward_pool;
  op.eval = eval_pool;
  op.grad = absent("the result is quantised");
  op.samples = {{"$(u8[1, 2, 2]{10, 20, 30, 41}, f32[]{0.5}, u8[]{10}, f32[]{0.25}, u8[]{1})", "u8[1, 2, 1]{11, 52}"},
                {"$(i8[1, 2, 2]{10, 20, 30, 40}, f32[]{0.5}, i8[]{0}, f32[]{0.5}, i8[]{0}) {channels_last = 1}",
                 "i8[1, 1, 2]{20, 30}"},
                {"$(u8[0, 2, 2], f32[], u8[], f32[], u8[])", "u8[0, 2, 1]"},
                {"$(u8[2, 3], f32[], u8[], f32[], u8[])", "u8[2, 3]"},
                {"$(u8[2, 3], f32[], u8[], f32[], u8[]) {channels_last = 1}", "u8[2, 3]"},
                {"$(u8[1, 2, 0], f32[], u8[], f32[], u8[])", "error: nothing to average"}};
  return op;
}

}  // namespace

std::vector<OpDef> ms_qlinear_family() {
  OpDef add = pair("ms_qlinear_add", "QLinearAdd", "a + b of quantised tensors, quantised again", false);
  add.samples.insert(
      add.samples.begin(),
      {"$(u8[2]{10, 200}, f32[]{0.5}, u8[]{10}, u8[1]{8}, f32[]{0.25}, _, f32[]{0.5}, u8[]{3})", "u8[2]{7, 197}"});
  OpDef mul = pair("ms_qlinear_mul", "QLinearMul", "a · b of quantised tensors, quantised again", true);
  mul.samples.insert(mul.samples.begin(),
                     {"$(i8[2]{10, -20}, f32[]{0.5}, i8[]{2}, i8[2]{8, 100}, f32[]{0.25}, _, f32[]{0.5}, i8[]{3})",
                      "i8[2]{19, -128}"});
  return {add, pool(), mul};
}

}  // namespace selkie::ops
