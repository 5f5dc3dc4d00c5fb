// Element-wise tests and negation: is_inf, is_nan, not.
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/elementwise.h"
#include "ops/support/lower.h"

namespace selkie::ops {
namespace {

OpDef base() {
  OpDef op = blank_record(Mapping::one_to_one);
  op.operands = {{"x", {"T1", dtypes::floats | dtypes::float8}}};
  op.results = {{"y", {"T2", dtypes::boolean}}};
  op.forward = [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(DType::boolean, c.dims(0))}; };
  op.backward = backward_same;
  op.value = absent("does not occur in shape arithmetic");
  op.grad = absent("the result is bool");
  return op;
}

OpDef is_inf() {
  OpDef op = base();
  op.name = "is_inf";
  op.onnx = {"", "IsInf", {10, 20}};
  op.doc = "whether an element is infinite, of the signs asked for";
  op.attrs = {int_attr("detect_negative", 1), int_attr("detect_positive", 1)};
  op.eval = [](EvalContext& e) {
    bool negative = e.attr_int("detect_negative") != 0;
    bool positive = e.attr_int("detect_positive") != 0;
    e.set(0, map_elements<double>(e.tensor(0), DType::boolean,
                                  [=](double v) -> uint8_t { return std::isinf(v) && (v > 0 ? positive : negative); }));
  };
  op.lower = [](LowerContext& c) {
    bool negative = c.attr_int("detect_negative") != 0;
    bool positive = c.attr_int("detect_positive") != 0;
    lower_elementwise(c, [=](const LowerContext&, std::span<const kir::Value> x) {
      auto equals = [&](double v, bool asked) {
        return asked ? x[0] == x[0].builder().number(x[0].dtype(), v) : x[0].builder().number(DType::boolean, 0);
      };
      return equals(HUGE_VAL, positive) | equals(-HUGE_VAL, negative);
    });
  };
  op.samples = {{"$(f32[3]{1, inf, -inf})", "bool[3]{false, true, true}"},
                {"$(f32[2]{inf, -inf}) {detect_negative = 0}", "bool[2]{true, false}"},
                {"$(i32[2])", "error: must be one of"}};
  return op;
}

OpDef is_nan() {
  OpDef op = base();
  op.name = "is_nan";
  op.onnx = {"", "IsNaN", {9, 13, 20}};
  op.doc = "whether an element is not a number";
  op.eval = [](EvalContext& e) {
    e.set(0, map_elements<double>(e.tensor(0), DType::boolean, [](double v) -> uint8_t { return std::isnan(v); }));
  };
  op.lower = [](LowerContext& c) {
    lower_elementwise(c, [](const LowerContext&, std::span<const kir::Value> x) { return is_nan(x[0]); });
  };
  op.samples = {
      {"$(f32[2]{1, inf})", "bool[2]{false, false}"}, {"$(f32[0])", "bool[0]"}, {"$(i32[2])", "error: must be one of"}};
  return op;
}

OpDef logical_not() {
  OpDef op = base();
  op.name = "not";
  op.onnx = {"", "Not", {1}};
  op.doc = "¬x";
  op.operands = {{"x", bool_tensor}};
  op.results = {{"y", bool_tensor}};
  op.value = [](ValueContext& c) { value_elementwise(c, [](std::span<const sym::Expr> x) { return negation(x[0]); }); };
  op.eval = [](EvalContext& e) {
    e.set(0, map_elements<uint64_t>(e.tensor(0), DType::boolean, [](uint64_t v) { return v ^ 1; }));
  };
  op.lower = [](LowerContext& c) {
    lower_elementwise(c, [](const LowerContext&, std::span<const kir::Value> x) { return logical_not(x[0]); });
  };
  op.samples = {{"$(bool[2]{true, false})", "bool[2]{false, true}"}, {"$(f32[2])", "error: must be one of"}};
  return op;
}

}  // namespace

std::vector<OpDef> predicate_family() { return {is_inf(), is_nan(), logical_not()}; }

}  // namespace selkie::ops
