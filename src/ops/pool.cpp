// Pools: the largest, the mean or the p-norm of the elements under a sliding window, or of a whole plane.
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/pool_lower.h"
#include "ops/support/window.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

constexpr TypeVar max_type{"T", dtypes::floats | DTypeSet{DType::i8, DType::u8}};
constexpr TypeVar index_type{"I", dtypes::i64};

Window window_of(const EvalContext& e, const Tensor& x) {
  if (x.rank() < 3) fail("the input has shape {}, but needs a batch, channels and spatial axes", to_string(x.dims()));
  auto spatial = std::span(x.dims()).subspan(2);
  return make_window(window_attrs(e, spatial.size()), spatial, e.attr_ints("kernel_shape"));
}

Dims result_dims(const Tensor& x, const Window& window) {
  Dims dims{x.dim(0), x.dim(1)};
  for (const WindowAxis& a : window) dims.push_back(a.output);
  return dims;
}

// y = pool(the plane's elements, taps, number of elements under the window including padding), for every plane and
// position.
template <class F>
Tensor pool(const Tensor& x, const Window& window, F&& f) {
  Dims dims = result_dims(x, window);
  std::vector<double> values = widen<double>(x);
  std::vector<double> out = zeros<double>(dims);
  int64_t planes = x.dim(0) * x.dim(1);
  int64_t from = product(x.dims(), 2, x.rank());
  int64_t to = product(dims, 2, x.rank());
  if (planes > 0)
    for_each_window(window, 0, to, [&](int64_t position, std::span<const Tap> taps, int64_t padded) {
      for (int64_t p = 0; p < planes; ++p)
        out[static_cast<size_t>(p * to + position)] = f(values.data() + p * from, taps, padded);
    });
  return narrow<double>(out, x.dtype(), dims);
}

void eval_average(EvalContext& e) {
  bool with_padding = e.attr_int("count_include_pad") != 0;
  auto mean = [&](const double* x, std::span<const Tap> taps, int64_t padded) {
    double sum = 0;
    for (const Tap& t : taps) sum += x[t.input];
    return sum / static_cast<double>(std::max<int64_t>(with_padding ? padded : static_cast<int64_t>(taps.size()), 1));
  };
  e.set(0, pool(e.tensor(0), window_of(e, e.tensor(0)), mean));
}

double norm_exponent(const EvalContext& e) {
  if (e.attr_int("p") < 1) fail("'p' is {}, but must be at least 1", e.attr_int("p"));
  return static_cast<double>(e.attr_int("p"));
}

void eval_norm(EvalContext& e) {
  double p = norm_exponent(e);
  auto norm = [&](const double* x, std::span<const Tap> taps, int64_t) {
    double sum = 0;
    for (const Tap& t : taps) sum += std::pow(std::fabs(x[t.input]), p);
    return std::pow(sum, 1 / p);
  };
  e.set(0, pool(e.tensor(0), window_of(e, e.tensor(0)), norm));
}

// Where an element of a plane is in column-major order.
int64_t column_major(const Window& window, int64_t at) {
  int64_t stride = element_count(input_dims(window));
  int64_t out = 0;
  for (size_t i = window.size(); i-- > 0; at /= window[i].input) {
    stride /= window[i].input;
    out += at % window[i].input * stride;
  }
  return out;
}

void eval_max(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  Window window = window_of(e, x);
  const double floor = least_element(x.dtype());
  auto largest = [&](const double* plane, std::span<const Tap> taps) {
    const Tap* best = nullptr;
    for (const Tap& t : taps)
      if (best == nullptr || plane[t.input] > plane[best->input] ||
          (std::isnan(plane[t.input]) && !std::isnan(plane[best->input])))
        best = &t;
    return best;
  };
  e.set(0, pool(x, window, [&](const double* plane, std::span<const Tap> taps, int64_t) {
          const Tap* best = largest(plane, taps);
          return best == nullptr ? floor : plane[best->input];
        }));
  if (e.result_count() < 2) return;
  bool columns = e.attr_int("storage_order") != 0;
  int64_t size = product(x.dims(), 2, x.rank());
  std::vector<double> values = widen<double>(x);
  Tensor indices(DType::i64, result_dims(x, window));
  auto* out = indices.mutable_data<int64_t>();
  int64_t to = product(indices.dims(), 2, x.rank());
  for_each_window(window, 0, x.dim(0) * x.dim(1) > 0 ? to : 0,
                  [&](int64_t position, std::span<const Tap> taps, int64_t) {
                    for (int64_t p = 0; p < x.dim(0) * x.dim(1); ++p) {
                      const Tap* best = largest(values.data() + p * size, taps);
                      out[p * to + position] =
                          best == nullptr ? -1 : p * size + (columns ? column_major(window, best->input) : best->input);
                    }
                  });
  e.set(1, std::move(indices));
}

std::vector<Type> forward(const ForwardContext& c) {
  SymDims kernel = constants(c, c.attr_ints("kernel_shape"));
  SymDims dims = c.unknown_dims(0, c.dims(0) ? 0 : kernel.size() + 2);
  if (c.dims(0) && c.rank(0) >= 3) {
    dims = window_dims(c, std::span(*c.dims(0)).subspan(2), kernel);
    dims.insert(dims.begin(), c.dims(0)->begin(), c.dims(0)->begin() + 2);
  } else if (c.dims(0)) {
    fail("the input has rank {}, but needs a batch, channels and spatial axes", c.rank(0));
  }
  return {Type::tensor(c.dtype(0), dims), Type::tensor(DType::i64, dims)};
}

void backward(BackwardContext& c) {
  SymDims kernel = constants(c, c.attr_ints("kernel_shape"));
  c.set_rank(0, kernel.size() + 2);
  const SymDims x = *c.dims(0);
  require_windows_fit(c, std::span(x).subspan(2), kernel);
}

// Opset 1 wrote p as a float.
void integer_p(UpgradeContext& c) {
  const ir::Attribute* p = c.node().attrs.find("p");
  if (const auto* real = p == nullptr ? nullptr : std::get_if<float>(p))
    c.node().attrs.set("p", static_cast<int64_t>(*real));
}

OpDef base() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.operands = {{"x", float_tensor}};
  op.results = {{"y", float_tensor}};
  op.forward = forward;
  op.backward = backward;
  op.value = absent("pools do not occur in shape arithmetic");
  return op;
}

std::vector<ir::AttrDef> window_records() {
  return {string_attr("auto_pad", "NOTSET"),
          int_attr("ceil_mode", 0),
          optional_attr("dilations", AttrKind::integers),
          required_attr("kernel_shape", AttrKind::integers),
          optional_attr("pads", AttrKind::integers),
          optional_attr("strides", AttrKind::integers)};
}

OpDef average() {
  OpDef op = base();
  op.name = "average_pool";
  op.onnx = {"", "AveragePool", {1, 7, 10, 11, 19, 22}};
  op.doc = "the mean of the elements under a sliding window";
  op.attrs = window_records();
  op.attrs.push_back(int_attr("count_include_pad", 0));
  op.eval = eval_average;
  op.lower = lower_average_pool;
  op.samples = {{"$(f32[1, 1, 3]{1, 2, 6}) {kernel_shape = [2], pads = [1, 0]}", "f32[1, 1, 3]{1, 1.5, 4}"},
                {"$(f32[1, 1, 3]{1, 2, 6}) {kernel_shape = [2], pads = [1, 0], count_include_pad = 1}",
                 "f32[1, 1, 3]{0.5, 1.5, 4}"},
                {"$(f32[2, 3, 7, 8]) {kernel_shape = [3, 2], strides = [2, 3], ceil_mode = 1}", "f32[2, 3, 3, 3]"},
                {"$(f32[0, 3, 5]) {kernel_shape = [5]}", "f32[0, 3, 1]"},
                {"$(f32[2, 1, 0, 5]) {kernel_shape = [3, 2], strides = [2, 2], pads = [1, 1, 0, 2], ceil_mode = 1}",
                 "f32[2, 1, 0, 3]"},
                {"$(f32[1, 1, 6]) {kernel_shape = [2], strides = [4], pads = [1, 1], ceil_mode = 1}", "f32[1, 1, 2]"},
                {"$(f32[1, 3, 5]) {kernel_shape = [6]}", "error: does not fit"},
                {"$(f32[1, 3, 5]) {kernel_shape = [2, 2]}", "error: the kernel has 2 axes"},
                {"$(f32[1, 3, 5]) {kernel_shape = [2], strides = [0]}", "error: 'strides' contains 0"}};
  return op;
}

OpDef max() {
  OpDef op = base();
  op.name = "max_pool";
  op.onnx = {"", "MaxPool", {1, 8, 10, 11, 12, 22}};
  op.doc = "the largest of the elements under a sliding window, and where it is";
  op.operands = {{"x", max_type}};
  op.results = {{"y", max_type}, {"indices", index_type, optional}};
  op.attrs = window_records();
  op.attrs.push_back(int_attr("storage_order", 0));
  op.eval = eval_max;
  op.lower = lower_max_pool;
  op.samples = {
      {"$(f32[1, 2, 3]{1, 5, 2, 9, 8, 7}) {kernel_shape = [2]}", "f32[1, 2, 2]{5, 5, 9, 8}, i64[1, 2, 2]{1, 1, 3, 4}"},
      {"$(i8[1, 1, 2, 3]{1, 2, 3, 4, 5, 6}) {kernel_shape = [1, 2], strides = [1, 2], auto_pad = \"SAME_UPPER\", "
       "storage_order = 1}",
       "i8[1, 1, 2, 2]{2, 3, 5, 6}, i64[1, 1, 2, 2]{2, 4, 3, 5}"},
      {"$(f32[2, 3, 9, 9, 9]) {kernel_shape = [2, 2, 2], dilations = [2, 1, 3], pads = [1, 0, 0, 1, 0, 0]}",
       "f32[2, 3, 9, 8, 6]"},
      {"$(f32[2, 0, 4]) {kernel_shape = [2]}", "f32[2, 0, 3]"},
      {"$(f32[1, 3]) {kernel_shape = [1]}", "error: spatial axes"}};
  return op;
}

OpDef norm() {
  OpDef op = base();
  op.name = "lp_pool";
  op.onnx = {"", "LpPool", {1, 2, 11, 18, 22}};
  op.doc = "the p-norm of the elements under a sliding window";
  op.attrs = window_records();
  op.attrs.push_back(int_attr("p", 2));
  op.eval = eval_norm;
  op.lower = lower_norm_pool;
  op.upgrades = {{2, integer_p}};
  op.samples = {{"$(f32[1, 1, 3]{3, 4, 0}) {kernel_shape = [2]}", "f32[1, 1, 2]{5, 4}"},
                {"$(f32[1, 1, 3]{3, -4, 0}) {kernel_shape = [2], p = 1}", "f32[1, 1, 2]{7, 4}"},
                {"$(f32[1, 0, 3]) {kernel_shape = [2]}", "f32[1, 0, 2]"},
                {"$(f32[1, 1, 3]) {kernel_shape = [2], p = 0}", "error: 'p' is 0"}};
  return op;
}

void eval_whole(WholePool kind, EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() < 2) fail("the input has shape {}, but needs a batch and channels", to_string(x.dims()));
  Dims dims = x.dims();
  std::fill(dims.begin() + 2, dims.end(), 1);
  int64_t size = product(x.dims(), 2, x.rank());
  double p = kind == WholePool::norm ? norm_exponent(e) : 1;
  std::vector<double> values = widen<double>(x);
  std::vector<double> out = zeros<double>(dims);
  for (size_t plane = 0; plane < out.size(); ++plane) {
    double sum = kind == WholePool::most ? least_element(x.dtype()) : 0;
    for (int64_t i = 0; i < size; ++i) {
      double v = values[plane * static_cast<size_t>(size) + static_cast<size_t>(i)];
      if (kind == WholePool::most)
        sum = v > sum || std::isnan(v) ? v : sum;
      else
        sum += kind == WholePool::norm ? std::pow(std::fabs(v), p) : v;
    }
    out[plane] = kind == WholePool::mean   ? sum / static_cast<double>(size)
                 : kind == WholePool::norm ? std::pow(sum, 1 / p)
                                           : sum;
  }
  e.set(0, narrow<double>(out, x.dtype(), dims));
}

std::vector<Type> forward_whole(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(c.dtype(0))};
  SymDims dims = *c.dims(0);
  for (size_t i = 2; i < dims.size(); ++i) dims[i] = c.constant(1);
  return {Type::tensor(c.dtype(0), dims)};
}

void backward_whole(BackwardContext& c) {
  if (!c.result_dims(0)) return;
  SymDims dims = *c.result_dims(0);
  std::fill(dims.begin() + std::min<int64_t>(2, std::ssize(dims)), dims.end(), sym::Expr());
  c.set_dims(0, dims);
}

OpDef whole(WholePool kind, std::string_view name, ir::OnnxName onnx, std::string_view doc, std::string_view expect) {
  OpDef op = base();
  op.name = name;
  op.onnx = std::move(onnx);
  op.doc = doc;
  op.forward = forward_whole;
  op.backward = backward_whole;
  op.eval = [kind](EvalContext& e) { eval_whole(kind, e); };
  op.lower = [kind](LowerContext& c) { lower_whole_pool(kind, c); };
  if (kind == WholePool::norm) op.attrs = {int_attr("p", 2)};
  if (kind == WholePool::norm) op.upgrades = {{2, integer_p}};
  op.samples = {{"$(f32[1, 2, 2]{3, 4, 0, 6})", expect},
                {"$(f32[2, 3, 4, 5])", "f32[2, 3, 1, 1]"},
                {"$(f32[0, 3, 4])", "f32[0, 3, 1]"},
                {"$(f32[3])", "error: needs a batch and channels"}};
  return op;
}

}  // namespace

std::vector<OpDef> pool_family() {
  return {average(),
          max(),
          norm(),
          whole(WholePool::mean, "global_average_pool", {"", "GlobalAveragePool", {1, 22}}, "the mean of each plane",
                "f32[1, 2, 1]{3.5, 3}"),
          whole(WholePool::norm, "global_lp_pool", {"", "GlobalLpPool", {1, 2, 22}}, "the p-norm of each plane",
                "f32[1, 2, 1]{5, 6}"),
          whole(WholePool::most, "global_max_pool", {"", "GlobalMaxPool", {1, 22}}, "the largest of each plane",
                "f32[1, 2, 1]{4, 6}")};
}

}  // namespace selkie::ops
