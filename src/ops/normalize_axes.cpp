// LpNormalization, MeanVarianceNormalization and LRN: normalisation along axes without learnt parameters.
#include <cmath>

#include "ops/support/lines.h"
#include "ops/support/moments_lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval_lp(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  int64_t p = e.attr_int("p");
  if (p != 1 && p != 2) fail("'p' is {}, but must be 1 or 2", p);
  std::vector<double> x = widen<double>(input);
  for_each_line(x, input.dims(), normalize_axis(e.attr_int("axis"), input.rank()), [&](std::span<double> line) {
    double sum = 0;
    for (double v : line) sum += p == 1 ? std::fabs(v) : v * v;
    double norm = p == 1 ? sum : std::sqrt(sum);
    for (double& v : line) v = norm == 0 ? 0 : v / norm;
  });
  e.set(0, narrow<double>(x, input.dtype(), input.dims()));
}

void eval_mean_variance(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  std::vector<int64_t> axes = normalize_axes(e.attr_ints("axes"), input.rank());
  Dims kept = input.dims();
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  std::vector<int64_t> strides = broadcast_strides(kept, input.dims());
  std::vector<double> x = widen<double>(input);
  std::vector<double> mean(static_cast<size_t>(element_count(kept)));
  std::vector<double> variance(mean.size());
  auto each = [&](auto&& f) {
    size_t i = 0;
    for (Walk<1> walk(input.dims(), {strides}); !walk.done(); walk.next())
      f(x[i++], static_cast<size_t>(walk.offset(0)));
  };
  double count = mean.empty() ? 1 : static_cast<double>(x.size()) / static_cast<double>(mean.size());
  each([&](double& v, size_t at) { mean[at] += v / count; });
  each([&](double& v, size_t at) { variance[at] += (v - mean[at]) * (v - mean[at]) / count; });
  each([&](double& v, size_t at) { v = (v - mean[at]) / (std::sqrt(variance[at]) + 1e-9); });
  e.set(0, narrow<double>(x, input.dtype(), input.dims()));
}

void eval_lrn(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  if (input.rank() < 2) fail("the input has shape {}, but needs a batch and channels", to_string(input.dims()));
  int64_t size = e.attr_int("size");
  if (size < 1) fail("'size' is {}, but must be at least 1", size);
  double alpha = e.attr_float("alpha");
  double beta = e.attr_float("beta");
  double bias = e.attr_float("bias");
  std::vector<double> x = widen<double>(input);
  for_each_line(x, input.dims(), 1, [&](std::span<double> line) {
    std::vector<double> before(line.begin(), line.end());
    auto channels = static_cast<int64_t>(line.size());
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      int64_t end = std::min(channels - 1, c + std::min(size / 2, channels));
      for (int64_t i = std::max<int64_t>(0, c - (size - 1) / 2); i <= end; ++i)
        sum += before[static_cast<size_t>(i)] * before[static_cast<size_t>(i)];
      line[static_cast<size_t>(c)] /= std::pow(bias + alpha / static_cast<double>(size) * sum, beta);
    }
  });
  e.set(0, narrow<double>(x, input.dtype(), input.dims()));
}

using kir::Value;

void lower_lp(LowerContext& c) {
  int64_t p = c.attr_int("p");
  if (p != 1 && p != 2) c.refuse("'p' is neither 1 nor 2");
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  c.define(0, [&c, p, axis](const Index& at) {
    kir::Builder& b = c.builder();
    DType dtype = compute_dtype(c.dtype(0));
    Value zero = b.number(dtype, 0);
    Value sum = b.reduce(kir::Op::add, zero, {{(*c.dims(0))[axis]}}, [&](const Index& k) {
      Index from = at;
      from[axis] = k[0];
      Value x = cast(c.operand(0, from), dtype);
      return p == 1 ? unary(kir::Op::abs, x) : x * x;
    });
    Value norm = b.hoist(p == 1 ? sum : unary(kir::Op::sqrt, sum));
    return cast(select(norm == zero, zero, cast(c.operand(0, at), dtype) / norm), c.result_dtype());
  });
}

// In f64: with so small an epsilon, what rounding leaves of equal elements would count.
void lower_mean_variance(LowerContext& c) {
  std::vector<bool> reduced(c.rank(0));
  for (int64_t axis : normalize_axes(c.attr_ints("axes"), static_cast<int64_t>(c.rank(0))))
    reduced[static_cast<size_t>(axis)] = true;
  c.define(0, [&c, reduced](const Index& at) {
    SymDims extents;
    for (size_t i = 0; i < reduced.size(); ++i)
      if (reduced[i]) extents.push_back((*c.dims(0))[i]);
    auto [mean, variance] = moments_over(c, extents, DType::f64, [&](const Index& k) {
      Index from = at;
      size_t next = 0;
      for (size_t i = 0; i < reduced.size(); ++i)
        if (reduced[i]) from[i] = k[next++];
      return cast(c.operand(0, from), DType::f64);
    });
    Value deviation = c.builder().hoist(unary(kir::Op::sqrt, variance) + 1e-9);
    return cast((cast(c.operand(0, at), DType::f64) - mean) / deviation, c.result_dtype());
  });
}

// x^p, by square roots where they do.
Value to_power(Value x, double p) {
  Value root = unary(kir::Op::sqrt, x);
  if (p == 1) return x;
  if (p == 0.5) return root;
  if (p == 0.75) return root * unary(kir::Op::sqrt, root);
  return binary(kir::Op::pow, x, x.builder().number(x.dtype(), p));
}

void lower_lrn(LowerContext& c) {
  constexpr int64_t most = 64;  // neighbours that are written out
  int64_t size = c.attr_int("size");
  if (c.rank(0) < 2 || size < 1 || size > most) c.refuse("a size outside 1 to 64");
  c.define(0, [&c, size](const Index& at) {
    DType dtype = compute_dtype(c.dtype(0));
    Value sum = c.builder().number(dtype, 0);
    for (int64_t i = -(size - 1) / 2; i <= size / 2; ++i) {
      Index from = at;
      from[1] = at[1] + c.builder().integer(i);
      Value inside = i < 0 ? c.builder().integer(0) <= from[1] : from[1] < c.size((*c.dims(0))[1]);
      Value x = cast(i == 0 ? c.operand(0, from) : c.operand_if(inside, 0, from), dtype);
      sum = sum + (i == 0 ? x * x : select(inside, x * x, c.builder().number(dtype, 0)));
    }
    double alpha = double{c.attr_float("alpha")} / static_cast<double>(size);
    Value base = sum * alpha + double{c.attr_float("bias")};
    return cast(cast(c.operand(0, at), dtype) / to_power(base, double{c.attr_float("beta")}), c.result_dtype());
  });
}

OpDef base(std::string_view operand, std::string_view result) {
  return {
      .name = {},
      .onnx = {},
      .doc = {},
      .operands = {{operand, float_tensor}},
      .results = {{result, float_tensor}},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = same_as_first,
      .backward = backward_same,
      .value = absent("normalisations do not occur in shape arithmetic"),
      .eval = absent("set by each record"),
      .lower = absent("set by each record"),
      .grad = later::training,
      .samples = {},
  };
}

OpDef lp() {
  OpDef op = base("input", "output");
  op.name = "lp_normalization";
  op.onnx = {"", "LpNormalization", {1, 22}};
  op.doc = "x divided by its p-norm along an axis";
  op.attrs = {int_attr("axis", -1), int_attr("p", 2)};
  op.eval = eval_lp;
  op.lower = lower_lp;
  op.samples = {{"$(f32[2, 2]{3, 4, 0, 0})", "f32[2, 2]{0.6, 0.8, 0, 0}"},
                {"$(f32[2, 2]{3, -4, 1, 4}) {axis = 0, p = 1}", "f32[2, 2]{0.75, -0.5, 0.25, 0.5}"},
                {"$(f32[0, 2])", "f32[0, 2]"},
                {"$(f32[2]) {p = 3}", "error: 'p' is 3"}};
  return op;
}

OpDef mean_variance() {
  OpDef op = base("x", "y");
  op.name = "mean_variance_normalization";
  op.onnx = {"", "MeanVarianceNormalization", {9, 13}};
  op.doc = "(x − mean) / standard deviation over axes";
  op.attrs = {ints_attr("axes", {0, 2, 3})};
  op.eval = eval_mean_variance;
  op.lower = lower_mean_variance;
  op.samples = {{"$(f32[2, 2]{1, 5, 3, 5}) {axes = [0]}", "f32[2, 2]{-1, 0, 1, 0}"},
                {"$(f32[2, 3, 4, 5])", "f32[2, 3, 4, 5]"},
                {"$(f32[0, 3, 4, 5])", "f32[0, 3, 4, 5]"},
                {"$(f32[2, 3])", "error: axis 2 is outside"}};
  return op;
}

OpDef lrn() {
  OpDef op = base("x", "y");
  op.name = "lrn";
  op.onnx = {"", "LRN", {1, 13}};
  op.doc = "x / (bias + alpha/size · Σ x² over neighbouring channels)^beta";
  op.attrs = {float_attr("alpha", 0.0001f), float_attr("beta", 0.75f), float_attr("bias", 1),
              required_attr("size", AttrKind::integer)};
  op.eval = eval_lrn;
  op.lower = lower_lrn;
  op.samples = {{"$(f32[1, 3, 1]{1, 2, 3}) {size = 2, alpha = 2.0, beta = 1.0, bias = 0.0}",
                 "f32[1, 3, 1]{0.2, 0.1538462, 0.3333333}"},
                {"$(f32[2, 5, 3, 3]) {size = 3}", "f32[2, 5, 3, 3]"},
                {"$(f32[2, 0, 3]) {size = 3}", "f32[2, 0, 3]"},
                {"$(f32[2, 3]) {size = 0}", "error: 'size' is 0"}};
  return op;
}

}  // namespace

std::vector<OpDef> normalize_axes_family() { return {lp(), lrn(), mean_variance()}; }

}  // namespace selkie::ops
