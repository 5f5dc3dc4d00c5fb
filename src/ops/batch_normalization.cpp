// BatchNormalization: each channel shifted and scaled by given statistics, or by those of the batch while training.
#include "ops/support/lower.h"
#include "ops/support/moments.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar scale_type{"T1", dtypes::floats};
constexpr TypeVar stats_type{"T2", dtypes::floats};

// How x falls into channels: x is [batch, channels, size]. Scales of the shape of one sample, which opsets before 9
// allow, make every element of a sample its own channel.
struct Channels {
  int64_t batch;
  int64_t channels;
  int64_t size;
};

Channels channels_of(const Tensor& x, const Tensor& scale) {
  if (x.rank() == 0) fail("the input is a scalar");
  if (x.rank() == 1) return {x.dim(0), 1, 1};
  if (scale.rank() > 1 && std::equal(scale.dims().begin(), scale.dims().end(), x.dims().begin() + 1, x.dims().end()))
    return {x.dim(0), scale.count(), 1};
  return {x.dim(0), x.dim(1), product(x.dims(), 2, x.rank())};
}

std::vector<double> values_of(const EvalContext& e, size_t i, const Channels& n) {
  if (e.tensor(i).count() != n.channels)
    fail("operand '{}' has shape {}, but there are {} channels", e.op().operands[i].name, to_string(e.tensor(i).dims()),
         n.channels);
  return widen<double>(e.tensor(i));
}

Moments batch_moments(const std::vector<double>& x, const Channels& n, int64_t channel) {
  std::vector<double> all;
  all.reserve(static_cast<size_t>(n.batch * n.size));
  for (int64_t b = 0; b < n.batch; ++b) {
    const double* from = x.data() + (b * n.channels + channel) * n.size;
    all.insert(all.end(), from, from + n.size);
  }
  return moments(all);
}

void eval(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  Channels n = channels_of(input, e.tensor(1));
  std::vector<double> x = widen<double>(input);
  std::vector<double> scale = values_of(e, 1, n);
  std::vector<double> bias = values_of(e, 2, n);
  std::vector<double> mean = values_of(e, 3, n);
  std::vector<double> variance = values_of(e, 4, n);
  if (e.attr_int("training_mode") != 0) {
    double momentum = e.attr_float("momentum");
    std::vector<double> running_mean(mean), running_variance(variance);
    for (size_t c = 0; c < mean.size(); ++c) {
      Moments m = batch_moments(x, n, static_cast<int64_t>(c));
      running_mean[c] = mean[c] * momentum + m.mean * (1 - momentum);
      running_variance[c] = variance[c] * momentum + m.variance * (1 - momentum);
      mean[c] = m.mean;
      variance[c] = m.variance;
    }
    const Tensor& stats = e.tensor(3);
    e.set(1, narrow<double>(running_mean, stats.dtype(), stats.dims()));
    e.set(2, narrow<double>(running_variance, stats.dtype(), stats.dims()));
    e.set(3, narrow<double>(mean, stats.dtype(), stats.dims()));
    e.set(4, narrow<double>(variance, stats.dtype(), stats.dims()));
  } else if (e.result_count() > 1) {
    fail("running statistics are only given with 'training_mode'");
  }
  double* at = x.data();
  for (int64_t b = 0; b < n.batch; ++b)
    for (size_t c = 0; c < scale.size(); ++c) {
      double factor = scale[c] / std::sqrt(variance[c] + e.attr_float("epsilon"));
      for (int64_t i = 0; i < n.size; ++i, ++at) *at = (*at - mean[c]) * factor + bias[c];
    }
  e.set(0, narrow<double>(x, input.dtype(), input.dims()));
}

std::vector<Type> forward(const ForwardContext& c) {
  std::vector<Type> out(c.result_count(), c.type(3));
  out[0] = c.type(0);
  return out;
}

// Statistics per channel are vectors as long as axis 1. Scales of several axes may be of the shape of a sample instead,
// and then the others need only as many elements.
void backward(BackwardContext& c) {
  backward_same(c);
  if (c.result_dims(1)) c.set_dims(3, SymDims(*c.result_dims(1)));
  if (!c.dims(0) || c.rank(0) < 2 || !c.dims(1) || c.rank(1) != 1) return;
  sym::Expr channels = c.dims(0)->at(1);
  for (size_t i = 1; i <= 4; ++i)
    if (c.dims(i) && c.rank(i) == 1) c.equal(SymDims(*c.dims(i))[0], channels);
}

// What belongs to a channel is the same for a whole plane, and is computed once for it.
void lower(LowerContext& c) {
  if (c.attr_int("training_mode") != 0 || c.result_count() > 1) c.refuse("statistics of the batch");
  bool planes = c.rank(0) >= 2;
  for (size_t i = 1; i <= 4; ++i)
    if (planes ? c.rank(i) != 1 : c.rank(0) == 0 || !has_one_element(c, i)) c.refuse("scales of the shape of a sample");
  c.define(0, [&c, planes](const Index& at) {
    DType dtype = compute_dtype(c.dtype(0));
    auto parameter = [&](size_t i) { return planes ? cast(c.operand(i, {at[1]}), dtype) : only_element(c, i, dtype); };
    kir::Value factor = parameter(1) / unary(kir::Op::sqrt, parameter(4) + double{c.attr_float("epsilon")});
    kir::Value y = (cast(c.operand(0, at), dtype) - parameter(3)) * factor + parameter(2);
    return cast(y, c.result_dtype());
  });
}

// Until opset 14 a node with more than one result was in training mode, unless `is_test` said otherwise.
void mode_from_results(UpgradeContext& c) {
  ir::Node& n = c.node();
  const ir::Attribute* is_test = n.attrs.find("is_test");
  const auto* flag = is_test == nullptr ? nullptr : std::get_if<int64_t>(is_test);
  bool test = flag != nullptr && *flag != 0;
  bool more = std::any_of(n.results.begin(), n.results.end(),
                          [&](const auto& r) { return r != n.results[0] && !r->name.empty(); });
  if (more && !test) n.attrs.set("training_mode", int64_t{1});
  drop_attrs({"is_test", "spatial", "consumed_inputs"})(c);
}

}  // namespace

OpDef batch_normalization_op() {
  return {
      .name = "batch_normalization",
      .onnx = {"", "BatchNormalization", {1, 6, 7, 9, 14, 15}},
      .doc = "scale · (x − mean) / √(var + epsilon) + B per channel",
      .operands = {{"x", float_tensor},
                   {"scale", scale_type},
                   {"b", scale_type},
                   {"input_mean", stats_type},
                   {"input_var", stats_type}},
      // The last two are of opsets before 14.
      .results = {{"y", float_tensor},
                  {"running_mean", stats_type, optional},
                  {"running_var", stats_type, optional},
                  {"saved_mean", stats_type, optional},
                  {"saved_var", stats_type, optional}},
      .attrs = {float_attr("epsilon", 1e-5f), float_attr("momentum", 0.9f), int_attr("training_mode", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("normalisations do not occur in shape arithmetic"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .upgrades = {{14, mode_from_results}},
      .samples =
          {{"$(f32[1, 2, 2]{1, 2, 3, 4}, f32[2]{1, 2}, f32[2]{0, 1}, f32[2]{1, 3}, f32[2]{1, 4}) {epsilon = 0.0}",
            "f32[1, 2, 2]{0, 1, 1, 2}"},
           {"$(f32[2, 1]{1, 3}, f32[1]{1}, f32[1]{0}, f32[1]{0}, f32[1]{1}) {training_mode = 1, epsilon = 0.0, "
            "momentum = 0.5}",
            "f32[2, 1]{-1, 1}, f32[1]{1}, f32[1]{1}"},
           {"$(f32[2, 3, 4], f32[3, 4], f32[3, 4], f32[3, 4], f32[3, 4])", "f32[2, 3, 4]"},
           {"$(f32[3], f32[1], f32[], f32[1, 1], f32[1])", "f32[3]"},
           {"$(f32[0, 3, 4], f32[3], f32[3], f32[3], f32[3])", "f32[0, 3, 4]"},
           {"$(f32[2, 3, 4], f32[4], f32[3], f32[3], f32[3])", "error: there are 3 channels"}},
  };
}

}  // namespace selkie::ops
