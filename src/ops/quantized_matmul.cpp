// MatMulInteger and QLinearMatMul: matrix products of quantised tensors.
#include "ops/support/blank.h"
#include "ops/support/elementwise.h"
#include "ops/support/gemm.h"
#include "ops/support/matmul_dims.h"
#include "ops/support/matmul_lower.h"
#include "ops/support/quantize.h"

namespace selkie::ops {
namespace {

const DTypeSet bytes{DType::u8, DType::i8};
const DTypeSet quantized = bytes | dtypes::float8;

// The product without zero points, exact: i64, or f64 if an operand holds floats.
Tensor exact_product(const Tensor& a, const Tensor* a_zero, const Tensor& b, const Tensor* b_zero) {
  Tensor x = centered(a, a_zero, true);
  Tensor y = centered(b, b_zero);
  if (x.dtype() == y.dtype()) return matmul(x, y);
  auto as_reals = [](const Tensor& t) { return narrow<double>(widen<double>(t), DType::f64, t.dims()); };
  return matmul(as_reals(x), as_reals(y));
}

void eval_integer(EvalContext& e) {
  Tensor product = exact_product(e.tensor(0), optional_tensor(e, 2), e.tensor(1), optional_tensor(e, 3));
  e.set(0, narrow<int64_t>(widen<int64_t>(product), DType::i32, product.dims()));
}

void eval_linear(EvalContext& e) {
  const Tensor& zero = e.tensor(7);
  Tensor result = exact_product(e.tensor(0), &e.tensor(2), e.tensor(3), &e.tensor(5));
  Dims dims = result.dims();
  auto whole = [&](const Tensor& scale) { return broadcast_to(scale.count() == 1 ? scale.reshaped({}) : scale, dims); };
  auto times = [](double a, double b) { return a * b; };
  // One factor, as kernels that know scales before the run have it.
  Tensor factor =
      map_pairs<double>(whole(as_column(e.tensor(1), e.tensor(0).rank())), whole(e.tensor(4)), DType::f64, times);
  factor = map_pairs<double>(factor, whole(e.tensor(6)), DType::f64, [](double a, double b) { return a / b; });
  result = map_pairs<double>(result, factor, DType::f64, times);
  Tensor zeros = broadcast_to(zero.count() == 1 ? zero.reshaped({}) : zero, dims);
  Tensor sums = map_pairs<double>(result, zeros, DType::f64,
                                  [&](double a, double b) { return add_zero_point(a, b, zero.dtype()); });
  e.set(0, store_quantized(widen<double>(sums), zero.dtype(), dims));
}

using kir::Value;

// A zero point or scale: one for all, or a vector along the rows of a or the columns of b. `index` is null for vectors,
// which have neither.
Value parameter(const LowerContext& c, size_t i, Value index, DType dtype) {
  if (has_one_element(c, i)) return only_element(c, i, dtype);
  return cast(c.operand(i, {index}), dtype);
}

void check_parameter(const LowerContext& c, size_t i, std::optional<sym::Expr> size) {
  if (!c.has(i) || has_one_element(c, i)) return;
  if (!size || c.rank(i) != 1 || !c.proves_equal(c.dims(i)->at(0), *size)) c.refuse("a parameter may not fit");
}

// Rows of operand a, and columns of operand b.
void check_parameters(const LowerContext& c, size_t a, std::initializer_list<size_t> of_rows, size_t b,
                      std::initializer_list<size_t> of_columns) {
  if (c.rank(a) == 0 || c.rank(b) == 0) c.refuse("of scalars");
  for (size_t i : of_rows)
    check_parameter(c, i, c.rank(a) > 1 ? std::optional((*c.dims(a))[c.rank(a) - 2]) : std::nullopt);
  for (size_t i : of_columns) check_parameter(c, i, c.rank(b) > 1 ? std::optional(c.dims(b)->back()) : std::nullopt);
}

// In i32, which wraps as the reference's result does.
void lower_integer(LowerContext& c) {
  check_parameters(c, 0, {2}, 1, {3});
  c.set_product(product_form(c));
  c.define(0, [&c](const Index& at) {
    auto [row, column] = row_and_column(c, 0, 1, at);
    Value none = c.builder().number(DType::i32, 0);
    Value zero_a = c.has(2) ? parameter(c, 2, row, DType::i32) : none;
    Value zero_b = c.has(3) ? parameter(c, 3, column, DType::i32) : none;
    return product_element(c, 0, 1, at, DType::i32, [&](Value x, Value y) { return (x - zero_a) * (y - zero_b); });
  });
}

// The sum is exact; what follows is computed in f64 as by the reference.
void lower_linear(LowerContext& c) {
  check_parameters(c, 0, {1, 2}, 3, {4, 5, 6, 7});
  c.define(0, [&c](const Index& at) {
    kir::Builder& b = c.builder();
    auto [row, column] = row_and_column(c, 0, 3, at);
    // A product of bytes less their zero points has 16 bits.
    bool fits = c.proves_less_equal(c.dims(0)->back(), c.constant(1 << 15));
    DType exact = fits ? DType::i32 : DType::i64;
    Value zero_a = parameter(c, 2, row, exact);
    Value zero_b = parameter(c, 5, column, exact);
    Value sum = product_element(c, 0, 3, at, exact, [&](Value x, Value y) { return (x - zero_a) * (y - zero_b); });
    Value factor =
        parameter(c, 1, row, DType::f64) * parameter(c, 4, column, DType::f64) / parameter(c, 6, column, DType::f64);
    Value real = cast(sum, DType::f64) * factor;
    Value zero = parameter(c, 7, column, DType::f64);
    double low = c.result_dtype() == DType::i8 ? -128 : 0;
    Value y = select(is_nan(real), zero, unary(kir::Op::round, real) + zero);
    return cast(max(min(y, b.number(DType::f64, low + 255)), b.number(DType::f64, low)), c.result_dtype());
  });
}

OpDef matmul_integer() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.grad = absent("the result is quantised");
  TypeVar a{"T1", bytes};
  TypeVar b{"T2", bytes};
  op.name = "matmul_integer";
  op.onnx = {"", "MatMulInteger", {10}};
  op.doc = "matrix product of 8-bit integers less their zero points, in 32 bits";
  op.operands = {{"a", a}, {"b", b}, {"a_zero_point", a, optional}, {"b_zero_point", b, optional}};
  op.results = {{"y", {"T3", DTypeSet{DType::i32}}}};
  op.forward = [](const ForwardContext& c) {
    return std::vector<Type>{Type::tensor(DType::i32, matmul_dims(c, c.dims(0), c.dims(1)))};
  };
  op.backward = [](BackwardContext& c) { matmul_backward(c, 0, 1); };
  op.eval = eval_integer;
  op.lower = lower_integer;
  op.samples = {{"$(u8[2, 2]{11, 7, 3, 10}, u8[2, 2]{1, 4, 2, 5}, u8[]{12}, u8[]{0})", "i32[2, 2]{-11, -29, -13, -46}"},
                {"$(u8[2, 1]{5, 6}, i8[1, 2]{1, 2}, u8[2]{1, 2}, i8[2]{0, 1})", "i32[2, 2]{4, 4, 4, 4}"},
                {"$(u8[2, 0], u8[0, 3])", "i32[2, 3]{0, 0, 0, 0, 0, 0}"},
                {"$(u8[2], u8[2])", "i32[]{2}"},
                {"$(u8[2, 3], u8[2, 3])", "error: do not multiply"},
                {"$(u8[2, 3], u8[3, 2], u8[3])", "error: does not broadcast"}};
  return op;
}

OpDef qlinear_matmul() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.grad = absent("the result is quantised");
  TypeVar a{"T1", quantized};
  TypeVar b{"T2", quantized};
  TypeVar y{"T3", quantized};
  TypeVar scale{"TS", DTypeSet{DType::f32, DType::f16, DType::bf16}};
  op.name = "qlinear_matmul";
  op.onnx = {"", "QLinearMatMul", {10, 21}};
  op.doc = "matrix product of quantised tensors, quantised again";
  op.operands = {{"a", a},           {"a_scale", scale},  {"a_zero_point", a}, {"b", b},
                 {"b_scale", scale}, {"b_zero_point", b}, {"y_scale", scale},  {"y_zero_point", y}};
  op.results = {{"y", y}};
  op.forward = [](const ForwardContext& c) {
    return std::vector<Type>{Type::tensor(c.dtype(7), matmul_dims(c, c.dims(0), c.dims(3)))};
  };
  op.backward = [](BackwardContext& c) { matmul_backward(c, 0, 3); };
  op.eval = eval_linear;
  op.lower = lower_linear;
  op.samples = {
      {"$(u8[1, 2]{3, 4}, f32[]{0.5}, u8[]{1}, i8[2, 1]{2, -1}, f32[]{2}, i8[]{0}, f32[]{0.5}, u8[]{10})",
       "u8[1, 1]{12}"},
      {"$(u8[2, 1]{3, 4}, f32[2]{1, 2}, u8[2]{1, 2}, u8[1, 2]{1, 2}, f32[2]{1, 3}, u8[2]{0, 1}, f32[]{1}, u8[]{0})",
       "u8[2, 2]{2, 6, 4, 12}"},
      {"$(u8[2, 0], f32[], u8[], u8[0, 1], f32[], u8[], f32[], i8[]{5})", "i8[2, 1]{5, 5}"},
      {"$(u8[2, 3], f32[], u8[], u8[2, 3], f32[], u8[], f32[], u8[])", "error: do not multiply"}};
  return op;
}

}  // namespace

std::vector<OpDef> quantized_matmul_family() { return {matmul_integer(), qlinear_matmul()}; }

}  // namespace selkie::ops
