// Depthwise convolution of a few neighbouring output pixels: vectors run over channels, every input is loaded once per
// kernel row and used by all pixels and taps that need it.
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// Kernel rows of `taps` neighbouring taps.
template <int pixels, int taps, int stride, bool border>
SELKIE_INLINE void depthwise_vector(const DepthwiseArguments& t, int64_t channel, Vector (&sum)[pixels]) {
  constexpr int inputs = (pixels - 1) * stride + taps;
  for (int64_t row = 0; row < t.rows; ++row) {
    const float* input = t.inputs[row] + channel;
    const float* weights = t.weights[row] + channel;
    Vector weight[taps];
#pragma GCC unroll 8
    for (int tap = 0; tap < taps; ++tap) weight[tap] = load(weights + tap * t.weight_stride);
#pragma GCC unroll 32
    for (int i = 0; i < inputs; ++i) {
      if (border && (i < t.valid_begin || i >= t.valid_end)) continue;
      Vector value = load(input + i * t.pixel_stride);
#pragma GCC unroll 8
      for (int pixel = 0; pixel < pixels; ++pixel) {
        int tap = i - pixel * stride;
        if (tap >= 0 && tap < taps) multiply_add(sum[pixel], value, weight[tap]);
      }
    }
  }
}

// Any kernel width, stride and dilation.
template <int pixels, bool border>
SELKIE_INLINE void depthwise_vector_general(const DepthwiseArguments& t, int64_t channel, Vector (&sum)[pixels]) {
  for (int64_t row = 0; row < t.rows; ++row) {
    const float* input = t.inputs[row] + channel;
    const float* weights = t.weights[row] + channel;
    for (int64_t tap = 0; tap < t.taps; ++tap) {
      Vector weight = load(weights + tap * t.weight_stride);
#pragma GCC unroll 8
      for (int pixel = 0; pixel < pixels; ++pixel) {
        int64_t i = pixel * t.stride + tap * t.dilation;
        if (border && (i < t.valid_begin || i >= t.valid_end)) continue;
        multiply_add(sum[pixel], load(input + i * t.pixel_stride), weight);
      }
    }
  }
}

// Fewer channels than a vector has lanes.
template <int pixels>
void depthwise_few_channels(const DepthwiseArguments& t) {
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    for (int64_t channel = 0; channel < t.channels; ++channel) {
      float sum = t.bias ? t.bias[channel] : 0.0f;
      for (int64_t row = 0; row < t.rows; ++row) {
        for (int64_t tap = 0; tap < t.taps; ++tap) {
          int64_t i = pixel * t.stride + tap * t.dilation;
          if (i < t.valid_begin || i >= t.valid_end) continue;
          sum += t.inputs[row][i * t.pixel_stride + channel] * t.weights[row][tap * t.weight_stride + channel];
        }
      }
      t.output[pixel * t.output_stride + channel] = sum;
    }
  }
}

// `taps` = 0 stands for any width. The last vector overlaps the one before it if channels are no multiple of lanes.
template <int pixels, int taps, int stride, bool border>
void depthwise(const DepthwiseArguments& arguments) {
  const DepthwiseArguments t = arguments;  // a copy, since stores to the output might change the original
  if (t.channels < lanes) return depthwise_few_channels<pixels>(t);
  for (int64_t next = 0; next < t.channels; next += lanes) {
    int64_t channel = next + lanes <= t.channels ? next : t.channels - lanes;
    Vector bias = t.bias ? load(t.bias + channel) : Vector{};
    Vector sum[pixels];
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) sum[pixel] = bias;
    if constexpr (taps == 0)
      depthwise_vector_general<pixels, border>(t, channel, sum);
    else
      depthwise_vector<pixels, taps, stride, border>(t, channel, sum);
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) store(t.output + pixel * t.output_stride + channel, sum[pixel]);
  }
}

template <int taps, int stride, bool border>
constexpr void set_depthwise(DepthwiseFunction (&functions)[most_depthwise_pixels]) {
  functions[0] = depthwise<1, taps, stride, border>;
  functions[1] = depthwise<2, taps, stride, border>;
  functions[2] = depthwise<3, taps, stride, border>;
  functions[3] = depthwise<4, taps, stride, border>;
  functions[4] = depthwise<5, taps, stride, border>;
  functions[5] = depthwise<6, taps, stride, border>;
  functions[6] = depthwise<7, taps, stride, border>;
  functions[7] = depthwise<8, taps, stride, border>;
}

template <int taps, int stride>
constexpr void set_depthwise(DepthwiseFunction (&functions)[2][most_depthwise_pixels]) {
  set_depthwise<taps, stride, false>(functions[0]);
  set_depthwise<taps, stride, true>(functions[1]);
}

}  // namespace
}  // namespace selkie::kernels
