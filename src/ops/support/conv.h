// Convolution as matrix products over gathered windows, and its adjoint, for any number of spatial axes and groups.
#pragma once

#include <optional>

#include "ops/support/window.h"

namespace selkie::ops {

struct ConvShape {
  int64_t batch;
  int64_t in_channels;
  int64_t out_channels;
  int64_t group;
  Window window;

  Dims output() const;
};

// From x [batch, channels, spatial…], w [out channels, channels / group, kernel…] and the attributes of the record.
ConvShape conv_shape(const ir::EvalContext& e, const Tensor& x, const Tensor& w);

// y = w ∗ x, all dense; T is float, double or int64_t. The padding is zero.
template <class T>
void convolve(const ConvShape& shape, const T* x, const T* w, T* y);
// The whole of Conv: operands x, w and, where it is there, the bias.
Tensor convolve_operands(const ir::EvalContext& e);

// Adds columns [kernel, count] of windows at positions begin…begin+count−1 to the plane they were gathered from.
template <class T>
void scatter_windows(const Window& window, const T* columns, int64_t begin, int64_t count, T* plane) {
  for_each_window(window, begin, begin + count, [&](int64_t position, std::span<const Tap> taps, int64_t) {
    for (const Tap& t : taps) plane[t.input] += columns[t.kernel * count + position - begin];
  });
}

// Adds one number per channel to y [batch, channels, plane].
template <class T>
void add_channel_bias(std::span<T> y, std::span<const T> bias, int64_t plane) {
  if (plane == 0 || bias.empty()) return;
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i / static_cast<size_t>(plane) % bias.size()];
}

// forward of Conv and its integer forms, whose weights are operand `w`.
std::optional<ir::SymDims> conv_forward(const ir::ForwardContext& c, size_t w);
// backward of the same: channels fit the weights, windows the input and a bias the channels of the result.
void conv_backward(ir::BackwardContext& c, size_t w, std::optional<size_t> bias = std::nullopt);
// The parts that the adjoint shares: input and weights are of one rank, which is also the result's.
void require_conv_ranks(ir::BackwardContext& c, size_t w);
// The kernel's dims: the attribute kernel_shape, or those of the weights.
std::optional<ir::SymDims> kernel_dims(const ir::ShapeContext& c, size_t w);
void require_kernel_shape(ir::BackwardContext& c, size_t w);
// The attributes that they share.
std::vector<ir::AttrDef> conv_attrs();

}  // namespace selkie::ops
