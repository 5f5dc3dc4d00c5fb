// Resize and Upsample: a tensor resampled to other sizes, one axis after the other.
#include <limits>

#include "ops/support/interpolate.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr DTypeSet any = dtypes::numeric | dtypes::boolean | dtypes::string | dtypes::complex;
constexpr TypeVar type{"T1", any};
constexpr TypeVar roi_type{"T2", dtypes::f16_f32_f64};
constexpr TypeVar scale_type{"f32", dtypes::f32};

struct Options {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  double outside = 0;  // what tf_crop_and_resize gives beyond the input
  bool antialias = false;
  bool exclude_outside = false;
};

struct Axis {
  int64_t axis;
  int64_t input;
  int64_t output;
  double scale;
  double roi_begin = 0;
  double roi_end = 1;
};

// Where output index i lies in the input, as a real coordinate.
double coordinate(const Options& o, const Axis& a, int64_t i) {
  auto x = static_cast<double>(i);
  auto last = static_cast<double>(a.input - 1);
  double width = a.scale * static_cast<double>(a.input);
  if (o.coordinates == "asymmetric") return x / a.scale;
  if (o.coordinates == "align_corners") return width == 1 ? 0 : x * last / (width - 1);
  if (o.coordinates == "pytorch_half_pixel" && a.output <= 1) return 0;
  if (o.coordinates == "tf_crop_and_resize") {
    double span = (a.roi_end - a.roi_begin) * last;
    return a.roi_begin * last + (a.output > 1 ? x * span / (width - 1) : span / 2);
  }
  double shift = 0;
  if (o.coordinates == "half_pixel_symmetric") shift = static_cast<double>(a.input) / 2 * (1 - static_cast<double>(a.output) / width);
  return shift + (x + 0.5) / a.scale - 0.5;
}

int64_t nearest_index(const Options& o, double x) {
  if (o.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (o.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  return static_cast<int64_t>(o.nearest == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5));
}

// The input elements that output index i is made of.
std::vector<Weighted> neighbours(const Options& o, const Axis& a, double x) {
  auto clamp = [&](int64_t index) { return std::clamp<int64_t>(index, 0, a.input - 1); };
  if (o.mode == "nearest") return {{clamp(nearest_index(o, x)), 1}};
  double radius = o.mode == "linear" ? 1 : 2;
  double stretch = o.antialias ? std::min(a.scale, 1.0) : 1;
  auto base = static_cast<int64_t>(std::ceil(x)) - 1;
  double ratio = x - static_cast<double>(base);
  auto begin = static_cast<int64_t>(std::floor(-radius / stretch)) + 1;
  std::vector<Weighted> out;
  double sum = 0;
  for (int64_t i = begin; i < 2 - begin; ++i) {
    double at = stretch * (static_cast<double>(i) - ratio);
    double weight = o.mode == "linear" ? linear_kernel(at) : cubic_kernel(at, o.cubic_a);
    bool inside = base + i >= 0 && base + i < a.input;
    if (o.exclude_outside && !inside) continue;
    sum += weight;
    out.push_back({clamp(base + i), weight});
  }
  if (o.exclude_outside || o.antialias)
    for (Weighted& w : out) w.weight /= sum == 0 ? 1 : sum;
  return out;
}

// Per output index: its neighbours, or none where the result is the value for outside.
std::vector<std::vector<Weighted>> plan(const Options& o, const Axis& a) {
  std::vector<std::vector<Weighted>> out;
  for (int64_t i = 0; i < a.output; ++i) {
    double x = coordinate(o, a, i);
    if (!(std::fabs(x) < 0x1p52)) fail("axis {} cannot be resized from {} to {} with scale {}", a.axis, a.input, a.output, a.scale);
    bool beyond = o.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.input - 1));
    out.push_back(beyond ? std::vector<Weighted>{} : neighbours(o, a, x));
  }
  return out;
}

template <class T>
std::vector<T> apply(const std::vector<T>& x, Dims& dims, const Axis& a, const std::vector<std::vector<Weighted>>& taps, T outside) {
  int64_t outer = product(dims, 0, a.axis);
  int64_t inner = product(dims, a.axis + 1, static_cast<int64_t>(dims.size()));
  dims[static_cast<size_t>(a.axis)] = a.output;
  std::vector<T> out(static_cast<size_t>(element_count(dims)));
  T* to = out.data();
  for (int64_t i = 0; i < outer; ++i)
    for (const std::vector<Weighted>& row : taps) {
      const T* from = x.data() + i * a.input * inner;
      for (int64_t j = 0; j < inner; ++j, ++to) {
        if constexpr (std::is_same_v<T, std::string>) {
          *to = row.empty() ? outside : from[row[0].index * inner + j];
        } else {
          if (row.empty()) *to = outside;
          for (const Weighted& w : row) *to += w.weight == 1 ? from[w.index * inner + j] : from[w.index * inner + j] * w.weight;
        }
      }
    }
  return out;
}

Tensor resize(const Tensor& input, const Options& o, const std::vector<Axis>& axes) {
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic") fail("there is no mode '{}'", o.mode);
  if (input.dtype() == DType::str && o.mode != "nearest") fail("strings can only be resized in mode nearest");
  if (o.antialias && o.mode == "nearest") fail("mode nearest has no antialiasing");
  Dims dims = input.dims();
  auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> x = widen<T>(input);
    T outside{};
    if constexpr (!std::is_same_v<T, std::string>) outside = o.outside;
    for (const Axis& a : axes) {
      if (a.input == 0 && a.output > 0) fail("axis {} has no elements to resize to {}", a.axis, a.output);
      bool same = a.scale == 1 && a.output == a.input && a.roi_begin == 0 && a.roi_end == 1;
      if (!same) x = apply<T>(x, dims, a, plan(o, a), outside);
    }
    if constexpr (std::is_same_v<T, std::string>) return narrow<T>(x, input.dtype(), dims);
    else return from_reals(x, input.dtype(), dims);
  };
  if (input.dtype() == DType::str) return run(TypeTag<std::string>{});
  return is_complex(input.dtype()) ? run(TypeTag<std::complex<double>>{}) : run(TypeTag<double>{});
}

// The size after scaling, in the precision in which ONNX infers it.
int64_t scaled_size(int64_t input, double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) fail("a scale is {}, but must be above 0", scale);
  float size = static_cast<float>(input) * static_cast<float>(scale);
  if (!(size < 0x1p40f)) fail("a scale of {} makes {} elements too many", scale, input);
  return static_cast<int64_t>(std::floor(size));
}

void set_scales(std::vector<Axis>& axes, const Tensor& scales) {
  if (scales.rank() != 1 || scales.count() != static_cast<int64_t>(axes.size()))
    fail("'scales' has shape {}, but {} axes are resized", to_string(scales.dims()), axes.size());
  std::vector<double> values = widen<double>(scales);
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].scale = values[i];
    axes[i].output = scaled_size(axes[i].input, values[i]);
  }
}

void set_sizes(std::vector<Axis>& axes, const Tensor& sizes, const std::string& policy) {
  if (sizes.rank() != 1 || sizes.count() != static_cast<int64_t>(axes.size()))
    fail("'sizes' has shape {}, but {} axes are resized", to_string(sizes.dims()), axes.size());
  std::vector<int64_t> values = ints_of(sizes);
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (values[i] < 0) fail("'sizes' contains {}", values[i]);
    axes[i].output = values[i];
    axes[i].scale = axes[i].input == 0 ? 1 : static_cast<double>(values[i]) / static_cast<double>(axes[i].input);
    least = std::min(least, axes[i].scale);
    most = std::max(most, axes[i].scale);
  }
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller") fail("there is no aspect ratio policy '{}'", policy);
  for (Axis& a : axes) {
    a.scale = policy == "not_larger" ? least : most;
    double size = std::floor(a.scale * static_cast<double>(a.input) + 0.5);
    if (!(size < 0x1p40)) fail("a scale of {} makes {} elements too many", a.scale, a.input);
    a.output = static_cast<int64_t>(size);
  }
}

std::vector<Axis> axes_of(const EvalContext& e, const Tensor& x) {
  std::vector<int64_t> chosen;
  if (e.has_attr("axes") && !e.attr_ints("axes").empty()) chosen = e.attr_ints("axes");
  else
    for (int64_t i = 0; i < x.rank(); ++i) chosen.push_back(i);
  normalize_axes(chosen, x.rank());
  std::vector<Axis> axes;
  for (int64_t axis : chosen) {
    int64_t at = normalize_axis(axis, x.rank());
    axes.push_back({at, x.dim(at), x.dim(at), 1});
  }
  return axes;
}

void eval_resize(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<Axis> axes = axes_of(e, x);
  // Opsets 11 and 12 gave an empty tensor for what is left out.
  bool scales = e.has(2) && e.tensor(2).count() > 0;
  bool sizes = e.has(3) && e.tensor(3).count() > 0;
  if (scales == sizes && x.rank() > 0) fail("exactly one of 'scales' and 'sizes' is needed");
  if (scales) set_scales(axes, e.tensor(2));
  if (sizes) set_sizes(axes, e.tensor(3), e.attr_string("keep_aspect_ratio_policy"));
  Options o{e.attr_string("mode"), e.attr_string("coordinate_transformation_mode"), e.attr_string("nearest_mode"),
            e.attr_float("cubic_coeff_a"), e.attr_float("extrapolation_value"), e.attr_int("antialias") != 0,
            e.attr_int("exclude_outside") != 0};
  bool crop = o.coordinates == "tf_crop_and_resize";
  if (!crop && o.coordinates != "half_pixel" && o.coordinates != "half_pixel_symmetric" && o.coordinates != "pytorch_half_pixel" &&
      o.coordinates != "align_corners" && o.coordinates != "asymmetric")
    fail("there is no coordinate transformation '{}'", o.coordinates);
  if (crop) {
    std::vector<double> roi = e.has(1) ? widen<double>(e.tensor(1)) : std::vector<double>{};
    if (roi.size() != 2 * axes.size()) fail("'roi' has {} elements, but {} are needed", roi.size(), 2 * axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].roi_begin = roi[i];
      axes[i].roi_end = roi[axes.size() + i];
    }
  }
  e.set(0, resize(x, o, axes));
}

const Options before_opset_11{.coordinates = "asymmetric", .nearest = "floor"};

void eval_upsample(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<Axis> axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back({i, x.dim(i), x.dim(i), 1});
  set_scales(axes, e.tensor(1));
  Options o = before_opset_11;
  o.mode = e.attr_string("mode");
  e.set(0, resize(x, o, axes));
}

// Opset 10 had operands X and scales only, and one way to sample.
void from_opset_10(UpgradeContext& c) {
  ir::Node& n = c.node();
  if (n.operands.size() == 2) n.operands = {n.operands[0], nullptr, n.operands[1]};
  n.attrs.set("coordinate_transformation_mode", before_opset_11.coordinates);
  n.attrs.set("nearest_mode", before_opset_11.nearest);
}

void upsample_from_opset_1(UpgradeContext& c) {
  ir::Attributes& attrs = c.node().attrs;
  auto scale = [&](std::string_view name) {
    const ir::Attribute* found = attrs.find(name);
    if (found == nullptr || !std::holds_alternative<float>(*found)) fail("the real attribute '{}' is required", name);
    return std::get<float>(*found);
  };
  attrs.set("scales", std::vector<float>{1, 1, scale("height_scale"), scale("width_scale")});
  const ir::Attribute* mode = attrs.find("mode");
  const auto* text = mode == nullptr ? nullptr : std::get_if<std::string>(mode);
  if (text != nullptr && *text == "bilinear") attrs.set("mode", std::string("linear"));
  drop_attrs({"height_scale", "width_scale"})(c);
}

void upsample_from_opset_7(UpgradeContext& c) {
  const ir::Attribute* found = c.node().attrs.find("scales");
  if (found == nullptr || !std::holds_alternative<std::vector<float>>(*found)) fail("attribute 'scales' is required");
  std::span<const float> scales = std::get<std::vector<float>>(*found);
  c.set_operand(1, c.constant(Tensor::from<float>(DType::f32, {static_cast<int64_t>(scales.size())}, scales)));
  c.node().attrs.erase("scales");
}

OpDef base() {
  return {
      .name = "resize",
      .onnx = {"", "Resize", {10, 11, 13, 18, 19}},
      .doc = "resampled to given sizes or by given scales",
      .operands = {{"x", type}, {"roi", roi_type, optional}, {"scales", scale_type, optional}, {"sizes", i64_tensor, optional}},
      .results = {{"y", type}},
      .attrs = {int_attr("antialias", 0), optional_attr("axes", AttrKind::integers),
                string_attr("coordinate_transformation_mode", "half_pixel"), float_attr("cubic_coeff_a", -0.75f),
                int_attr("exclude_outside", 0), float_attr("extrapolation_value", 0),
                string_attr("keep_aspect_ratio_policy", "stretch"), string_attr("mode", "nearest"),
                string_attr("nearest_mode", "round_prefer_floor")},
      .dynamism = isvdos({"scales", "sizes"}),
      .mapping = Mapping::shuffle,
      .forward = later::rdp,
      .backward = later::rdp,
      .value = absent("images do not occur in shape arithmetic"),
      .eval = eval_resize,
      .lower = later::cpu,
      .grad = later::training,
      .upgrades = {{11, from_opset_10}},
      .samples = {{"$(f32[1, 2]{1, 3}, _, f32[2]{1, 2}) {mode = \"linear\"}", "f32[1, 4]{1, 1.5, 2.5, 3}"},
                  {"$(str[2]{\"a\", \"b\"}, _, _, i64[1]{4})", "str[4]{\"a\", \"a\", \"b\", \"b\"}"},
                  {"$(u8[4]{0, 100, 200, 255}, _, _, i64[1]{2}) {mode = \"cubic\", antialias = 1}", "u8[2]"},
                  {"$(f32[1, 4, 8], _, _, i64[2]{7, 8}) {axes = [1, 2], keep_aspect_ratio_policy = \"not_larger\"}", "f32[1, 4, 8]"},
                  {"$(f32[3]{1, 2, 3}, f32[2]{0, 2}, _, i64[1]{3}) {coordinate_transformation_mode = \"tf_crop_and_resize\", "
                   "extrapolation_value = 9.0}",
                   "f32[3]{1, 3, 9}"},
                  {"$(f32[0, 2], _, f32[2]{1, 2})", "f32[0, 4]"},
                  {"$(f32[1, 2], _, f32[2]{1, 2}, i64[2]{1, 2})", "error: exactly one of"},
                  {"$(f32[1, 2], _, f32[2]{1, 0})", "error: a scale is 0"},
                  {"$(f32[1, 2], _, f32[2]{1, 2}) {mode = \"magic\"}", "error: no mode 'magic'"}},
  };
}

OpDef upsample() {
  OpDef op = base();
  op.name = "upsample";
  op.onnx = {"", "Upsample", {1, 7, 9, 10}};
  op.doc = "resampled by given scales, as before resize";
  op.operands = {{"x", type}, {"scales", scale_type}};
  op.attrs = {string_attr("mode", "nearest")};
  op.dynamism = isvdos({"scales"});
  op.eval = eval_upsample;
  op.upgrades = {{7, upsample_from_opset_1}, {9, upsample_from_opset_7}, {10, [](UpgradeContext& c) {
                   c.become("resize");
                   from_opset_10(c);
                 }}};
  op.samples = {{"$(f32[1, 2]{1, 3}, f32[2]{1, 2})", "f32[1, 4]{1, 1, 3, 3}"},
                {"$(f32[1, 2]{1, 3}, f32[2]{1, 2}) {mode = \"linear\"}", "f32[1, 4]{1, 2, 3, 3}"},
                {"$(f32[0, 2], f32[2]{1, 2})", "f32[0, 4]"},
                {"$(f32[1, 2], f32[1]{2})", "error: 2 axes are resized"}};
  return op;
}

}  // namespace

std::vector<OpDef> resize_family() { return {base(), upsample()}; }

}  // namespace selkie::ops
