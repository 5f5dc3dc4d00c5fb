// Gemm: alpha·op(A)·op(B) + beta·C.
#include "ops/support/gemm.h"

#include <algorithm>
#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", dtypes::floats | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}};

Tensor maybe_transposed(const Tensor& t, bool swap) {
  if (t.rank() != 2) fail("matrices must have rank 2, but one has shape {}", to_string(t.dims()));
  std::vector<int64_t> order{1, 0};
  return swap ? transpose(t, order) : t;
}

void eval(EvalContext& e) {
  double alpha = e.attr_float("alpha");
  double beta = e.attr_float("beta");
  Tensor product = matmul(maybe_transposed(e.tensor(0), e.attr_int("transA") != 0),
                          maybe_transposed(e.tensor(1), e.attr_int("transB") != 0));
  DType dtype = product.dtype();
  if (!e.has(2)) {
    e.set(0, alpha == 1 ? product : map_elements<double>(product, dtype, [=](double v) { return alpha * v; }));
    return;
  }
  Tensor bias = broadcast_to(e.tensor(2), product.dims());
  if (is_float(dtype))
    e.set(0, map_pairs<double>(product, bias, dtype, [=](double p, double c) { return alpha * p + beta * c; }));
  else
    e.set(0, map_pairs<int64_t>(product, bias, dtype, [=](int64_t p, int64_t c) {
            return static_cast<int64_t>(alpha * static_cast<double>(p) + beta * static_cast<double>(c));
          }));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0) || !c.dims(1) || c.rank(0) != 2 || c.rank(1) != 2)
    return {Type::tensor(c.dtype(0), c.unknown_dims(0, 2))};
  size_t swap_a = c.attr_int("transA") != 0;
  size_t swap_b = c.attr_int("transB") != 0;
  return {Type::tensor(c.dtype(0), SymDims{(*c.dims(0))[swap_a], (*c.dims(1))[1 - swap_b]})};
}

void backward(BackwardContext& c) {
  c.set_rank(0, 2);
  c.set_rank(1, 2);
  const SymDims a = *c.dims(0);
  const SymDims b = *c.dims(1);
  size_t swap_a = c.attr_int("transA") != 0;
  size_t swap_b = c.attr_int("transB") != 0;
  c.equal(a[1 - swap_a], b[swap_b]);
  if (!c.result_dims(0)) return;
  c.equal(a[swap_a], c.result_dims(0)->at(0));
  c.equal(b[1 - swap_b], c.result_dims(0)->at(1));
}

// The product that has a library kernel: a as it is, nothing scaled, and at most a bias of one row.
void lower_product(LowerContext& c) {
  bool plain = c.dtype(0) == DType::f32 && c.attr_float("alpha") == 1;
  size_t swap_a = c.attr_int("transA") != 0;
  size_t swap_b = c.attr_int("transB") != 0;
  ir::ProductForm form{.m = c.result_dims()[0],
                       .n = c.result_dims()[1],
                       .k = (*c.dims(0))[1 - swap_a],
                       .a = {.rows = {swap_a}, .columns = {1 - swap_a}},
                       .b = {.rows = {swap_b}, .columns = {1 - swap_b}},
                       .c = {.rows = {0}, .columns = {1}}};
  if (c.has(2)) {
    const SymDims& bias = *c.dims(2);
    plain = plain && c.attr_float("beta") == 1 && !bias.empty() && c.proves_equal(bias.back(), form.n) &&
            std::all_of(bias.begin(), bias.end() - 1, [](sym::Expr d) { return d.constant() == 1; });
    form.bias = 2;
  }
  if (plain) c.set_product(std::move(form));
}

void lower(LowerContext& c) {
  DType dtype = compute_dtype(c.dtype(0));
  if (!is_float(dtype)) c.refuse("of integers");
  if (c.rank(0) != 2 || c.rank(1) != 2) c.refuse("of ranks other than 2");
  lower_product(c);
  c.define(0, [&c, dtype](const Index& at) {
    bool swap_a = c.attr_int("transA") != 0;
    bool swap_b = c.attr_int("transB") != 0;
    kir::Builder& b = c.builder();
    sym::Expr depth = (*c.dims(0))[swap_a ? 0 : 1];
    kir::Value sum = b.reduce(kir::Op::add, b.number(dtype, 0), {{depth}}, [&](const Index& k) {
      Index left = swap_a ? Index{k[0], at[0]} : Index{at[0], k[0]};
      Index right = swap_b ? Index{at[1], k[0]} : Index{k[0], at[1]};
      return cast(c.operand(0, left), dtype) * cast(c.operand(1, right), dtype);
    });
    kir::Value y = sum * double{c.attr_float("alpha")};
    if (c.has(2)) y = y + broadcast_operand(c, 2, at, dtype) * double{c.attr_float("beta")};
    return cast(y, c.result_dtype());
  });
}

}  // namespace

OpDef gemm_op() {
  return {
      .name = "gemm",
      .onnx = {"", "Gemm", {1, 6, 7, 9, 11, 13}},
      .doc = "alpha·A·B + beta·C, with A and B transposed on request",
      .operands = {{"a", type}, {"b", type}, {"c", type, optional}},
      .results = {{"y", type}},
      .attrs = {float_attr("alpha", 1), float_attr("beta", 1), int_attr("transA", 0), int_attr("transB", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("products of matrices do not occur in shape arithmetic"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .upgrades = {{7, drop_attrs({"broadcast"})}},
      .samples = {{"$(f32[2, 3], f32[3, 4], f32[4])", "f32[2, 4]"},
                  {"$(f32[3, 2], f32[4, 3]) {transA = 1, transB = 1}", "f32[2, 4]"},
                  {"$(f32[1, 2]{1, 2}, f32[2, 1]{3, 4}, f32[]{1}) {alpha = 2.0, beta = 3.0}", "f32[1, 1]{25}"},
                  {"$(f32[2, 0], f32[0, 3])", "f32[2, 3]{0, 0, 0, 0, 0, 0}"},
                  {"$(f32[2, 3], f32[4, 5])", "error: do not multiply"},
                  {"$(f32[2], f32[4, 5])", "error: rank 2"}},
  };
}

}  // namespace selkie::ops
