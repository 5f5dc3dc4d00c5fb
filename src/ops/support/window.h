// Geometry of windows that slide over spatial axes: what convolutions and pools have in common.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/eval_context.h"
#include "ir/shape_context.h"

namespace selkie::ops {

struct WindowAxis {
  int64_t input;
  int64_t kernel;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  int64_t output = 0;

  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

// One entry per spatial axis.
using Window = std::vector<WindowAxis>;

// The attributes strides, dilations, pads, auto_pad and ceil_mode, as far as the record has them, for `axes` axes.
struct WindowAttrs {
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
};
WindowAttrs window_attrs(const ir::EvalContext& e, size_t axes);
WindowAttrs window_attrs(const ir::ShapeContext& c, size_t axes);

// The kernel's dims: the attribute kernel_shape, which must equal `expected` where both are there.
std::vector<int64_t> kernel_shape(const ir::EvalContext& e, std::span<const int64_t> expected);

// Input and kernel sizes with attributes give pads and output sizes. Fails where a window does not fit.
Window make_window(const WindowAttrs& attrs, std::span<const int64_t> input, std::span<const int64_t> kernel);
Dims input_dims(const Window& window);
Dims output_dims(const Window& window);
int64_t kernel_count(const Window& window);

// One element of a window that lies inside the input: its place in the kernel and in the input's plane.
struct Tap {
  int64_t kernel;
  int64_t input;
};

// Calls f(position, taps, padded) for output positions begin…end−1 in row-major order; `padded` counts the window's
// elements inside the input and its padding.
void for_each_window(const Window& window, int64_t begin, int64_t end,
                     const std::function<void(int64_t, std::span<const Tap>, int64_t)>& f);

// The same before the run: symbolic sizes of spatial axes under a window, exact wherever `make_window` accepts them.
ir::SymDims window_dims(const ir::ShapeContext& c, std::span<const sym::Expr> input, std::span<const sym::Expr> kernel);
// What `make_window` demands of them.
void require_windows_fit(ir::BackwardContext& c, std::span<const sym::Expr> input, std::span<const sym::Expr> kernel);

}  // namespace selkie::ops
