// Gelu, BiasGelu and FastGelu of com.microsoft.
#include <cmath>
#include <numbers>

#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/elementwise.h"
#include "ops/support/lower.h"

namespace selkie::ops {
namespace {

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }
double gelu_by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

void eval(EvalContext& e, double (*f)(double)) {
  const Tensor& x = e.tensor(0);
  if (!e.has(1)) return e.set(0, map_elements<double>(x, x.dtype(), f));
  const Tensor& bias = e.tensor(1);
  if (bias.rank() != 1) fail("the bias has shape {}, but must be of rank 1", to_string(bias.dims()));
  if (broadcast(x.dims(), bias.dims()) != x.dims())
    fail("a bias of shape {} does not broadcast to {}", to_string(bias.dims()), to_string(x.dims()));
  e.set(0, map_pairs<double>(x, bias, x.dtype(), [f](double a, double b) { return f(a + b); }));
}

// The bias is a vector that broadcasts to the last axis.
void backward(BackwardContext& c) {
  backward_same(c);
  if (!c.has(1)) return;
  c.set_rank(1, 1);
  if (c.dims(0)) require_broadcast_to(c, SymDims(*c.dims(1)), SymDims(*c.dims(0)));
}

void lower(LowerContext& c, bool by_tanh) {
  if (c.has(1) && (c.rank(0) == 0 || c.rank(1) != 1)) c.refuse("the bias is no vector");
  c.define(0, [&c, by_tanh](const Index& at) {
    DType dtype = compute_dtype(c.dtype(0));
    kir::Value x = cast(c.operand(0, at), dtype);
    if (c.has(1)) x = x + broadcast_operand(c, 1, at, dtype);
    kir::Value inner = by_tanh ? (x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi) : x / std::numbers::sqrt2;
    kir::Value y = x * 0.5 * (unary(by_tanh ? kir::Op::tanh : kir::Op::erf, inner) + 1);
    return cast(y, c.result_dtype());
  });
}

OpDef record(std::string_view name, std::string_view onnx, std::string_view doc, double (*f)(double)) {
  OpDef op = blank_record(Mapping::one_to_one);
  op.name = name;
  op.onnx = {"com.microsoft", onnx, {1}};
  op.doc = doc;
  op.operands = {{"x", float_tensor}};
  op.results = {{"y", float_tensor}};
  op.forward = same_as_first;
  op.backward = backward;
  op.eval = [f](EvalContext& e) { eval(e, f); };
  op.lower = [by_tanh = f == gelu_by_tanh](LowerContext& c) { lower(c, by_tanh); };
  return op;
}

}  // namespace

std::vector<OpDef> ms_gelu_family() {
  OpDef exact = record("ms_gelu", "Gelu", "y = x·Φ(x)", gelu);
  exact.samples = {{"$(f32[5]{-2, -0.5, 0, 1, 3})", "f32[5]{-0.0455002636, -0.154268771, 0, 0.841344774, 2.99595022}"},
                   {"$(f32[0, 2])", "f32[0, 2]"},
                   {"$(i32[2])", "error: must be one of"}};
  OpDef biased = record("ms_bias_gelu", "BiasGelu", "y = Φ(a + b)·(a + b), with a vector b", gelu);
  biased.operands = {{"a", float_tensor}, {"b", float_tensor}};
  biased.samples = {{"$(f32[2, 2]{0.25, 0.790000021, 0.550000012, -0.550000012}, f32[2]{-0.400000006, 0.75})",
                     "f32[2, 2]{-0.0660573468, 1.44485855, 0.0839426517, 0.115851939}"},
                    {"$(f32[0, 2], f32[2])", "f32[0, 2]"},
                    {"$(f32[2, 0], f32[1])", "f32[2, 0]"},
                    {"$(f32[2, 2], f32[3])", "error: do not broadcast"}};
  OpDef fast = record("ms_fast_gelu", "FastGelu",
                      "y = x·Φ(x) approximated by tanh, after an optional bias is added to x", gelu_by_tanh);
  fast.operands = {{"x", float_tensor}, {"bias", float_tensor, optional}};
  fast.samples = {{"$(f32[2, 2]{0.25, 0.790000021, 0.550000012, -0.550000012}, f32[2]{-0.400000006, 0.75})",
                   "f32[2, 2]{-0.0660575107, 1.44465208, 0.0839424878, 0.115851432}"},
                  {"$(f32[1, 0])", "f32[1, 0]"},
                  {"$(f32[2, 2], f32[2, 2])", "error: must be of rank 1"}};
  return {exact, biased, fast};
}

}  // namespace selkie::ops
