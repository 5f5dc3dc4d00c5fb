// InstanceNormalization and GroupNormalization: normalisation of each sample's planes, alone or in groups.
#include "ops/support/blank.h"
#include "ops/support/moments.h"
#include "ops/support/moments_lower.h"

namespace selkie::ops {
namespace {

// One number per channel; before opset 21 GroupNormalization had one per group.
std::vector<double> per_channel(const EvalContext& e, size_t i, int64_t channels, int64_t groups) {
  const Tensor& t = e.tensor(i);
  std::vector<double> values = widen<double>(t);
  if (t.dims() == Dims{channels}) return values;
  if (t.dims() != Dims{groups})
    fail("operand '{}' has shape {}, but there are {} channels", e.op().operands[i].name, to_string(t.dims()),
         channels);
  std::vector<double> out;
  for (int64_t c = 0; c < channels; ++c) out.push_back(values[static_cast<size_t>(c / (channels / groups))]);
  return out;
}

void run(EvalContext& e, int64_t groups) {
  const Tensor& input = e.tensor(0);
  int64_t channels = input.dim(1);
  if (groups < 1 || channels % groups != 0) fail("{} channels do not fall into {} groups", channels, groups);
  std::vector<double> x = widen<double>(input);
  auto size = static_cast<size_t>(channels / groups * product(input.dims(), 2, input.rank()));
  for (size_t start = 0; start < x.size(); start += size)
    standardize(std::span(x).subspan(start, size), e.attr_float("epsilon"));
  std::vector<double> scale = per_channel(e, 1, channels, groups);
  std::vector<double> bias = per_channel(e, 2, channels, groups);
  auto plane = static_cast<size_t>(product(input.dims(), 2, input.rank()));
  for (size_t i = 0; i < x.size(); ++i) {
    size_t c = i / plane % scale.size();
    x[i] = x[i] * scale[c] + bias[c];
  }
  e.set(0, narrow<double>(x, input.dtype(), input.dims()));
}

void check_rank(const Tensor& x, int64_t least) {
  if (x.rank() < least) fail("the input has shape {}, but must be of rank {} at least", to_string(x.dims()), least);
}

// Scale and bias are vectors of one number per channel, or per group where there are groups.
void backward(BackwardContext& c, std::optional<int64_t> groups) {
  backward_same(c);
  for (size_t i : {size_t{1}, size_t{2}}) c.set_rank(i, 1);
  if (!c.dims(0) || c.rank(0) < 2) return;
  const sym::Expr channels = c.dims(0)->at(1);
  if (groups) c.equal(sym::mod(channels, *groups), c.constant(0));
  for (size_t i : {size_t{1}, size_t{2}}) {
    const sym::Expr own = c.dims(i)->at(0);
    if (!groups || c.excludes(own, *groups)) c.equal(own, channels);
  }
}

// Statistics are those of a group: some channels of one sample, with their planes.
void lower(LowerContext& c, std::optional<int64_t> given_groups) {
  if (c.rank(0) < (given_groups ? 2 : 3)) c.refuse("the input has too few axes");
  sym::Expr channels = (*c.dims(0))[1];
  sym::Expr size = given_groups ? sym::floordiv(channels, *given_groups) : c.constant(1);
  for (size_t i : {1, 2}) {
    if (c.rank(i) != 1) c.refuse("a parameter is no vector");
    bool of_groups = given_groups && c.dims(i)->at(0).constant() == given_groups;
    if (!of_groups && !c.proves_equal(c.dims(i)->at(0), channels)) c.refuse("parameters of channels or of groups");
  }
  c.define(0, [&c, channels, size](const Index& at) {
    DType dtype = compute_dtype(c.dtype(0));
    kir::Value group = floordiv(at[1], c.size(size));
    SymDims extents(c.dims(0)->begin() + 1, c.dims(0)->end());
    extents[0] = size;
    auto element = [&](const Index& k) {
      Index from{at[0]};
      from.insert(from.end(), k.begin(), k.end());
      from[1] = group * c.size(size) + k[0];
      return cast(c.operand(0, from), dtype);
    };
    auto [mean, variance] = moments_over(c, extents, dtype, element);
    kir::Value factor = inverse_deviation(c, variance, c.attr_float("epsilon"));
    auto parameter = [&](size_t i) {
      bool of_channels = c.proves_equal(c.dims(i)->at(0), channels);
      return cast(c.operand(i, {of_channels ? at[1] : group}), dtype);
    };
    kir::Value y = (cast(c.operand(0, at), dtype) - mean) * factor * parameter(1) + parameter(2);
    return cast(y, c.result_dtype());
  });
}

OpDef base() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.attrs = {float_attr("epsilon", 1e-5f)};
  op.forward = same_as_first;
  op.value = absent("normalisations do not occur in shape arithmetic");
  return op;
}

OpDef instance() {
  OpDef op = base();
  op.name = "instance_normalization";
  op.onnx = {"", "InstanceNormalization", {1, 6, 22}};
  op.doc = "each plane of each sample normalised, then scaled and shifted per channel";
  op.operands = {{"input", float_tensor}, {"scale", float_tensor}, {"b", float_tensor}};
  op.results = {{"output", float_tensor}};
  op.eval = [](EvalContext& e) {
    check_rank(e.tensor(0), 3);
    int64_t channels = e.tensor(0).dim(1);
    if (channels > 0) return run(e, channels);
    for (size_t i : {size_t{1}, size_t{2}}) per_channel(e, i, 0, 0);
    e.set(0, e.tensor(0));
  };
  op.backward = [](BackwardContext& c) { backward(c, std::nullopt); };
  op.lower = [](LowerContext& c) { lower(c, std::nullopt); };
  op.upgrades = {{6, drop_attrs({"consumed_inputs"})}};
  op.samples = {
      {"$(f32[1, 2, 2]{1, 3, 5, 5}, f32[2]{2, 1}, f32[2]{10, 20}) {epsilon = 1e-9}", "f32[1, 2, 2]{8, 12, 20, 20}"},
      {"$(f32[2, 3, 4, 5], f32[3], f32[3])", "f32[2, 3, 4, 5]"},
      {"$(f32[2, 3, 0], f32[3], f32[3])", "f32[2, 3, 0]"},
      {"$(f32[2, 0, 4], f32[0], f32[0])", "f32[2, 0, 4]"},
      {"$(f32[2, 0, 4], f32[1], f32[0])", "error: there are 0 channels"},
      {"$(f32[2, 3, 4], f32[2], f32[3])", "error: there are 3 channels"},
      {"$(f32[2, 3], f32[3], f32[3])", "error: of rank 3 at least"}};
  return op;
}

OpDef group() {
  OpDef op = base();
  op.name = "group_normalization";
  op.onnx = {"", "GroupNormalization", {18, 21}};
  op.doc = "groups of channels of each sample normalised, then scaled and shifted per channel";
  op.operands = {{"x", float_tensor}, {"scale", float_tensor}, {"bias", float_tensor}};
  op.results = {{"y", float_tensor}};
  op.attrs.push_back(required_attr("num_groups", AttrKind::integer));
  op.attrs.push_back(int_attr("stash_type", 1));
  op.backward = [](BackwardContext& c) {
    int64_t groups = c.attr_int("num_groups");
    if (groups < 1) fail("'num_groups' is {}", groups);
    backward(c, groups);
  };
  op.lower = [](LowerContext& c) { lower(c, c.attr_int("num_groups")); };
  op.eval = [](EvalContext& e) {
    check_rank(e.tensor(0), 2);
    run(e, e.attr_int("num_groups"));
  };
  op.samples = {
      {"$(f32[1, 2]{1, 3}, f32[2]{2, 1}, f32[2]{10, 20}) {num_groups = 1, epsilon = 0.0}", "f32[1, 2]{8, 21}"},
      {"$(f32[2, 4, 3], f32[2], f32[2]) {num_groups = 2}", "f32[2, 4, 3]"},
      {"$(f32[0, 4, 3], f32[4], f32[4]) {num_groups = 2}", "f32[0, 4, 3]"},
      {"$(f32[2, 4, 1], f32[2], f32[4]) {num_groups = 2}", "f32[2, 4, 1]"},
      {"$(f32[2, 0], f32[0], f32[2]) {num_groups = 2}", "f32[2, 0]"},
      {"$(f32[2, 4, 3], f32[4], f32[4]) {num_groups = 3}", "error: do not fall into 3 groups"}};
  return op;
}

}  // namespace

std::vector<OpDef> group_normalization_family() { return {group(), instance()}; }

}  // namespace selkie::ops
