// LpNormalization, MeanVarianceNormalization and LRN: normalisation along axes without learnt parameters.
#include <cmath>

#include "ops/support/lines.h"
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
      .lower = later::cpu,
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
