#include "ops/support/window.h"

#include <algorithm>

#include "ops/support/shape.h"

namespace selkie::ops {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// Sizes beyond this would overflow in sums and products of a few of them.
constexpr int64_t largest = int64_t{1} << 30;

using Ints = std::vector<int64_t>;

Ints list_attr(const Ints* given, std::string_view name, size_t count, int64_t fallback, int64_t least) {
  if (given == nullptr || given->empty()) return Ints(count, fallback);
  if (given->size() != count) fail("'{}' has {} elements, but {} are needed", name, given->size(), count);
  for (int64_t v : *given)
    if (v < least || v > largest) fail("'{}' contains {}, which is outside {}..{}", name, v, least, largest);
  return *given;
}

WindowAttrs checked(size_t axes, const Ints* strides, const Ints* dilations, const Ints* pads, std::string auto_pad,
                    bool ceil_mode) {
  WindowAttrs out{list_attr(strides, "strides", axes, 1, 1), list_attr(dilations, "dilations", axes, 1, 1),
                  list_attr(pads, "pads", 2 * axes, 0, 0), std::move(auto_pad), ceil_mode};
  bool known = out.auto_pad == "NOTSET" || out.auto_pad == "VALID" || out.auto_pad == "SAME_UPPER" ||
               out.auto_pad == "SAME_LOWER";
  if (!known) fail("'auto_pad' is '{}', but must be NOTSET, VALID, SAME_UPPER or SAME_LOWER", out.auto_pad);
  if (out.auto_pad != "NOTSET") std::fill(out.pads.begin(), out.pads.end(), 0);
  return out;
}

void place(const WindowAttrs& attrs, WindowAxis& a) {
  if (attrs.auto_pad == "SAME_UPPER" || attrs.auto_pad == "SAME_LOWER") {
    a.output = ceil_div(a.input, a.stride);
    int64_t total = std::max<int64_t>((a.output - 1) * a.stride + a.extent() - a.input, 0);
    a.pad_begin = attrs.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    a.pad_end = total - a.pad_begin;
    return;
  }
  int64_t room = a.input + a.pad_begin + a.pad_end - a.extent();
  a.output = floor_div(room, a.stride) + 1;
  // A window that would start beyond the input, in the padding at its end, is left out.
  if (attrs.ceil_mode) a.output = std::min(ceil_div(room, a.stride) + 1, ceil_div(a.input + a.pad_begin, a.stride));
  if (a.output < 0 || (room < 0 && a.input > 0))
    fail("a window of extent {} does not fit an axis of size {} with padding {}", a.extent(), a.input,
         a.pad_begin + a.pad_end);
}

void check_axes(size_t kernel, size_t input) {
  if (kernel != input) fail("the kernel has {} axes, but the input has {} spatial ones", kernel, input);
}

// The taps of one axis at one output index.
struct AxisTaps {
  std::vector<Tap> taps;
  int64_t padded = 0;
};

AxisTaps axis_taps(const WindowAxis& a, int64_t index) {
  AxisTaps out;
  int64_t start = index * a.stride - a.pad_begin;
  for (int64_t k = 0; k < a.kernel; ++k) {
    int64_t at = start + k * a.dilation;
    if (at >= a.input + a.pad_end) break;
    ++out.padded;
    if (at >= 0 && at < a.input) out.taps.push_back({k, at});
  }
  return out;
}

// Every pair of a tap of the outer axes and one of the next axis.
void extend(std::vector<Tap>& taps, const AxisTaps& axis, const WindowAxis& a) {
  std::vector<Tap> next;
  next.reserve(taps.size() * axis.taps.size());
  for (const Tap& t : taps)
    for (const Tap& s : axis.taps) next.push_back({t.kernel * a.kernel + s.kernel, t.input * a.input + s.input});
  taps = std::move(next);
}

}  // namespace

WindowAttrs window_attrs(const ir::EvalContext& e, size_t axes) {
  auto has = [&](std::string_view name) { return e.op().find_attr(name) != nullptr && e.has_attr(name); };
  auto ints = [&](std::string_view name) { return has(name) ? &e.attr_ints(name) : nullptr; };
  return checked(axes, ints("strides"), ints("dilations"), ints("pads"),
                 has("auto_pad") ? e.attr_string("auto_pad") : "NOTSET",
                 has("ceil_mode") && e.attr_int("ceil_mode") != 0);
}

WindowAttrs window_attrs(const ir::ShapeContext& c, size_t axes) {
  auto find = [&]<class T>(std::string_view name, T*) {
    const ir::Attribute* found = c.op().find_attr(name) != nullptr ? c.find_attr(name) : nullptr;
    return found == nullptr ? nullptr : std::get_if<T>(found);
  };
  auto ints = [&](std::string_view name) { return find(name, static_cast<Ints*>(nullptr)); };
  const auto* auto_pad = find("auto_pad", static_cast<std::string*>(nullptr));
  const auto* ceil_mode = find("ceil_mode", static_cast<int64_t*>(nullptr));
  return checked(axes, ints("strides"), ints("dilations"), ints("pads"), auto_pad != nullptr ? *auto_pad : "NOTSET",
                 ceil_mode != nullptr && *ceil_mode != 0);
}

std::vector<int64_t> kernel_shape(const ir::EvalContext& e, std::span<const int64_t> expected) {
  std::vector<int64_t> kernel(expected.begin(), expected.end());
  if (e.has_attr("kernel_shape") && e.attr_ints("kernel_shape") != kernel)
    fail("'kernel_shape' is {}, but the weights have {}", to_string(e.attr_ints("kernel_shape")), to_string(kernel));
  return kernel;
}

Window make_window(const WindowAttrs& attrs, std::span<const int64_t> input, std::span<const int64_t> kernel) {
  check_axes(kernel.size(), input.size());
  Window window;
  for (size_t i = 0; i < input.size(); ++i) {
    if (kernel[i] < 1 || kernel[i] > largest) fail("the kernel has size {} along axis {}", kernel[i], i);
    if (input[i] > largest * 1024) fail("a spatial axis of size {} is too large", input[i]);
    WindowAxis axis{input[i],           kernel[i],     attrs.strides[i],
                    attrs.dilations[i], attrs.pads[i], attrs.pads[input.size() + i]};
    place(attrs, axis);
    window.push_back(axis);
  }
  return window;
}

Dims input_dims(const Window& window) {
  Dims dims;
  for (const WindowAxis& a : window) dims.push_back(a.input);
  return dims;
}

Dims output_dims(const Window& window) {
  Dims dims;
  for (const WindowAxis& a : window) dims.push_back(a.output);
  return dims;
}

int64_t kernel_count(const Window& window) {
  Dims dims;
  for (const WindowAxis& a : window) dims.push_back(a.kernel);
  return element_count(dims);
}

void for_each_window(const Window& window, int64_t begin, int64_t end,
                     const std::function<void(int64_t, std::span<const Tap>, int64_t)>& f) {
  std::vector<int64_t> strides = strides_of(output_dims(window));
  std::vector<Tap> taps;
  for (int64_t position = begin; position < end; ++position) {
    taps.assign(1, Tap{0, 0});
    int64_t padded = 1;
    for (size_t i = 0; i < window.size(); ++i) {
      AxisTaps axis = axis_taps(window[i], position / strides[i] % window[i].output);
      extend(taps, axis, window[i]);
      padded *= axis.padded;
    }
    f(position, taps, padded);
  }
}

namespace {

struct SymAxis {
  sym::Expr input;
  sym::Expr room;  // how far a window can move
  int64_t stride;
  int64_t pad_begin;
};

std::vector<SymAxis> symbolic_axes(const WindowAttrs& attrs, std::span<const sym::Expr> input,
                                   std::span<const sym::Expr> kernel) {
  check_axes(kernel.size(), input.size());
  std::vector<SymAxis> out;
  for (size_t i = 0; i < input.size(); ++i) {
    sym::Expr extent = (kernel[i] - 1) * attrs.dilations[i] + 1;
    out.push_back(
        {input[i], input[i] + attrs.pads[i] + attrs.pads[input.size() + i] - extent, attrs.strides[i], attrs.pads[i]});
  }
  return out;
}

}  // namespace

ir::SymDims window_dims(const ir::ShapeContext& c, std::span<const sym::Expr> input,
                        std::span<const sym::Expr> kernel) {
  WindowAttrs attrs = window_attrs(c, input.size());
  ir::SymDims out;
  for (const SymAxis& a : symbolic_axes(attrs, input, kernel)) {
    if (attrs.auto_pad.starts_with("SAME"))
      out.push_back(ceildiv(a.input, a.stride));
    else if (attrs.ceil_mode)
      out.push_back(min(ceildiv(a.room, a.stride) + 1, ceildiv(a.input + a.pad_begin, a.stride)));
    else
      out.push_back(floordiv(a.room, a.stride) + 1);
  }
  return out;
}

void require_windows_fit(ir::BackwardContext& c, std::span<const sym::Expr> input, std::span<const sym::Expr> kernel) {
  WindowAttrs attrs = window_attrs(c, input.size());
  for (sym::Expr size : kernel) c.less_equal(c.constant(1), size);
  if (attrs.auto_pad.starts_with("SAME")) return;
  for (const SymAxis& a : symbolic_axes(attrs, input, kernel)) {
    // An empty axis may be too short for a window, as long as it gives an empty result.
    int64_t short_by = c.excludes(a.input, 0) ? 0 : attrs.ceil_mode ? 2 * a.stride - 1 : a.stride;
    if ((a.room + short_by).constant().value_or(0) < 0)
      fail("a window does not fit an axis of size {}: {} elements are missing", to_string(a.input), to_string(-a.room));
    c.less_equal(c.constant(0), a.room + short_by);
    // One that is not empty must have room.
    if (short_by > 0) c.less_equal((min(a.input, 1) - 1) * short_by, a.room);
  }
}

}  // namespace selkie::ops
