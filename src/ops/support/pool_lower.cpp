#include "ops/support/pool_lower.h"

#include <algorithm>
#include <limits>

#include "ops/support/dims.h"
#include "ops/support/window_lower.h"

namespace selkie::ops {

double least_element(DType dtype) {
  return dtype == DType::i8 ? -128 : dtype == DType::u8 ? 0 : -std::numeric_limits<double>::infinity();
}

namespace {

using kir::Value;

std::vector<SlidingAxis> axes_of(const LowerContext& c) {
  if (c.rank(0) != c.attr_ints("kernel_shape").size() + 2) c.refuse("the kernel has other axes than the input");
  return sliding_axes(c, c.attr_ints("kernel_shape"));
}

Index spatial(const Index& at) { return {at.begin() + 2, at.end()}; }

// The element of x under a window in the plane of a result, as a `dtype`.
Value element(const LowerContext& c, const Index& at, const WindowTap& tap, DType dtype) {
  Index from{at[0], at[1]};
  from.insert(from.end(), tap.position.begin(), tap.position.end());
  return cast(tap.inside ? c.operand_if(tap.inside, 0, from) : c.operand(0, from), dtype);
}

// How many elements a window has, without or with those in the pads.
Value count_of_window(const LowerContext& c, std::span<const SlidingAxis> axes, const Index& at, bool with_padding,
                      DType dtype) {
  Value one = c.builder().number(dtype, 1);
  Value count = one;
  for (size_t i = 0; i < axes.size(); ++i) {
    SlidingAxis axis = axes[i];
    if (with_padding) {
      axis.input = axis.input + axis.pad_begin + axis.pad_end;
      axis.pad_begin = axis.pad_end = c.constant(0);
    }
    count = count * fold_window(c, {&axis, 1}, {at[i + 2]}, kir::Op::add, c.builder().number(dtype, 0),
                                [&](const WindowTap&) { return one; });
  }
  return max(count, one);
}

Value to_power(Value x, int64_t p) {
  Value size = unary(kir::Op::abs, x);
  if (p == 1) return size;
  return p == 2 ? x * x : binary(kir::Op::pow, size, x.builder().number(x.dtype(), static_cast<double>(p)));
}

Value root(Value x, int64_t p) {
  if (p == 1) return x;
  return p == 2 ? unary(kir::Op::sqrt, x)
                : binary(kir::Op::pow, x, x.builder().number(x.dtype(), 1 / static_cast<double>(p)));
}

// Where the largest element under a window is in x, or -1 if the window holds none.
Value place_of_largest(const LowerContext& c, std::span<const SlidingAxis> axes, const Index& at, DType dtype) {
  Value none = c.builder().integer(-1);
  Value place = none;
  Value best = c.builder().number(dtype, least_element(c.dtype(0)));
  SymDims dims(c.dims(0)->begin() + 2, c.dims(0)->end());
  bool columns = c.attr_int("storage_order") != 0;
  if (columns) std::reverse(dims.begin(), dims.end());
  for_each_tap(c, axes, spatial(at), [&](const WindowTap& tap) {
    Value x = element(c, at, tap, dtype);
    Value better = (place == none) | (best < x) | (is_nan(x) & logical_not(is_nan(best)));
    if (tap.inside) better = tap.inside & better;
    Index position = tap.position;
    if (columns) std::reverse(position.begin(), position.end());
    best = select(better, x, best);
    place = select(better, linear_index(c.builder(), dims, position), place);
  });
  Value plane = at[0] * c.size((*c.dims(0))[1]) + at[1];
  return select(place == none, none, plane * c.size(product(c, dims)) + place);
}

}  // namespace

void lower_average_pool(LowerContext& c) {
  c.define(0, [&c, axes = axes_of(c)](const Index& at) {
    DType dtype = compute_dtype(c.dtype(0));
    Value sum = fold_window(c, axes, spatial(at), kir::Op::add, c.builder().number(dtype, 0),
                            [&](const WindowTap& tap) { return element(c, at, tap, dtype); });
    Value count = count_of_window(c, axes, at, c.attr_int("count_include_pad") != 0, dtype);
    return cast(sum / c.builder().hoist(count), c.result_dtype());
  });
}

void lower_norm_pool(LowerContext& c) {
  if (c.attr_int("p") < 1) c.refuse("'p' is below 1");
  c.define(0, [&c, axes = axes_of(c)](const Index& at) {
    DType dtype = compute_dtype(c.dtype(0));
    int64_t p = c.attr_int("p");
    Value sum = fold_window(c, axes, spatial(at), kir::Op::add, c.builder().number(dtype, 0),
                            [&](const WindowTap& tap) { return to_power(element(c, at, tap, dtype), p); });
    return cast(root(sum, p), c.result_dtype());
  });
}

void lower_max_pool(LowerContext& c) {
  std::vector<SlidingAxis> axes = axes_of(c);
  DType dtype = compute_dtype(c.dtype(0));
  if (c.result_count() > 1 && !is_written_out(axes)) c.refuse("places in a large window");
  // Along the last axis, conditions keep elements side by side, if they are so at all.
  std::vector<SlidingAxis> clamped = axes;
  for (size_t i = 0; i < axes.size(); ++i)
    clamped[i].clamped = (i + 1 < axes.size() || axes[i].stride > 1) && can_be_clamped(c, axes[i]);
  c.define(0, [&c, axes = std::move(clamped), dtype](const Index& at) {
    Value largest =
        fold_window(c, axes, spatial(at), kir::Op::max, c.builder().number(dtype, least_element(c.dtype(0))),
                    [&](const WindowTap& tap) { return element(c, at, tap, dtype); });
    return cast(largest, c.result_dtype());
  });
  if (c.result_count() > 1)
    c.define(1, [&c, axes, dtype](const Index& at) { return place_of_largest(c, axes, at, dtype); });
}

void lower_whole_pool(WholePool kind, LowerContext& c) {
  if (c.rank(0) < 2) c.refuse("the input needs a batch and channels");
  if (kind == WholePool::norm && c.attr_int("p") < 1) c.refuse("'p' is below 1");
  c.define(0, [&c, kind](const Index& at) {
    kir::Builder& b = c.builder();
    DType dtype = compute_dtype(c.dtype(0));
    int64_t p = kind == WholePool::norm ? c.attr_int("p") : 1;
    SymDims plane(c.dims(0)->begin() + 2, c.dims(0)->end());
    bool most = kind == WholePool::most;
    auto element = [&](const Index& position) {
      Index from{at[0], at[1]};
      from.insert(from.end(), position.begin(), position.end());
      Value x = cast(c.operand(0, from), dtype);
      return kind == WholePool::norm ? to_power(x, p) : x;
    };
    Value start = b.number(dtype, most ? least_element(c.dtype(0)) : 0);
    Value y = plane.empty() ? element({}) : b.reduce(most ? kir::Op::max : kir::Op::add, start, plane, element);
    if (kind == WholePool::mean) y = y / cast(c.size(product(c, plane)), dtype);
    return cast(kind == WholePool::norm ? root(y, p) : y, c.result_dtype());
  });
}

}  // namespace selkie::ops
