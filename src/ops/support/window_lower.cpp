#include "ops/support/window_lower.h"

#include "ops/support/window.h"

namespace selkie::ops {

std::vector<SlidingAxis> sliding_axes(const LowerContext& c, std::span<const int64_t> kernel) {
  WindowAttrs attrs = window_attrs(c, kernel.size());
  std::vector<SlidingAxis> axes;
  for (size_t i = 0; i < kernel.size(); ++i) {
    SlidingAxis axis{.input = (*c.dims(0))[i + 2],
                     .pad_begin = c.constant(attrs.pads[i]),
                     .pad_end = c.constant(attrs.pads[kernel.size() + i]),
                     .kernel = kernel[i],
                     .stride = attrs.strides[i],
                     .dilation = attrs.dilations[i],
                     .ceil_mode = attrs.ceil_mode};
    if (attrs.auto_pad.starts_with("SAME")) {
      sym::Expr reach = (c.result_dims()[i + 2] - 1) * axis.stride + ((axis.kernel - 1) * axis.dilation + 1);
      sym::Expr total = sym::max(reach - axis.input, 0);
      sym::Expr half = sym::floordiv(total, 2);
      axis.pad_begin = attrs.auto_pad == "SAME_UPPER" ? half : total - half;
      axis.pad_end = total - axis.pad_begin;
      axis.ceil_mode = false;
    }
    axes.push_back(axis);
  }
  return axes;
}

bool can_be_clamped(const LowerContext& c, const SlidingAxis& axis) {
  auto below = [&](sym::Expr e, int64_t bound) { return c.proves_less_equal(e, c.constant(bound - 1)); };
  // An empty input must give an empty result.
  bool filled = c.excludes(axis.input, 0) || (!axis.ceil_mode && below(axis.pad_begin + axis.pad_end, axis.kernel));
  return axis.dilation == 1 && filled && below(axis.pad_begin, axis.kernel) && below(axis.overshoot(), axis.kernel);
}

bool is_written_out(std::span<const SlidingAxis> axes) {
  int64_t taps = 1;
  for (const SlidingAxis& axis : axes) {
    if (axis.kernel > most_written_taps) return false;
    taps *= axis.kernel;
    if (taps > most_written_taps) return false;
  }
  return true;
}

namespace {

kir::Value both(kir::Value a, kir::Value b) { return a && b ? a & b : a ? a : b; }

// The condition under which a position that belongs to index k of the kernel is inside the input.
kir::Value is_inside(const LowerContext& c, const SlidingAxis& axis, kir::Value k, kir::Value position) {
  std::optional<int64_t> number = k.integer().constant();
  // The first window starts pad_begin before the input, the last ends at most the overshoot behind it.
  int64_t from_start = number.value_or(0) * axis.dilation;
  int64_t to_end = (axis.kernel - 1 - number.value_or(axis.kernel - 1)) * axis.dilation;
  kir::Value inside;
  if (!c.proves_less_equal(axis.pad_begin, c.constant(from_start))) inside = c.size(c.constant(0)) <= position;
  if (!c.proves_less_equal(axis.overshoot(), c.constant(to_end))) inside = both(inside, position < c.size(axis.input));
  return inside;
}

// The element of the window `at` an index of the result that belongs to index k of the kernel.
WindowTap tap_at(const LowerContext& c, std::span<const SlidingAxis> axes, const Index& at, const Index& k) {
  WindowTap tap;
  for (size_t i = 0; i < axes.size(); ++i) {
    kir::Value stride = c.size(c.constant(axes[i].stride));
    kir::Value dilation = c.size(c.constant(axes[i].dilation));
    kir::Value position = at[i] * stride + k[i] * dilation - c.size(axes[i].pad_begin);
    kir::Value inside = is_inside(c, axes[i], k[i], position);
    if (axes[i].clamped && inside)
      position = max(min(position, c.size(axes[i].input - 1)), c.builder().integer(0));
    else
      tap.inside = both(tap.inside, inside);
    tap.position.push_back(position);
  }
  return tap;
}

}  // namespace

void for_each_tap(const LowerContext& c, std::span<const SlidingAxis> axes, const Index& at,
                  const std::function<void(const WindowTap&)>& f) {
  int64_t taps = 1;
  for (const SlidingAxis& axis : axes) taps *= axis.kernel;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Index k(axes.size());
    int64_t rest = tap;
    for (size_t i = axes.size(); i-- > 0; rest /= axes[i].kernel) k[i] = c.builder().integer(rest % axes[i].kernel);
    f(tap_at(c, axes, at, k));
  }
}

kir::Value fold_window(const LowerContext& c, std::span<const SlidingAxis> axes, const Index& at, kir::Op combine,
                       kir::Value start, const std::function<kir::Value(const WindowTap&)>& f) {
  auto element = [&](const WindowTap& tap) { return tap.inside ? select(tap.inside, f(tap), start) : f(tap); };
  if (is_written_out(axes)) {
    kir::Value result;
    for_each_tap(c, axes, at,
                 [&](const WindowTap& tap) { result = result ? binary(combine, result, element(tap)) : element(tap); });
    return result;
  }
  SymDims extents;
  for (const SlidingAxis& axis : axes) extents.push_back(c.constant(axis.kernel));
  return c.builder().reduce(combine, start, extents, [&](const Index& k) { return element(tap_at(c, axes, at, k)); });
}

}  // namespace selkie::ops
