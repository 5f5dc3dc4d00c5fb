// LayerNormalization and RMSNormalization: normalisation over the last axes.
#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/lower.h"
#include "ops/support/moments.h"

namespace selkie::ops {
namespace {

constexpr TypeVar stash_type{"U", DTypeSet{DType::f32, DType::bf16}};
constexpr TypeVar scale_type{"V", dtypes::floats};

std::vector<double> spread(const EvalContext& e, size_t i, const Dims& dims) {
  if (e.tensor(i).rank() > static_cast<int64_t>(dims.size()))
    fail("operand '{}' of shape {} does not broadcast to {}", e.op().operands[i].name, to_string(e.tensor(i).dims()),
         to_string(dims));
  return widen<double>(broadcast_to(e.tensor(i), dims));
}

// The dtype that the attribute stash_type names for statistics.
DType stash_dtype(const EvalContext& e) {
  DType dtype = e.attr_dtype("stash_type");
  if (!is_float(dtype)) fail("'stash_type' is {}, which is no float type", name(dtype));
  return dtype;
}

void eval_layer(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  int64_t axis = normalize_axis(e.attr_int("axis"), input.rank());
  auto size = static_cast<size_t>(product(input.dims(), axis, input.rank()));
  DType stash = stash_dtype(e);
  std::vector<double> x = widen<double>(input);
  std::vector<double> means, factors;
  double epsilon = e.attr_float("epsilon");
  for (int64_t i = 0; i < product(input.dims(), 0, axis); ++i) {
    Moments m = standardize(std::span(x).subspan(static_cast<size_t>(i) * size, size), epsilon);
    means.push_back(m.mean);
    factors.push_back(1 / std::sqrt(m.variance + epsilon));
  }
  std::vector<double> scale = spread(e, 1, input.dims());
  std::vector<double> bias = e.has(2) ? spread(e, 2, input.dims()) : std::vector<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * scale[i] + bias[i];
  Dims dims = input.dims();
  std::fill(dims.begin() + axis, dims.end(), 1);
  e.set(0, narrow<double>(x, input.dtype(), input.dims()));
  e.set(1, narrow<double>(means, stash, dims));
  e.set(2, narrow<double>(factors, stash, dims));
}

void eval_rms(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  int64_t axis = normalize_axis(e.attr_int("axis"), input.rank());
  stash_dtype(e);
  auto size = static_cast<size_t>(product(input.dims(), axis, input.rank()));
  std::vector<double> x = widen<double>(input);
  for (size_t start = 0; start < x.size(); start += size) {
    double sum = 0;
    for (size_t i = start; i < start + size; ++i) sum += x[i] * x[i];
    double factor = 1 / std::sqrt(sum / static_cast<double>(size) + e.attr_float("epsilon"));
    for (size_t i = start; i < start + size; ++i) x[i] *= factor;
  }
  std::vector<double> scale = spread(e, 1, input.dims());
  for (size_t i = 0; i < x.size(); ++i) x[i] *= scale[i];
  e.set(0, narrow<double>(x, e.tensor(1).dtype(), input.dims()));
}

std::vector<Type> forward_layer(const ForwardContext& c) {
  std::vector<Type> out(c.result_count());
  out[0] = c.type(0);
  for (size_t i = 1; i < out.size(); ++i) {
    std::optional<DType> dtype = dtype_from_onnx(c.attr_int("stash_type"));
    if (!dtype) continue;
    out[i] = Type::tensor(*dtype);
    if (!c.dims(0)) continue;
    SymDims dims = *c.dims(0);
    auto rank = static_cast<int64_t>(dims.size());
    for (int64_t axis = normalize_axis(c.attr_int("axis"), rank); axis < rank; ++axis)
      dims[static_cast<size_t>(axis)] = c.constant(1);
    out[i].dims = std::move(dims);
  }
  return out;
}

// The axes over which elements are normalised: how many before them, their sizes, and the number of elements.
struct Normalised {
  size_t first;
  SymDims extents;
  kir::Value count;
};

Normalised normalised(const LowerContext& c, DType dtype) {
  auto first = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  Normalised n{.first = first, .extents = {}, .count = {}};
  sym::Expr count = c.constant(1);
  for (size_t i = first; i < c.rank(0); ++i) {
    n.extents.push_back((*c.dims(0))[i]);
    count = count * n.extents.back();
  }
  n.count = cast(c.size(count), dtype);
  return n;
}

kir::Value mean_over(const LowerContext& c, const Normalised& n, DType dtype, const Index& at,
                     const std::function<kir::Value(kir::Value)>& f) {
  kir::Builder& b = c.builder();
  kir::Value sum = b.reduce(kir::Op::add, b.number(dtype, 0), n.extents, [&](const Index& k) {
    Index from(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(n.first));
    from.insert(from.end(), k.begin(), k.end());
    return f(cast(c.operand(0, from), dtype));
  });
  return sum / n.count;
}

// An element of scale or bias, which broadcast to x.
kir::Value parameter(const LowerContext& c, size_t i, const Index& at, DType dtype) {
  return cast(c.operand(i, broadcast_index(c, *c.dims(i), *c.dims(0), at)), dtype);
}

void lower_layer(LowerContext& c) {
  DType dtype = compute_dtype(c.dtype(0));
  struct Statistics {
    kir::Value mean, factor;
  };
  auto statistics = [&c, dtype](const Index& at) {
    Normalised n = normalised(c, dtype);
    kir::Value mean = c.builder().hoist(mean_over(c, n, dtype, at, [](kir::Value x) { return x; }));
    kir::Value variance = mean_over(c, n, dtype, at, [&](kir::Value x) { return (x - mean) * (x - mean); });
    kir::Value factor = 1.0 / unary(kir::Op::sqrt, variance + double{c.attr_float("epsilon")});
    return Statistics{.mean = mean, .factor = c.builder().hoist(factor)};
  };
  c.define(0, [&c, dtype, statistics](const Index& at) {
    auto [mean, factor] = statistics(at);
    kir::Value y = (cast(c.operand(0, at), dtype) - mean) * factor * parameter(c, 1, at, dtype);
    if (c.has(2)) y = y + parameter(c, 2, at, dtype);
    return cast(y, c.result_dtype());
  });
  if (c.result_count() > 1)
    c.define(1, [&c, statistics](const Index& at) { return cast(statistics(at).mean, c.result_dtype(1)); });
  if (c.result_count() > 2)
    c.define(2, [&c, statistics](const Index& at) { return cast(statistics(at).factor, c.result_dtype(2)); });
}

void lower_rms(LowerContext& c) {
  DType dtype = compute_dtype(c.dtype(0));
  c.define(0, [&c, dtype](const Index& at) {
    kir::Value square = mean_over(c, normalised(c, dtype), dtype, at, [](kir::Value x) { return x * x; });
    kir::Value factor = c.builder().hoist(1.0 / unary(kir::Op::sqrt, square + double{c.attr_float("epsilon")}));
    return cast(cast(c.operand(0, at), dtype) * factor * parameter(c, 1, at, dtype), c.result_dtype());
  });
}

void backward(BackwardContext& c) {
  backward_same(c);
  if (!c.dims(0)) return;
  const SymDims x = *c.dims(0);
  normalize_axis(c.attr_int("axis"), std::ssize(x));
  require_broadcasts_to(c, 1, x);
  require_broadcasts_to(c, 2, x);
}

OpDef base() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.attrs = {int_attr("axis", -1), float_attr("epsilon", 1e-5f), int_attr("stash_type", 1)};
  op.backward = backward;
  op.value = absent("normalisations do not occur in shape arithmetic");
  return op;
}

OpDef layer() {
  OpDef op = base();
  op.name = "layer_normalization";
  op.onnx = {"", "LayerNormalization", {17}};
  op.doc = "(x − mean) / √(variance + epsilon) · scale + b over the axes from `axis` on";
  op.operands = {{"x", float_tensor}, {"scale", float_tensor}, {"b", float_tensor, optional}};
  op.results = {{"y", float_tensor}, {"mean", stash_type, optional}, {"invstddev", stash_type, optional}};
  op.forward = forward_layer;
  op.eval = eval_layer;
  op.lower = lower_layer;
  op.samples = {
      {"$(f32[1, 2]{1, 3}, f32[2]{1, 2}, f32[1]{10}) {epsilon = 0.0}", "f32[1, 2]{9, 12}, f32[1, 1]{2}, f32[1, 1]{1}"},
      {"$(f32[2, 3, 4], f32[3, 4]) {axis = 1}", "f32[2, 3, 4], f32[2, 1, 1], f32[2, 1, 1]"},
      {"$(f32[0, 4], f32[4])", "f32[0, 4]"},
      {"$(f32[2, 1, 4], f32[2, 1, 1], f32[])", "f32[2, 1, 4], f32[2, 1, 1], f32[2, 1, 1]"},
      {"$(f32[2, 4], f32[3])", "error: does not broadcast"},
      {"$(f32[2, 4], f32[4]) {axis = 2}", "error: axis 2 is outside"}};
  return op;
}

OpDef rms() {
  OpDef op = base();
  op.name = "rms_normalization";
  op.onnx = {"", "RMSNormalization", {23}};
  op.doc = "x / √(mean of x² + epsilon) · scale over the axes from `axis` on";
  op.operands = {{"x", float_tensor}, {"scale", scale_type}};
  op.results = {{"y", scale_type}};
  op.forward = [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(1), c.dims(0))}; };
  op.eval = eval_rms;
  op.lower = lower_rms;
  op.samples = {{"$(f32[1, 2]{1, 7}, f32[2]{5, 10}) {epsilon = 0.0}", "f32[1, 2]{1, 14}"},
                {"$(f16[2, 3, 4], f32[3, 4]) {axis = -2}", "f32[2, 3, 4]"},
                {"$(f32[0, 4], f32[4])", "f32[0, 4]"},
                {"$(f32[2, 0], f32[1]) {axis = 0}", "f32[2, 0]"},
                {"$(f32[2, 4], f32[3])", "error: does not broadcast"}};
  return op;
}

}  // namespace

std::vector<OpDef> layer_normalization_family() { return {layer(), rms()}; }

}  // namespace selkie::ops
