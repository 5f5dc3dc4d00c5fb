// Windows that slide over spatial axes, in kernels: which elements of the input a window covers, and folds over them.
#pragma once

#include "ops/support/lower.h"

namespace selkie::ops {

// One spatial axis under a window. The input lies between two pads, whose sizes may depend on its own.
struct SlidingAxis {
  sym::Expr input;
  sym::Expr pad_begin;
  sym::Expr pad_end;
  int64_t kernel;
  int64_t stride;
  int64_t dilation;
  bool ceil_mode;  // then the last window may reach beyond the pad
  // What is outside is read at the nearest edge instead, without a condition. Such an edge is under the window, too,
  // which makes no difference to a maximum.
  bool clamped = false;

  sym::Expr overshoot() const { return ceil_mode ? pad_end + (stride - 1) : pad_end; }
};

// The axes from 2 on of operand 0, with the attributes of windows.
std::vector<SlidingAxis> sliding_axes(const LowerContext& c, std::span<const int64_t> kernel);

// Whether every window holds an edge wherever it reaches outside.
bool can_be_clamped(const LowerContext& c, const SlidingAxis& axis);

// An element under a window: where it is, and the condition under which that is inside the input (null: always).
struct WindowTap {
  Index position;
  kir::Value inside;
};

// Windows of at most so many elements are written out, so that a kernel has results side by side in a vector.
inline constexpr int64_t most_written_taps = 32;
bool is_written_out(std::span<const SlidingAxis> axes);

// Calls f for every element of a window that is written out, in row-major order.
void for_each_tap(const LowerContext& c, std::span<const SlidingAxis> axes, const Index& at,
                  const std::function<void(const WindowTap&)>& f);
// combine of f over the elements under the window at a spatial index, with `start` for those that are not inside.
kir::Value fold_window(const LowerContext& c, std::span<const SlidingAxis> axes, const Index& at, kir::Op combine,
                       kir::Value start, const std::function<kir::Value(const WindowTap&)>& f);

}  // namespace selkie::ops
