// Resize and Upsample: a tensor resampled to other sizes, one axis after the other.
#include "ops/support/resize.h"

#include <algorithm>

#include "ops/support/blank.h"
#include "ops/support/resize_lower.h"
#include "ops/support/resize_shape.h"

namespace selkie::ops {
namespace {

constexpr DTypeSet any = dtypes::numeric | dtypes::boolean | dtypes::string | dtypes::complex;
constexpr TypeVar type{"T1", any};
constexpr TypeVar roi_type{"T2", dtypes::f16_f32_f64};
constexpr TypeVar scale_type{"f32", dtypes::f32};

void check_count(const Tensor& t, std::string_view what, size_t axes) {
  if (t.rank() != 1 || t.count() != static_cast<int64_t>(axes))
    fail("'{}' has shape {}, but {} axes are resized", what, to_string(t.dims()), axes);
}

void scale_by(std::vector<ResizeAxis>& axes, const Tensor& scales) {
  check_count(scales, "scales", axes.size());
  set_scales(axes, widen<double>(scales));
}

std::vector<ResizeAxis> axes_of(const EvalContext& e, const Tensor& x) {
  std::vector<int64_t> chosen;
  if (e.has_attr("axes") && !e.attr_ints("axes").empty())
    chosen = e.attr_ints("axes");
  else
    for (int64_t i = 0; i < x.rank(); ++i) chosen.push_back(i);
  normalize_axes(chosen, x.rank());
  std::vector<ResizeAxis> axes;
  for (int64_t axis : chosen) {
    int64_t at = normalize_axis(axis, x.rank());
    axes.push_back({at, x.dim(at), x.dim(at), 1});
  }
  return axes;
}

// From the attributes of a node, whether it is evaluated or lowered.
template <class Context>
ResizeOptions options_of(const Context& c) {
  ResizeOptions o{c.attr_string("mode"),
                  c.attr_string("coordinate_transformation_mode"),
                  c.attr_string("nearest_mode"),
                  c.attr_float("cubic_coeff_a"),
                  c.attr_float("extrapolation_value"),
                  c.attr_int("antialias") != 0,
                  c.attr_int("exclude_outside") != 0};
  static constexpr std::string_view known[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                               "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                               "tf_crop_and_resize"};
  if (std::find(std::begin(known), std::end(known), o.coordinates) == std::end(known))
    fail("there is no coordinate transformation '{}'", o.coordinates);
  return o;
}

void eval_resize(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<ResizeAxis> axes = axes_of(e, x);
  // Opsets 11 and 12 gave an empty tensor for what is left out.
  bool scales = e.has(2) && e.tensor(2).count() > 0;
  bool sizes = e.has(3) && e.tensor(3).count() > 0;
  if (scales == sizes && x.rank() > 0) fail("exactly one of 'scales' and 'sizes' is needed");
  if (scales) scale_by(axes, e.tensor(2));
  if (sizes) {
    check_count(e.tensor(3), "sizes", axes.size());
    set_sizes(axes, ints_of(e.tensor(3)), e.attr_string("keep_aspect_ratio_policy"));
  }
  ResizeOptions o = options_of(e);
  if (o.coordinates == "tf_crop_and_resize") {
    std::vector<double> roi = e.has(1) ? widen<double>(e.tensor(1)) : std::vector<double>{};
    if (roi.size() != 2 * axes.size()) fail("'roi' has {} elements, but {} are needed", roi.size(), 2 * axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].roi_begin = roi[i];
      axes[i].roi_end = roi[axes.size() + i];
    }
  }
  e.set(0, resize(x, o, axes));
}

const ResizeOptions before_opset_11{.coordinates = "asymmetric", .nearest = "floor"};

void eval_upsample(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<ResizeAxis> axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back({i, x.dim(i), x.dim(i), 1});
  scale_by(axes, e.tensor(1));
  ResizeOptions o = before_opset_11;
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
  OpDef op = blank_record(Mapping::shuffle);
  op.name = "resize";
  op.onnx = {"", "Resize", {10, 11, 13, 18, 19}};
  op.doc = "resampled to given sizes or by given scales";
  op.operands = {
      {"x", type}, {"roi", roi_type, optional}, {"scales", scale_type, optional}, {"sizes", i64_tensor, optional}};
  op.results = {{"y", type}};
  op.attrs = {int_attr("antialias", 0),
              optional_attr("axes", AttrKind::integers),
              string_attr("coordinate_transformation_mode", "half_pixel"),
              float_attr("cubic_coeff_a", -0.75f),
              int_attr("exclude_outside", 0),
              float_attr("extrapolation_value", 0),
              string_attr("keep_aspect_ratio_policy", "stretch"),
              string_attr("mode", "nearest"),
              string_attr("nearest_mode", "round_prefer_floor")};
  op.dynamism = isvdos({"scales", "sizes"});
  op.value = absent("images do not occur in shape arithmetic");
  op.forward = [](const ForwardContext& c) { return resize_forward(c, {.scales = 2, .sizes = 3}); };
  op.backward = [](BackwardContext& c) { resize_backward(c, {.scales = 2, .sizes = 3}); };
  op.eval = eval_resize;
  op.lower = [](LowerContext& c) { lower_resize(c, options_of(c), {.scales = 2, .sizes = 3}); };
  op.upgrades = {{11, from_opset_10}};
  op.samples = {
      {"$(f32[1, 2]{1, 3}, _, f32[2]{1, 2}) {mode = \"linear\"}", "f32[1, 4]{1, 1.5, 2.5, 3}"},
      {"$(str[2]{\"a\", \"b\"}, _, _, i64[1]{4})", "str[4]{\"a\", \"a\", \"b\", \"b\"}"},
      {"$(u8[4]{0, 100, 200, 255}, _, _, i64[1]{2}) {mode = \"cubic\", antialias = 1}", "u8[2]"},
      {"$(f32[1, 4, 8], _, _, i64[2]{7, 8}) {axes = [1, 2], keep_aspect_ratio_policy = \"not_larger\"}",
       "f32[1, 4, 8]"},
      {"$(f32[3]{1, 2, 3}, f32[2]{0, 2}, _, i64[1]{3}) {coordinate_transformation_mode = \"tf_crop_and_resize\", "
       "extrapolation_value = 9.0}",
       "f32[3]{1, 3, 9}"},
      {"$(f32[0, 2], _, f32[2]{1, 2})", "f32[0, 4]"},
      {"$(f32[10, 7, 3], _, f32[3]{0.7, 0.5, 1.3})", "f32[7, 3, 3]"},
      {"$(f32[2, 30, 6], _, f32[2]{0.1, 0.33333334}, i64[0]) {axes = [-2, -1]}", "f32[2, 3, 2]"},
      {"$(f32[3, 4], f32[0], f32[0], i64[2]{0, 1})", "f32[0, 1]"},
      {"$(f32[2, 4], _, _, i64[1]{9}) {axes = [1], keep_aspect_ratio_policy = \"not_smaller\"}", "f32[2, 9]"},
      {"$(f32[2, 4, 0], _, _, i64[2]{3, 5}) {axes = [0, 2], keep_aspect_ratio_policy = \"not_smaller\"}",
       "f32[3, 4, 0]"},
      {"$(f32[])", "f32[]"},
      {"$(f32[1, 2], _, f32[2]{1, 2}, i64[2]{1, 2})", "error: exactly one of"},
      {"$(f32[1, 2], _, f32[2]{1, 0})", "error: a scale is 0"},
      {"$(f32[1, 2], _, f32[2]{1, 2}) {mode = \"magic\"}", "error: no mode 'magic'"}};
  return op;
}

OpDef upsample() {
  OpDef op = base();
  op.name = "upsample";
  op.onnx = {"", "Upsample", {1, 7, 9, 10}};
  op.doc = "resampled by given scales, as before resize";
  op.operands = {{"x", type}, {"scales", scale_type}};
  op.attrs = {string_attr("mode", "nearest")};
  op.dynamism = isvdos({"scales"});
  op.forward = [](const ForwardContext& c) { return resize_forward(c, {.scales = 1, .sizes = {}}); };
  op.backward = [](BackwardContext& c) { resize_backward(c, {.scales = 1, .sizes = {}}); };
  op.eval = eval_upsample;
  op.lower = [](LowerContext& c) {
    ResizeOptions o = before_opset_11;
    o.mode = c.attr_string("mode");
    lower_resize(c, o, {.scales = 1, .sizes = {}});
  };
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
