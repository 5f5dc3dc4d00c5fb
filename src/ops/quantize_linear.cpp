// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: between real numbers and small integers or floats.
#include <algorithm>
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/lower.h"
#include "ops/support/quantize.h"

namespace selkie::ops {
namespace {

const DTypeSet quantized_dtypes =
    dtypes::float8 | dtypes::small_ints | DTypeSet{DType::u8, DType::i8, DType::u16, DType::i16, DType::f4e2m1};
const DTypeSet real_dtypes{DType::f32, DType::f16, DType::bf16};

// An attribute that holds an element type, where 0 stands for none.
std::optional<DType> dtype_option(const EvalContext& e, std::string_view name, DTypeSet allowed) {
  if (e.attr_int(name) == 0) return std::nullopt;
  DType dtype = e.attr_dtype(name);
  if (!allowed.contains(dtype))
    fail("attribute '{}' is {}, which the operator does not take", name, selkie::name(dtype));
  return dtype;
}

std::vector<double> zero_points(const EvalContext& e, const Tensor& scale) {
  if (!e.has(2)) return std::vector<double>(static_cast<size_t>(scale.count()), 0.0);
  if (e.tensor(2).dims() != scale.dims() && !(e.tensor(2).count() == 1 && scale.count() == 1))
    fail("the zero point has shape {}, but the scale {}", to_string(e.tensor(2).dims()), to_string(scale.dims()));
  return widen<double>(e.tensor(2));
}

// Rounds to the precision of a narrower float.
void round_to(std::vector<double>& values, DType dtype) {
  if (dtype != DType::f64) values = widen<double>(narrow<double>(values, dtype, {static_cast<int64_t>(values.size())}));
}

void quantize(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const Tensor& scale = e.tensor(1);
  std::optional<DType> wanted = dtype_option(e, "output_dtype", quantized_dtypes);
  if (wanted && e.has(2) && e.tensor(2).dtype() != *wanted)
    fail("attribute 'output_dtype' is {}, but the zero point is of type {}", name(*wanted), name(e.tensor(2).dtype()));
  DType out = e.has(2) ? e.tensor(2).dtype() : wanted.value_or(DType::u8);
  DType precision = dtype_option(e, "precision", real_dtypes | DTypeSet{DType::f64})
                        .value_or(real_dtypes.contains(scale.dtype()) ? scale.dtype() : DType::f32);
  Granularity at(x.dims(), scale.dims(), e.attr_int("axis"), e.attr_int("block_size"));
  std::vector<double> values = widen<double>(x);
  std::vector<double> scales = widen<double>(scale);
  std::vector<double> zeros = zero_points(e, scale);
  round_to(values, precision);
  round_to(scales, precision);
  for (size_t i = 0; i < values.size(); ++i) values[i] /= scales[at(static_cast<int64_t>(i))];
  round_to(values, precision);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = add_zero_point(values[i], zeros[at(static_cast<int64_t>(i))], out);
  e.set(0,
        store_quantized(values, out, x.dims(), e.attr_int("saturate") != 0 ? Overflow::saturate : Overflow::special));
}

void dequantize(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const Tensor& scale = e.tensor(1);
  DType out = dtype_option(e, "output_dtype", real_dtypes).value_or(scale.dtype());
  if (!real_dtypes.contains(out))
    fail("attribute 'output_dtype' is needed, since a scale of {} does not give it", name(out));
  Granularity at(x.dims(), scale.dims(), e.attr_int("axis"), e.attr_int("block_size"));
  std::vector<double> values = widen<double>(x);
  std::vector<double> scales = widen<double>(scale);
  std::vector<double> zeros = zero_points(e, scale);
  for (size_t i = 0; i < values.size(); ++i) {
    size_t parameter = at(static_cast<int64_t>(i));
    values[i] = (values[i] - zeros[parameter]) * scales[parameter];
  }
  e.set(0, narrow<double>(values, out, x.dims()));
}

void quantize_at_run_time(EvalContext& e) {
  DynamicallyQuantized q = quantize_dynamically(e.tensor(0));
  e.set(0, q.values);
  e.set(1, Tensor::from<float>(DType::f32, {}, {&q.scale, 1}));
  e.set(2, Tensor::from<uint8_t>(DType::u8, {}, {&q.zero_point, 1}));
}

// A scale of several elements is a vector along the axis, or has one element per block; zero points go with scales.
void backward(BackwardContext& c) {
  backward_same(c);
  auto several = [&](size_t i) {
    return c.dims(i) && std::ranges::any_of(*c.dims(i), [&](sym::Expr d) { return c.excludes(d, 1); });
  };
  int64_t block = c.attr_int("block_size");
  if (c.dims(0) && (block > 0 || several(1))) {
    SymDims dims = *c.dims(0);
    auto at = static_cast<size_t>(dims.size() == 1 ? 0 : normalize_axis(c.attr_int("axis"), std::ssize(dims)));
    dims[at] = block > 0 ? sym::ceildiv(dims[at], block) : dims[at];
    c.set_dims(1, block > 0 ? dims : SymDims{dims[at]});
  }
  if (several(1))
    c.set_dims(2, SymDims(*c.dims(1)));
  else if (several(2))
    c.set_dims(1, SymDims(*c.dims(2)));
}

DType declared_dtype(const ForwardContext& c, DType otherwise) {
  return dtype_from_onnx(c.attr_int("output_dtype")).value_or(otherwise);
}

using kir::Value;

// The element of a scale or zero point that belongs to an element of x: one for all, one per index of an axis, or one
// per block along it.
Value parameter(const LowerContext& c, size_t i, const Index& at, DType dtype) {
  if (has_one_element(c, i)) return only_element(c, i, dtype);
  auto axis = at.size() == 1 ? 0 : static_cast<size_t>(normalize_axis(c.attr_int("axis"), std::ssize(at)));
  int64_t block = c.attr_int("block_size");
  if (block == 0) return cast(c.operand(i, {at[axis]}), dtype);
  Index from = at;
  from[axis] = floordiv(at[axis], c.builder().integer(block));
  return cast(c.operand(i, from), dtype);
}

void check_parameters(const LowerContext& c) {
  int64_t block = c.attr_int("block_size");
  if (block < 0) c.refuse("the block size is negative");
  for (size_t i : {1, 2}) {
    if (!c.has(i)) continue;
    bool one = has_one_element(c, i);
    if (one != has_one_element(c, 1) || (one && block > 0)) c.refuse("scale and zero point may differ in shape");
    if (one) continue;
    if (c.rank(0) == 0 || c.rank(i) != (block > 0 ? c.rank(0) : 1)) c.refuse("a scale of another rank");
    auto axis = static_cast<size_t>(c.rank(0) == 1 ? 0 : normalize_axis(c.attr_int("axis"), std::ssize(*c.dims(0))));
    if (block == 0 && !c.proves_equal(c.dims(i)->at(0), c.dims(0)->at(axis))) c.refuse("a scale that may not fit");
  }
}

// In f32, whose quotients and sums the reference has, too: a quotient of f32 is not rounded twice by way of f64, and
// sums that f32 does not hold are beyond the range.
Value quantized(const LowerContext& c, Value x, Value scale, Value zero, DType dtype) {
  kir::Builder& b = c.builder();
  int bits = info(dtype).bits;
  double low = is_signed_integer(dtype) ? -std::ldexp(1.0, bits - 1) : 0;
  Value q = x / scale;
  Value y = select(is_nan(q), zero, unary(kir::Op::round, q) + zero);
  y = max(min(y, b.number(DType::f32, low + std::ldexp(1.0, bits) - 1)), b.number(DType::f32, low));
  return cast(cast(y, DType::i32), dtype);
}

void lower_quantize(LowerContext& c) {
  int64_t precision = c.attr_int("precision");
  bool single = c.dtype(1) == DType::f32 && (precision == 0 || dtype_from_onnx(precision) == DType::f32);
  if (!single) c.refuse("quotients in another precision than f32");
  if (is_float(c.result_dtype())) c.refuse("towards small floats");
  check_parameters(c);
  c.define(0, [&c](const Index& at) {
    Value zero = c.has(2) ? parameter(c, 2, at, DType::f32) : c.builder().number(DType::f32, 0);
    return quantized(c, cast(c.operand(0, at), DType::f32), parameter(c, 1, at, DType::f32), zero, c.result_dtype());
  });
}

void lower_dequantize(LowerContext& c) {
  check_parameters(c);
  c.define(0, [&c](const Index& at) {
    // Differences of 32-bit integers do not fit f32.
    DType dtype = c.dtype(0) == DType::i32 ? DType::f64 : DType::f32;
    Value x = cast(c.operand(0, at), dtype);
    if (c.has(2)) x = x - parameter(c, 2, at, dtype);
    return cast(x * parameter(c, 1, at, dtype), c.result_dtype());
  });
}

// Scale and zero point of all elements.
struct Range {
  Value scale;
  Value zero_point;
};

Range range_of(const LowerContext& c) {
  kir::Builder& b = c.builder();
  Value zero = b.number(DType::f32, 0);
  auto extreme = [&](kir::Op combine) {
    auto element = [&](const Index& at) {
      Value x = c.operand(0, at);
      return select(is_nan(x), zero, x);
    };
    return c.rank(0) == 0 ? binary(combine, zero, element({})) : b.reduce(combine, zero, *c.dims(0), element);
  };
  Value low = extreme(kir::Op::min);
  Value high = extreme(kir::Op::max);
  Value scale = b.hoist(select(high == low, b.number(DType::f32, 1), high - low) / 255);
  Value at_zero = cast(quantized(c, zero - low, scale, zero, DType::u8), DType::f32);
  return {.scale = scale, .zero_point = b.hoist(at_zero)};
}

void lower_at_run_time(LowerContext& c) {
  c.define(0, [&c](const Index& at) {
    Range range = range_of(c);
    return quantized(c, c.operand(0, at), range.scale, range.zero_point, DType::u8);
  });
  c.define(1, [&c](const Index&) { return range_of(c).scale; });
  c.define(2, [&c](const Index&) { return cast(range_of(c).zero_point, DType::u8); });
}

OpDef quantize_linear() {
  OpDef op = blank_record(Mapping::one_to_one);
  op.name = "quantize_linear";
  op.onnx = {"", "QuantizeLinear", {10, 13, 19, 21, 23, 24, 25}};
  op.doc = "y = saturate(round(x / y_scale) + y_zero_point), with one scale for all, per axis or per block";
  op.operands = {{"x", {"T1", real_dtypes | DTypeSet{DType::i32}}},
                 {"y_scale", {"T2", real_dtypes | DTypeSet{DType::i32, DType::f8e8m0}}},
                 {"y_zero_point", {"T3", quantized_dtypes}, optional}};
  op.results = {{"y", {"T3", quantized_dtypes}}};
  op.attrs = {int_attr("axis", 1), int_attr("block_size", 0), int_attr("output_dtype", 0), int_attr("precision", 0),
              int_attr("saturate", 1)};
  op.forward = [](const ForwardContext& c) -> std::vector<Type> {
    return {Type::tensor(c.has(2) ? c.dtype(2) : declared_dtype(c, DType::u8), c.dims(0))};
  };
  op.backward = backward;
  op.eval = quantize;
  op.lower = lower_quantize;
  op.samples = {
      {"$(f32[6]{0, 2, 3, 1000, -254, -1000}, f32[]{2}, u8[]{128})", "u8[6]{128, 129, 130, 255, 1, 0}"},
      {"$(f32[2, 2]{1, 2, 3, 4}, f32[2]{1, 2}, i8[2]{0, 1}) {axis = 0}", "i8[2, 2]{1, 2, 3, 3}"},
      {"$(f32[3, 1]{1, 2, 30}, f32[2, 1]{1, 2}, i4[2, 1]{0, 0}) {axis = 0, block_size = 2}", "i4[3, 1]{1, 2, 7}"},
      {"$(f32[2]{1e6, -1e6}, f32[]{1}) {output_dtype = 17}", "f8e4m3fn[2]{448, -448}"},
      {"$(f32[2]{1e6, 1}, f32[]{1}) {output_dtype = 17, saturate = 0}", "f8e4m3fn[2]{nan, 1}"},
      {"$(f32[0, 3], f32[3], u8[3])", "u8[0, 3]"},
      {"$(f32[2, 0], f32[0]) {axis = -1}", "u8[2, 0]"},
      {"$(f32[2, 3], f32[2])", "error: neither one element nor a vector"},
      {"$(f32[2, 3], f32[2, 2]) {block_size = 1}", "error: does not fit blocks"},
      {"$(f32[2], f32[]) {output_dtype = 1}", "error: does not take"},
      {"$(f32[2], f32[], u8[]) {output_dtype = 3}", "error: the zero point is of type u8"}};
  return op;
}

OpDef dequantize_linear() {
  OpDef op = blank_record(Mapping::one_to_one);
  TypeVar type{"T1", quantized_dtypes | DTypeSet{DType::i32}};
  op.name = "dequantize_linear";
  op.onnx = {"", "DequantizeLinear", {10, 13, 19, 21, 23, 24, 25}};
  op.doc = "y = (x − x_zero_point) · x_scale, with one scale for all, per axis or per block";
  op.operands = {
      {"x", type}, {"x_scale", {"T2", real_dtypes | DTypeSet{DType::f8e8m0}}}, {"x_zero_point", type, optional}};
  op.results = {{"y", {"T3", real_dtypes}}};
  op.attrs = {int_attr("axis", 1), int_attr("block_size", 0), int_attr("output_dtype", 0)};
  op.forward = [](const ForwardContext& c) -> std::vector<Type> {
    return {Type::tensor(declared_dtype(c, c.dtype(1)), c.dims(0))};
  };
  op.backward = backward;
  op.eval = dequantize;
  op.lower = lower_dequantize;
  op.samples = {{"$(u8[4]{0, 3, 128, 255}, f32[]{2}, u8[]{128})", "f32[4]{-256, -250, 0, 254}"},
                {"$(i4[1, 3]{-8, 0, 7}, f16[3]{1, 2, 3})", "f16[1, 3]{-8, 0, 21}"},
                {"$(i8[1, 3]{1, 2, 3}, f32[1, 2]{2, 4}, i8[1, 2]{0, 1}) {block_size = 2}", "f32[1, 3]{2, 4, 8}"},
                {"$(i32[2], f32[]) {output_dtype = 10}", "f16[2]"},
                {"$(u8[2, 0], f32[])", "f32[2, 0]"},
                {"$(u8[2, 0], f32[2, 0], u8[2, 0]) {block_size = 4, axis = -1}", "f32[2, 0]"},
                {"$(u8[2, 3], f32[1], u8[1, 1]) {axis = 7}", "f32[2, 3]"},
                {"$(u8[2], f8e8m0[])", "error: 'output_dtype' is needed"},
                {"$(u8[2], f32[], i8[])", "error: must be u8 like operand 'x'"}};
  return op;
}

OpDef dynamic_quantize_linear() {
  OpDef op = blank_record(Mapping::one_to_one);
  op.name = "dynamic_quantize_linear";
  op.onnx = {"", "DynamicQuantizeLinear", {11}};
  op.doc = "quantises to u8 over the range of the values, and gives scale and zero point";
  op.operands = {{"x", {"T1", dtypes::f32}}};
  op.results = {{"y", {"T2", DTypeSet{DType::u8}}},
                {"y_scale", {"f32", dtypes::f32}},
                {"y_zero_point", {"T2", DTypeSet{DType::u8}}}};
  op.mapping = Mapping::many_to_many;
  op.forward = [](const ForwardContext& c) -> std::vector<Type> {
    return {Type::tensor(DType::u8, c.dims(0)), Type::tensor(DType::f32, SymDims{}),
            Type::tensor(DType::u8, SymDims{})};
  };
  op.backward = backward_same;
  op.eval = quantize_at_run_time;
  op.lower = lower_at_run_time;
  op.samples = {
      {"$(f32[6]{0, 2, -3, -2.5, 1.34, 0.5})", "u8[6]{153, 255, 0, 26, 221, 179}, f32[]{0.0196078438}, u8[]{153}"},
      {"$(f32[2, 0])", "u8[2, 0], f32[], u8[]{0}"},
      {"$(f32[1]{0})", "u8[1]{0}, f32[], u8[]{0}"},
      {"$(f64[2])", "error: must be one of"}};
  return op;
}

}  // namespace

std::vector<OpDef> quantize_linear_family() {
  return {quantize_linear(), dequantize_linear(), dynamic_quantize_linear()};
}

}  // namespace selkie::ops
