// RoiAlign and MaxRoiPool: regions of images, pooled to one fixed size.
#include <cmath>
#include <limits>

#include "ops/support/blank.h"
#include "ops/support/interpolate.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

constexpr TypeVar align_type{"T1", dtypes::floats};

void check_images(const Tensor& x, const Tensor& rois, int64_t columns) {
  if (x.rank() != 4) fail("the input has shape {}, but must be of rank 4", to_string(x.dims()));
  if (rois.rank() != 2 || rois.dim(1) != columns)
    fail("'rois' has shape {}, but must have [regions, {}]", to_string(rois.dims()), columns);
}

int64_t checked_image(double index, const Tensor& x) {
  if (!(index >= 0 && index < static_cast<double>(x.dim(0))))
    fail("image {} is outside a batch of {}", index, x.dim(0));
  return static_cast<int64_t>(index);
}

// The neighbours of a sample along one axis; none if it lies more than one element outside.
std::vector<Weighted> neighbours(double x, int64_t size) {
  if (!(x >= -1 && x <= static_cast<double>(size))) return {};
  x = std::max(x, 0.0);
  auto low = static_cast<int64_t>(x);
  if (low >= size - 1) return {{size - 1, 1}};
  return {{low, static_cast<double>(low + 1) - x}, {low + 1, x - static_cast<double>(low)}};
}

// The sampling points of one bin along one axis.
struct Bins {
  double start;
  double size;
  int64_t samples;

  Bins(double begin, double end, int64_t count, bool at_least_one, int64_t ratio) : start(begin) {
    double extent = at_least_one ? std::max(end - begin, 1.0) : end - begin;
    size = extent / static_cast<double>(count);
    if (!(std::fabs(size) < 1e6)) fail("a region of size {} is too large", extent);
    samples = ratio > 0 ? ratio : std::max<int64_t>(static_cast<int64_t>(std::ceil(size)), 0);
  }
  double point(int64_t bin, int64_t sample) const {
    return start + static_cast<double>(bin) * size +
           (static_cast<double>(sample) + 0.5) * size / static_cast<double>(samples);
  }
};

// Calls f with the weighted elements of each sampling point of a bin.
template <class F>
void for_each_sample(const Bins& rows, const Bins& columns, int64_t i, int64_t j, const Tensor& x, F&& f) {
  for (int64_t a = 0; a < rows.samples; ++a) {
    std::vector<Weighted> ys = neighbours(rows.point(i, a), x.dim(2));
    for (int64_t b = 0; b < columns.samples; ++b) {
      std::vector<Weighted> xs = neighbours(columns.point(j, b), x.dim(3));
      f(std::span<const Weighted>(ys), std::span<const Weighted>(xs));
    }
  }
}

double pool_bin(const double* plane, const Tensor& x, const Bins& rows, const Bins& columns, int64_t i, int64_t j,
                bool largest) {
  double result = 0;
  bool first = true;
  for_each_sample(rows, columns, i, j, x, [&](std::span<const Weighted> ys, std::span<const Weighted> xs) {
    double sum = 0;
    double top = xs.empty() || ys.empty() ? 0 : -std::numeric_limits<double>::infinity();
    for (const Weighted& y : ys)
      for (const Weighted& w : xs) {
        double v = plane[y.index * x.dim(3) + w.index] * y.weight * w.weight;
        sum += v;
        top = std::max(top, v);
      }
    result = !largest ? result + sum : first ? top : std::max(result, top);
    first = false;
  });
  return largest ? result : result / static_cast<double>(std::max<int64_t>(rows.samples * columns.samples, 1));
}

void eval_align(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  check_images(x, e.tensor(1), 4);
  std::vector<double> rois = widen<double>(e.tensor(1));
  std::vector<int64_t> images = ints_of(e.tensor(2));
  if (e.tensor(2).dims() != Dims{e.tensor(1).dim(0)})
    fail("'batch_indices' has shape {}", to_string(e.tensor(2).dims()));
  const std::string& mode = e.attr_string("mode");
  if (mode != "avg" && mode != "max") fail("there is no mode '{}'", mode);
  const std::string& coordinates = e.attr_string("coordinate_transformation_mode");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    fail("there is no coordinate transformation '{}'", coordinates);
  bool half_pixel = coordinates == "half_pixel";
  int64_t height = e.attr_int("output_height");
  int64_t width = e.attr_int("output_width");
  int64_t ratio = e.attr_int("sampling_ratio");
  if (height < 1 || width < 1 || ratio < 0 || ratio > 1024)
    fail("an output of {}×{} with {} samples cannot be made", height, width, ratio);
  double scale = e.attr_float("spatial_scale");
  double shift = half_pixel ? 0.5 : 0;
  std::vector<double> values = widen<double>(x);
  int64_t plane = x.dim(2) * x.dim(3);
  if (plane == 0 && !images.empty()) fail("images of shape {} have no elements", to_string(x.dims()));
  Dims dims{e.tensor(1).dim(0), x.dim(1), height, width};
  std::vector<double> out;
  out.reserve(affordable(dims, sizeof(double)));
  for (size_t r = 0; r < images.size(); ++r) {
    auto edge = [&](size_t i) { return rois[r * 4 + i] * scale - shift; };
    Bins columns(edge(0), edge(2), width, !half_pixel, ratio);
    Bins rows(edge(1), edge(3), height, !half_pixel, ratio);
    int64_t image = checked_image(static_cast<double>(images[r]), x);
    for (int64_t c = 0; c < x.dim(1); ++c)
      for (int64_t i = 0; i < height; ++i)
        for (int64_t j = 0; j < width; ++j)
          out.push_back(
              pool_bin(values.data() + (image * x.dim(1) + c) * plane, x, rows, columns, i, j, mode == "max"));
  }
  e.set(0, narrow<double>(out, x.dtype(), dims));
}

// The whole elements of bin i of a region along one axis.
std::pair<int64_t, int64_t> whole_bin(double begin, double end, int64_t bins, int64_t i, int64_t size) {
  auto limit = static_cast<double>(size);
  begin = std::clamp(std::round(begin), -limit - 1e6, limit + 1e6);
  end = std::clamp(std::round(end), -limit - 1e6, limit + 1e6);
  double each = std::max(end - begin + 1, 1.0) / static_cast<double>(bins);
  auto clamp = [&](double v) { return static_cast<int64_t>(std::clamp(v + begin, 0.0, limit)); };
  return {clamp(std::floor(static_cast<double>(i) * each)), clamp(std::ceil(static_cast<double>(i + 1) * each))};
}

void eval_max(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  check_images(x, e.tensor(1), 5);
  const std::vector<int64_t>& pooled = e.attr_ints("pooled_shape");
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) fail("'pooled_shape' is {}", to_string(pooled));
  std::vector<double> rois = widen<double>(e.tensor(1));
  std::vector<double> values = widen<double>(x);
  double scale = e.attr_float("spatial_scale");
  Dims dims{e.tensor(1).dim(0), x.dim(1), pooled[0], pooled[1]};
  std::vector<double> out;
  out.reserve(affordable(dims, sizeof(double)));
  for (size_t r = 0; r < rois.size(); r += 5) {
    int64_t image = checked_image(rois[r], x);
    for (int64_t c = 0; c < x.dim(1); ++c)
      for (int64_t i = 0; i < pooled[0]; ++i)
        for (int64_t j = 0; j < pooled[1]; ++j) {
          auto [top, bottom] = whole_bin(rois[r + 2] * scale, rois[r + 4] * scale, pooled[0], i, x.dim(2));
          auto [left, right] = whole_bin(rois[r + 1] * scale, rois[r + 3] * scale, pooled[1], j, x.dim(3));
          bool empty = top >= bottom || left >= right;
          double most = empty ? 0 : -std::numeric_limits<double>::infinity();
          for (int64_t y = top; y < bottom; ++y)
            for (int64_t z = left; z < right; ++z)
              most =
                  std::max(most, values[static_cast<size_t>(((image * x.dim(1) + c) * x.dim(2) + y) * x.dim(3) + z)]);
          out.push_back(most);
        }
  }
  e.set(0, narrow<double>(out, x.dtype(), dims));
}

// Operand 0 is images, operand 1 regions of so many numbers each.
std::vector<Type> forward(const ForwardContext& c, int64_t height, int64_t width) {
  if (height < 1 || width < 1) fail("an output of {}×{} cannot be made", height, width);
  SymDims dims{c.dims(1) && c.rank(1) == 2 ? c.dims(1)->at(0) : c.unknown(0, 0),
               c.dims(0) && c.rank(0) == 4 ? c.dims(0)->at(1) : c.unknown(0, 1), c.constant(height), c.constant(width)};
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c, int64_t columns) {
  c.set_rank(0, 4);
  c.set_dims(1, SymDims{sym::Expr(), c.constant(columns)});
  c.set_dims(2, SymDims{c.dims(1)->at(0)});
}

OpDef base() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.value = absent("images do not occur in shape arithmetic");
  return op;
}

OpDef align() {
  OpDef op = base();
  op.name = "roi_align";
  op.onnx = {"", "RoiAlign", {10, 16, 22}};
  op.doc = "regions of images, pooled to one size at interpolated points";
  op.operands = {{"x", align_type}, {"rois", align_type}, {"batch_indices", i64_tensor}};
  op.results = {{"y", align_type}};
  op.attrs = {string_attr("coordinate_transformation_mode", "half_pixel"),
              string_attr("mode", "avg"),
              int_attr("output_height", 1),
              int_attr("output_width", 1),
              int_attr("sampling_ratio", 0),
              float_attr("spatial_scale", 1)};
  op.forward = [](const ForwardContext& c) {
    return forward(c, c.attr_int("output_height"), c.attr_int("output_width"));
  };
  op.backward = [](BackwardContext& c) { backward(c, 4); };
  op.eval = eval_align;
  op.upgrades = {{16, set_default("coordinate_transformation_mode", std::string("output_half_pixel"))}};
  op.samples = {
      {"$(f32[1, 1, 2, 2]{1, 2, 3, 4}, f32[1, 4]{0, 0, 2, 2}, i64[1]{0}) {sampling_ratio = 2}", "f32[1, 1, 1, 1]{2.5}"},
      {"$(f32[2, 3, 5, 6], f32[4, 4], i64[4]{0, 1, 1, 0}) {output_height = 2, output_width = 3, mode = \"max\"}",
       "f32[4, 3, 2, 3]"},
      {"$(f32[2, 3, 5, 6], f32[0, 4], i64[0])", "f32[0, 3, 1, 1]"},
      {"$(f32[2, 3, 5, 6], f32[1, 4], i64[1]{2})", "error: image 2 is outside"},
      {"$(f32[2, 3, 5, 6], f32[1, 5], i64[1]{0})", "error: 'rois' has shape"}};
  return op;
}

OpDef max() {
  OpDef op = base();
  op.name = "max_roi_pool";
  op.onnx = {"", "MaxRoiPool", {1, 22}};
  op.doc = "regions of images, each bin of which gives its largest element";
  op.operands = {{"x", float_tensor}, {"rois", float_tensor}};
  op.results = {{"y", float_tensor}};
  op.attrs = {required_attr("pooled_shape", AttrKind::integers), float_attr("spatial_scale", 1)};
  op.forward = [](const ForwardContext& c) {
    const std::vector<int64_t>& pooled = c.attr_ints("pooled_shape");
    if (pooled.size() != 2) fail("'pooled_shape' is {}", to_string(pooled));
    return forward(c, pooled[0], pooled[1]);
  };
  op.backward = [](BackwardContext& c) { backward(c, 5); };
  op.eval = eval_max;
  op.samples = {{"$(f32[1, 1, 2, 3]{1, 2, 3, 4, 5, 6}, f32[1, 5]{0, 0, 0, 1, 1}) {pooled_shape = [1, 2]}",
                 "f32[1, 1, 1, 2]{4, 5}"},
                {"$(f32[1, 3, 5, 6], f32[4, 5]) {pooled_shape = [2, 2]}", "f32[4, 3, 2, 2]"},
                {"$(f32[1, 3, 5, 6], f32[0, 5]) {pooled_shape = [2, 2]}", "f32[0, 3, 2, 2]"},
                {"$(f32[1, 3, 5, 6], f32[1, 5]{1, 0, 0, 1, 1}) {pooled_shape = [2, 2]}", "error: image 1 is outside"},
                {"$(f32[1, 3, 5, 6], f32[1, 5]) {pooled_shape = [2]}", "error: 'pooled_shape' is [2]"}};
  return op;
}

}  // namespace

std::vector<OpDef> roi_align_family() { return {align(), max()}; }

}  // namespace selkie::ops
