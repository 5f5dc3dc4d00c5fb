// requantize: sums of integer products, made bytes again. What is left of QLinearConv and QLinearMatMul beside the
// sums.
#include <algorithm>
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar sum_type{"sum", DTypeSet{DType::i32}};
constexpr TypeVar byte_type{"T", DTypeSet{DType::u8, DType::i8}};

double least(DType dtype) { return dtype == DType::i8 ? -128 : 0; }

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  DType dtype = e.tensor(2).dtype();
  double zero = double_of(e.tensor(2));
  Tensor sums = x;
  if (e.has(3))
    sums =
        map_pairs<double>(x, broadcast_to(e.tensor(3), x.dims()), DType::f64, [](double a, double b) { return a + b; });
  auto quantized = [&](double sum, double scale) {
    return std::clamp(std::nearbyint(sum * scale) + zero, least(dtype), least(dtype) + 255);
  };
  e.set(0, map_pairs<double>(sums, broadcast_to(e.tensor(1), x.dims()), dtype, quantized));
}

// Whether operand i is known to broadcast to x.
bool broadcasts(const LowerContext& c, size_t i) {
  const SymDims& x = *c.dims(0);
  const SymDims& dims = *c.dims(i);
  if (dims.size() > x.size()) return false;
  size_t shift = x.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis].constant() != 1 && !c.proves_equal(dims[axis], x[shift + axis])) return false;
  return true;
}

// Sums of two integers and their scale are exact in f64, as in the reference.
void lower(LowerContext& c) {
  if (!has_one_element(c, 2)) c.refuse("the zero point may have another size");
  if (!broadcasts(c, 1) || (c.has(3) && !broadcasts(c, 3))) c.refuse("a parameter may not fit");
  c.define(0, [&c](const Index& at) {
    kir::Builder& b = c.builder();
    kir::Value x = cast(c.operand(0, at), DType::f64);
    if (c.has(3)) x = x + broadcast_operand(c, 3, at, DType::f64);
    kir::Value y = unary(kir::Op::round, x * broadcast_operand(c, 1, at, DType::f64));
    y = y + only_element(c, 2, DType::f64);
    double low = least(c.result_dtype());
    y = max(min(y, b.number(DType::f64, low + 255)), b.number(DType::f64, low));
    return cast(cast(y, DType::i32), c.result_dtype());
  });
}

}  // namespace

OpDef requantize_op() {
  return {
      .name = "requantize",
      .onnx = {},
      .doc = "y = saturate(round((x + bias) · scale) + zero_point), where scale and bias broadcast to x",
      .operands = {{"x", sum_type},
                   {"scale", {"f64", DTypeSet{DType::f64}}},
                   {"zero_point", byte_type},
                   {"bias", sum_type, optional}},
      .results = {{"y", byte_type}},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(2), c.dims(0))}; },
      .backward = absent("how the parameters broadcast does not follow from the result"),
      .value = absent("quantised numbers do not occur in shape arithmetic"),
      .eval = eval,
      .lower = lower,
      .grad = absent("the result is quantised"),
      .samples = {{"$(i32[2, 2]{1, 3, -300, 1000}, f64[2]{0.5, 2}, u8[]{10})", "u8[2, 2]{10, 16, 0, 255}"},
                  {"$(i32[1, 2, 1]{4, 4}, f64[2, 1]{1, 0.25}, i8[]{-1}, i32[2, 1]{1, 2})", "i8[1, 2, 1]{4, 1}"},
                  {"$(i32[0, 3], f64[], u8[])", "u8[0, 3]"},
                  {"$(i32[2], f64[3], u8[])", "error: broadcast"}},
  };
}

}  // namespace selkie::ops
