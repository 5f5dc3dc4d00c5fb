// Element-wise operators of one operand: a table row each.
#include <cmath>
#include <map>
#include <numbers>

#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

using Params = const float*;  // float attributes in the row's order
using RealFunction = double (*)(double, Params);
using IntFunction = int64_t (*)(int64_t);
using NaturalFunction = uint64_t (*)(uint64_t);

struct Row {
  std::string_view name;
  std::string_view onnx;
  std::vector<int> versions;
  std::string_view doc;
  DTypeSet dtypes;
  RealFunction real;
  std::vector<ir::AttrDef> attrs = {};
  // Exact forms for integers; those without one go through double.
  IntFunction integer = nullptr;
  NaturalFunction natural = nullptr;
  // For shape arithmetic on integers.
  sym::Expr (*symbolic)(sym::Expr) = nullptr;
};

double round_half_even(double x) { return x - std::remainder(x, 1.0); }
double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
int64_t wrapping_negate(int64_t x) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); }

const DTypeSet real = dtypes::floats;
const DTypeSet signed_numbers = dtypes::floats | dtypes::signed_ints;

// clang-format off
std::vector<Row> rows() {
  return {
    {"abs", "Abs", {1, 6, 13}, "y = |x|", dtypes::numeric, [](double x, Params) { return std::fabs(x); }, {},
     [](int64_t x) { return x < 0 ? wrapping_negate(x) : x; }, [](uint64_t x) { return x; },
     [](sym::Expr x) { return sym::max(x, -x); }},
    {"acos", "Acos", {7, 22}, "y = arccos x", real, [](double x, Params) { return std::acos(x); }},
    {"acosh", "Acosh", {9, 22}, "y = arcosh x", real, [](double x, Params) { return std::acosh(x); }},
    {"asin", "Asin", {7, 22}, "y = arcsin x", real, [](double x, Params) { return std::asin(x); }},
    {"asinh", "Asinh", {9, 22}, "y = arsinh x", real, [](double x, Params) { return std::asinh(x); }},
    {"atan", "Atan", {7, 22}, "y = arctan x", real, [](double x, Params) { return std::atan(x); }},
    {"atanh", "Atanh", {9, 22}, "y = artanh x", real, [](double x, Params) { return std::atanh(x); }},
    {"bitwise_not", "BitwiseNot", {18}, "y = ~x", dtypes::ints, nullptr, {}, [](int64_t x) { return ~x; },
     [](uint64_t x) { return ~x; }},
    {"ceil", "Ceil", {1, 6, 13}, "the least integer not below x", real, [](double x, Params) { return std::ceil(x); }},
    {"celu", "Celu", {12}, "y = max(x, 0) + min(alpha·(exp(x/alpha) − 1), 0)", dtypes::f32,
     [](double x, Params p) { return std::max(x, 0.0) + std::min(0.0, p[0] * std::expm1(x / p[0])); },
     {float_attr("alpha", 1)}},
    {"cos", "Cos", {7, 22}, "y = cos x", real, [](double x, Params) { return std::cos(x); }},
    {"cosh", "Cosh", {9, 22}, "y = cosh x", real, [](double x, Params) { return std::cosh(x); }},
    {"elu", "Elu", {1, 6, 22}, "x where x > 0, alpha·(exp x − 1) elsewhere", real,
     [](double x, Params p) { return x > 0 ? x : p[0] * std::expm1(x); }, {float_attr("alpha", 1)}},
    {"erf", "Erf", {9, 13}, "the error function", dtypes::numeric, [](double x, Params) { return std::erf(x); }},
    {"exp", "Exp", {1, 6, 13}, "y = exp x", real, [](double x, Params) { return std::exp(x); }},
    {"floor", "Floor", {1, 6, 13}, "the greatest integer not above x", real, [](double x, Params) { return std::floor(x); }},
    {"hard_sigmoid", "HardSigmoid", {1, 6, 22}, "y = max(0, min(1, alpha·x + beta))", real,
     [](double x, Params p) { return std::max(0.0, std::min(1.0, p[0] * x + p[1])); },
     {float_attr("alpha", 0.2f), float_attr("beta", 0.5f)}},
    {"hard_swish", "HardSwish", {14, 22}, "y = x·max(0, min(1, x/6 + 1/2))", real,
     [](double x, Params) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); }},
    {"leaky_relu", "LeakyRelu", {1, 6, 16}, "x where x ≥ 0, alpha·x elsewhere", real,
     [](double x, Params p) { return x >= 0 ? x : p[0] * x; }, {float_attr("alpha", 0.01f)}},
    {"log", "Log", {1, 6, 13}, "the natural logarithm", real, [](double x, Params) { return std::log(x); }},
    {"mish", "Mish", {18, 22}, "y = x·tanh(softplus x)", real, [](double x, Params) { return x * std::tanh(softplus(x)); }},
    {"neg", "Neg", {1, 6, 13}, "y = −x", signed_numbers, [](double x, Params) { return -x; }, {}, wrapping_negate,
     nullptr, [](sym::Expr x) { return -x; }},
    {"reciprocal", "Reciprocal", {1, 6, 13}, "y = 1/x", real, [](double x, Params) { return 1 / x; }},
    {"relu", "Relu", {1, 6, 13, 14}, "y = max(x, 0)", signed_numbers,
     [](double x, Params) { return x > 0 || std::isnan(x) ? x : 0.0; }, {}, [](int64_t x) { return std::max<int64_t>(x, 0); },
     nullptr, [](sym::Expr x) { return sym::max(x, 0); }},
    {"round", "Round", {11, 22}, "to the nearest integer, halves to even", real,
     [](double x, Params) { return std::isfinite(x) ? round_half_even(x) : x; }},
    {"selu", "Selu", {1, 6, 22}, "gamma·x where x > 0, gamma·alpha·(exp x − 1) elsewhere", real,
     [](double x, Params p) { return p[1] * (x > 0 ? x : p[0] * std::expm1(x)); },
     {float_attr("alpha", 1.67326319217681884765625f), float_attr("gamma", 1.05070102214813232421875f)}},
    {"shrink", "Shrink", {9}, "x + bias below −lambd, x − bias above lambd, 0 between", dtypes::numeric,
     [](double x, Params p) { return x < -p[1] ? x + p[0] : x > p[1] ? x - p[0] : 0.0; },
     {float_attr("bias", 0), float_attr("lambd", 0.5f)}},
    {"sigmoid", "Sigmoid", {1, 6, 13}, "y = 1/(1 + exp(−x))", real, [](double x, Params) { return sigmoid(x); }},
    {"sign", "Sign", {9, 13}, "−1, 0 or 1", dtypes::numeric,
     [](double x, Params) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }, {},
     [](int64_t x) { return int64_t{(x > 0) - (x < 0)}; }, [](uint64_t x) { return uint64_t{x > 0}; },
     [](sym::Expr x) { return sym::max(sym::min(x, 1), -1); }},
    {"sin", "Sin", {7, 22}, "y = sin x", real, [](double x, Params) { return std::sin(x); }},
    {"sinh", "Sinh", {9, 22}, "y = sinh x", real, [](double x, Params) { return std::sinh(x); }},
    {"softplus", "Softplus", {1, 22}, "y = log(1 + exp x)", real, [](double x, Params) { return softplus(x); }},
    {"softsign", "Softsign", {1, 22}, "y = x/(1 + |x|)", real, [](double x, Params) { return x / (1 + std::fabs(x)); }},
    {"sqrt", "Sqrt", {1, 6, 13}, "the square root", real, [](double x, Params) { return std::sqrt(x); }},
    {"swish", "Swish", {24}, "y = x·sigmoid(alpha·x)", real, [](double x, Params p) { return x * sigmoid(p[0] * x); },
     {float_attr("alpha", 1)}},
    {"tan", "Tan", {7, 22}, "y = tan x", real, [](double x, Params) { return std::tan(x); }},
    {"tanh", "Tanh", {1, 6, 13}, "y = tanh x", real, [](double x, Params) { return std::tanh(x); }},
    {"thresholded_relu", "ThresholdedRelu", {10, 22}, "x where x > alpha, 0 elsewhere", real,
     [](double x, Params p) { return x > p[0] ? x : 0.0; }, {float_attr("alpha", 1)}},
  };
}
// clang-format on

using kir::Value;
using Kernel = Value (*)(Value x, Params);

Value zero(Value x) { return x.builder().number(x.dtype(), 0); }
Value one(Value x) { return x.builder().number(x.dtype(), 1); }
Value exp_minus_1(Value x) { return unary(kir::Op::exp, x) - 1; }
Value log_1_plus_exp(Value x) {
  return max(x, zero(x)) + unary(kir::Op::log, unary(kir::Op::exp, -unary(kir::Op::abs, x)) + 1);
}
// exp(x)/2, which is finite wherever sinh and cosh are.
Value half_exp(Value x) {
  Value root = unary(kir::Op::exp, x * 0.5);
  return root * 0.5 * root;
}
// Σ xⁿ/n! over odd n; what is left out for |x| < 1 is below the precision of f64.
Value small_sinh(Value x) {
  Value square = x * x;
  Value sum = one(x);
  for (int n = 17; n > 1; n -= 2) sum = sum * square / static_cast<double>(n * (n - 1)) + 1;
  return x * sum;
}
Value clamp_to_unit(Value x) { return max(zero(x), min(one(x), x)); }
template <kir::Op op>
Value plain(Value x, Params) {
  return unary(op, x);
}

// What an element becomes in a kernel. Operators that are not here run on the host.
const std::map<std::string_view, Kernel>& kernels() {
  static const std::map<std::string_view, Kernel> table = {
      {"abs", plain<kir::Op::abs>},
      {"bitwise_not", plain<kir::Op::bit_not>},
      {"ceil", plain<kir::Op::ceil>},
      {"celu",
       [](Value x, Params p) { return max(x, zero(x)) + min(zero(x), exp_minus_1(x / double{p[0]}) * double{p[0]}); }},
      {"cos", plain<kir::Op::cos>},
      {"cosh", [](Value x, Params) { return half_exp(x) + half_exp(-x); }},
      {"elu", [](Value x, Params p) { return select(zero(x) < x, x, exp_minus_1(x) * double{p[0]}); }},
      {"erf", plain<kir::Op::erf>},
      {"exp", plain<kir::Op::exp>},
      {"floor", plain<kir::Op::floor>},
      {"hard_sigmoid", [](Value x, Params p) { return clamp_to_unit(x * double{p[0]} + double{p[1]}); }},
      {"hard_swish", [](Value x, Params) { return x * clamp_to_unit(x / 6 + 0.5); }},
      {"leaky_relu", [](Value x, Params p) { return select(zero(x) <= x, x, x * double{p[0]}); }},
      {"log", plain<kir::Op::log>},
      {"mish", [](Value x, Params) { return x * unary(kir::Op::tanh, log_1_plus_exp(x)); }},
      {"neg", plain<kir::Op::neg>},
      {"reciprocal", [](Value x, Params) { return 1.0 / x; }},
      {"relu", [](Value x, Params) { return max(x, zero(x)); }},
      {"round", plain<kir::Op::round>},
      {"selu", [](Value x, Params p) { return select(zero(x) < x, x, exp_minus_1(x) * double{p[0]}) * double{p[1]}; }},
      {"sigmoid", plain<kir::Op::sigmoid>},
      {"sign",
       [](Value x, Params) {
         Value sign = select(zero(x) < x, one(x), select(x < zero(x), zero(x) - one(x), zero(x)));
         return select(is_nan(x), x, sign);
       }},
      {"shrink",
       [](Value x, Params p) {
         Value limit = zero(x) + double{p[1]};
         return select(x < -limit, x + double{p[0]}, select(limit < x, x - double{p[0]}, zero(x)));
       }},
      {"sin", plain<kir::Op::sin>},
      {"sinh",
       [](Value x, Params) { return select(unary(kir::Op::abs, x) < 1.0, small_sinh(x), half_exp(x) - half_exp(-x)); }},
      {"softplus", [](Value x, Params) { return log_1_plus_exp(x); }},
      {"softsign", [](Value x, Params) { return x / (unary(kir::Op::abs, x) + 1); }},
      {"sqrt", plain<kir::Op::sqrt>},
      {"swish", [](Value x, Params p) { return x * unary(kir::Op::sigmoid, x * double{p[0]}); }},
      {"tan", [](Value x, Params) { return unary(kir::Op::sin, x) / unary(kir::Op::cos, x); }},
      {"tanh", plain<kir::Op::tanh>},
      {"thresholded_relu", [](Value x, Params p) { return select(zero(x) + double{p[0]} < x, x, zero(x)); }},
  };
  return table;
}

ir::Hook<void(LowerContext&)> lower_of(const Row& row) {
  auto at = kernels().find(row.name);
  if (at == kernels().end()) return absent("needs a function that kernels do not have");
  return [row, kernel = at->second](LowerContext& c) {
    if ((row.name == "erf" || row.name == "shrink") && !is_float(c.dtype(0))) c.refuse("of integers");
    std::vector<float> params;
    for (const ir::AttrDef& attr : row.attrs) params.push_back(c.attr_float(attr.name));
    lower_elementwise(
        c, [kernel, params](const LowerContext&, std::span<const Value> x) { return kernel(x[0], params.data()); });
  };
}

void eval(const Row& row, EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (row.integer != nullptr && is_signed_integer(x.dtype())) {
    e.set(0, map_elements<int64_t>(x, x.dtype(), row.integer));
    return;
  }
  if (row.natural != nullptr && is_unsigned_integer(x.dtype())) {
    e.set(0, map_elements<uint64_t>(x, x.dtype(), row.natural));
    return;
  }
  std::vector<float> params;
  for (const ir::AttrDef& attr : row.attrs) params.push_back(e.attr_float(attr.name));
  e.set(0, map_elements<double>(x, x.dtype(), [&](double v) { return row.real(v, params.data()); }));
}

ir::Hook<void(ValueContext&)> value_of(const Row& row) {
  if (row.name == "floor" || row.name == "ceil")
    return [up = row.name == "ceil"](ValueContext& c) { value_floor(c, up); };
  if (row.symbolic == nullptr) return absent("does not occur in shape arithmetic");
  return [f = row.symbolic](ValueContext& c) {
    value_elementwise(c, [f](std::span<const sym::Expr> x) { return f(x[0]); });
  };
}

OpDef record(const Row& row) {
  TypeVar type{"T", row.dtypes};
  return {
      .name = row.name,
      .onnx = {"", row.onnx, row.versions},
      .doc = row.doc,
      .operands = {{"x", type}},
      .results = {{"y", type}},
      .attrs = row.attrs,
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = same_as_first,
      .backward = backward_same,
      .value = value_of(row),
      .eval = [row](EvalContext& e) { eval(row, e); },
      .lower = lower_of(row),
      .grad = later::training,
      .upgrades = {{6, drop_attrs({"consumed_inputs"})}},
      .samples = {{row.dtypes.contains(DType::f32) ? "$(f32[2, 3])" : "$(i32[2, 3])",
                   row.dtypes.contains(DType::f32) ? "f32[2, 3]" : "i32[2, 3]"},
                  {row.dtypes.contains(DType::f32) ? "$(f32[0, 3])" : "$(i32[0, 3])",
                   row.dtypes.contains(DType::f32) ? "f32[0, 3]" : "i32[0, 3]"},
                  {"$(str[2])", "error: must be one of"},
                  {"$()", "error: at least 1"}},
  };
}

}  // namespace

std::vector<OpDef> unary_family() {
  std::vector<OpDef> family;
  for (const Row& row : rows()) family.push_back(record(row));
  return family;
}

}  // namespace selkie::ops
