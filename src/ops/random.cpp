// Operators with random results: Bernoulli, Multinomial, RandomNormal, RandomUniform and their forms with a model
// tensor.
#include <bit>
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

// A generator of the node's own where it has a seed, else one that the run's generator starts.
std::mt19937_64 generator(EvalContext& e) {
  if (e.has_attr("seed")) return std::mt19937_64(std::bit_cast<uint32_t>(e.attr_float("seed")));
  return std::mt19937_64(e.services().random()());
}

double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

DType float_dtype(const EvalContext& e, DType otherwise) {
  DType dtype = e.has_attr("dtype") ? e.attr_dtype("dtype") : otherwise;
  if (!dtypes::floats.contains(dtype))
    fail("random numbers of type {} are not possible; attribute 'dtype' must name a float", name(dtype));
  return dtype;
}

using Draw = std::function<double(std::mt19937_64&)>;

Tensor draw_tensor(EvalContext& e, DType dtype, const Dims& dims, const Draw& draw) {
  std::mt19937_64 random = generator(e);
  std::vector<double> values = zeros<double>(dims);
  for (double& v : values) v = draw(random);
  return narrow<double>(values, dtype, dims);
}

Draw normal_of(const EvalContext& e) {
  double mean = e.attr_float("mean");
  double scale = e.attr_float("scale");
  return [=, normal = std::normal_distribution<double>()](std::mt19937_64& random) mutable {
    return mean + scale * normal(random);
  };
}

Draw uniform_of(const EvalContext& e) {
  double low = e.attr_float("low");
  double high = e.attr_float("high");
  return [=](std::mt19937_64& random) { return low + (high - low) * uniform(random); };
}

void bernoulli(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  DType dtype = e.has_attr("dtype") ? e.attr_dtype("dtype") : x.dtype();
  if (!(dtypes::numeric | dtypes::boolean).contains(dtype))
    fail("attribute 'dtype' is {}, which the operator does not give", name(dtype));
  std::mt19937_64 random = generator(e);
  std::vector<double> values = widen<double>(x);
  for (double& v : values) {
    if (!(v >= 0 && v <= 1)) fail("{} is not a probability", v);
    v = uniform(random) < v ? 1 : 0;
  }
  e.set(0, narrow<double>(values, dtype, x.dims()));
}

// Running sums of exp(x − max), the last of which is the total.
std::vector<double> cumulated(std::span<const double> logs) {
  double top = *std::max_element(logs.begin(), logs.end());
  std::vector<double> sums;
  double sum = 0;
  for (double v : logs) sums.push_back(sum += std::exp(v - top));
  if (!std::isfinite(sum)) fail("a row of log-probabilities has no finite largest element");
  return sums;
}

void multinomial(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  DType dtype = e.attr_dtype("dtype");
  if (!dtypes::indices.contains(dtype)) fail("attribute 'dtype' is {}, but must be i32 or i64", name(dtype));
  if (x.rank() != 2) fail("shape {} is not [batch, classes]", to_string(x.dims()));
  int64_t samples = e.attr_int("sample_size");
  int64_t classes = x.dim(1);
  Dims dims{x.dim(0), samples};
  size_t count = affordable(dims, sizeof(int64_t));
  if (classes == 0 && count > 0) fail("there are no classes to draw from");
  std::mt19937_64 random = generator(e);
  std::vector<double> logs = widen<double>(x);
  std::vector<int64_t> picks;
  for (int64_t row = 0; row < (samples == 0 ? 0 : x.dim(0)); ++row) {
    std::vector<double> sums =
        cumulated(std::span(logs).subspan(static_cast<size_t>(row * classes), static_cast<size_t>(classes)));
    for (int64_t i = 0; i < samples; ++i)
      picks.push_back(std::upper_bound(sums.begin(), sums.end() - 1, uniform(random) * sums.back()) - sums.begin());
  }
  e.set(0, narrow<int64_t>(picks, dtype, dims));
}

OpDef random_record() {
  OpDef op = blank_record(Mapping::one_to_one);
  op.deterministic = false;
  op.backward = backward_same;
  op.grad = absent("random numbers have no derivative");
  return op;
}

DType declared_dtype(const ForwardContext& c, DType otherwise) {
  const ir::Attribute* attr = c.find_attr("dtype");
  return attr == nullptr ? otherwise : dtype_from_onnx(std::get<int64_t>(*attr)).value_or(otherwise);
}

std::vector<Type> forward_like(const ForwardContext& c) {
  return {Type::tensor(declared_dtype(c, c.dtype(0)), c.dims(0))};
}

std::vector<Type> forward_shape(const ForwardContext& c) {
  SymDims dims;
  for (int64_t d : c.attr_ints("shape")) {
    if (d < 0) fail("a dim of the shape is {}", d);
    dims.push_back(c.constant(d));
  }
  return {Type::tensor(declared_dtype(c, DType::f32), dims)};
}

struct Distribution {
  std::string_view name;
  std::string_view like_name;
  std::string_view onnx;
  std::string_view onnx_like;
  std::string_view doc;
  Draw (*draw)(const EvalContext&);
  std::vector<ir::AttrDef> attrs;
};

std::vector<Distribution> distributions() {
  return {{"random_normal",
           "random_normal_like",
           "RandomNormal",
           "RandomNormalLike",
           "numbers of a normal distribution",
           normal_of,
           {float_attr("mean", 0), float_attr("scale", 1)}},
          {"random_uniform",
           "random_uniform_like",
           "RandomUniform",
           "RandomUniformLike",
           "numbers of a uniform distribution",
           uniform_of,
           {float_attr("low", 0), float_attr("high", 1)}}};
}

OpDef of_shape(const Distribution& d) {
  OpDef op = random_record();
  op.name = d.name;
  op.onnx = {"", d.onnx, {1, 22}};
  op.doc = d.doc;
  op.results = {{"output", float_tensor}};
  op.attrs = d.attrs;
  op.attrs.insert(op.attrs.end(), {int_attr("dtype", 1), optional_attr("seed", AttrKind::real),
                                   required_attr("shape", AttrKind::integers)});
  op.forward = forward_shape;
  op.backward = absent("there are no operands");
  op.eval = [draw = d.draw](EvalContext& e) {
    e.set(0, draw_tensor(e, float_dtype(e, DType::f32), e.attr_ints("shape"), draw(e)));
  };
  op.samples = {{"$() {shape = [2, 3], seed = 1.0}", "f32[2, 3]"},
                {"$() {shape = [0], dtype = 11}", "f64[0]"},
                {"$() {shape = [-1]}", "error: -1"},
                {"$() {shape = [1], dtype = 7}", "error: must name a float"}};
  return op;
}

OpDef like_tensor(const Distribution& d) {
  OpDef op = random_record();
  op.name = d.like_name;
  op.onnx = {"", d.onnx_like, {1, 22}};
  op.doc = d.doc;
  op.operands = {{"input", {"T1", dtypes::numeric | dtypes::boolean | dtypes::complex | dtypes::string}}};
  op.results = {{"output", {"T2", dtypes::floats}}};
  op.attrs = d.attrs;
  op.attrs.insert(op.attrs.end(), {optional_attr("dtype", AttrKind::integer), optional_attr("seed", AttrKind::real)});
  op.forward = forward_like;
  op.eval = [draw = d.draw](EvalContext& e) {
    e.set(0, draw_tensor(e, float_dtype(e, e.tensor(0).dtype()), e.tensor(0).dims(), draw(e)));
  };
  op.samples = {{"$(f32[2, 3])", "f32[2, 3]"},
                {"$(i64[2, 0]) {dtype = 10}", "f16[2, 0]"},
                {"$(i64[2])", "error: must name a float"}};
  return op;
}

OpDef bernoulli_record() {
  OpDef op = random_record();
  op.name = "bernoulli";
  op.onnx = {"", "Bernoulli", {15, 22}};
  op.doc = "1 with the probability that the operand gives, else 0";
  op.operands = {{"input", {"T1", dtypes::floats}}};
  op.results = {{"output", {"T2", dtypes::numeric | dtypes::boolean}}};
  op.attrs = {optional_attr("dtype", AttrKind::integer), optional_attr("seed", AttrKind::real)};
  op.forward = forward_like;
  op.eval = bernoulli;
  op.samples = {{"$(f32[4]{0, 1, 0, 1})", "f32[4]{0, 1, 0, 1}"},
                {"$(f64[2, 0]) {dtype = 9, seed = 2.0}", "bool[2, 0]"},
                {"$(f32[1]{1.5})", "error: not a probability"},
                {"$(f32[1]) {dtype = 8}", "error: does not give"}};
  return op;
}

OpDef multinomial_record() {
  OpDef op = random_record();
  op.name = "multinomial";
  op.onnx = {"", "Multinomial", {7, 22}};
  op.doc = "classes drawn by unnormalised log-probabilities";
  op.operands = {{"input", {"T1", dtypes::floats}}};
  op.results = {{"output", {"T2", dtypes::indices}}};
  op.attrs = {int_attr("dtype", 6), int_attr("sample_size", 1), optional_attr("seed", AttrKind::real)};
  op.mapping = Mapping::opaque;
  op.forward = [](const ForwardContext& c) -> std::vector<Type> {
    sym::Expr batch = c.dims(0) && c.rank(0) == 2 ? c.dims(0)->front() : c.unknown(0, 0);
    return {Type::tensor(declared_dtype(c, DType::i32), SymDims{batch, c.constant(c.attr_int("sample_size"))})};
  };
  op.backward = backward_rank<0, 2>;
  op.eval = multinomial;
  op.samples = {{"$(f32[2, 3]{-1000, 0, -1000, 0, -inf, -1000}) {sample_size = 2}", "i32[2, 2]{1, 1, 0, 0}"},
                {"$(f32[0, 3]) {dtype = 7}", "i64[0, 1]"},
                {"$(f32[2, 0]) {sample_size = 0}", "i32[2, 0]"},
                {"$(f32[2, 0])", "error: no classes"},
                {"$(f32[2, 2]) {sample_size = -2}", "error: -2"},
                {"$(f32[1, 2]{-inf, -inf})", "error: no finite largest"},
                {"$(f32[3])", "error: not [batch, classes]"}};
  return op;
}

}  // namespace

std::vector<OpDef> random_family() {
  std::vector<OpDef> family{bernoulli_record(), multinomial_record()};
  for (const Distribution& d : distributions()) {
    family.push_back(of_shape(d));
    family.push_back(like_tensor(d));
  }
  return family;
}

}  // namespace selkie::ops
