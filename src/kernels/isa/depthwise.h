// Depthwise convolution of a few neighbouring output pixels: vectors run over channels, every input is loaded once per
// kernel row and used by all pixels and taps that need it.
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// One kernel row of `taps` neighbouring taps.
template <int pixels, int taps, int stride>
SELKIE_INLINE void depthwise_row(const float* const* inputs, const float* weights, int64_t weight_stride,
                                 int64_t channel, Vector (&sum)[pixels]) {
  Vector weight[taps];
#pragma GCC unroll 8
  for (int tap = 0; tap < taps; ++tap) weight[tap] = load(weights + tap * weight_stride + channel);
#pragma GCC unroll 32
  for (int i = 0; i < (pixels - 1) * stride + taps; ++i) {
    Vector value = load(inputs[i] + channel);
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) {
      int tap = i - pixel * stride;
      if (tap >= 0 && tap < taps) multiply_add(sum[pixel], value, weight[tap]);
    }
  }
}

// One kernel row of any width, stride and dilation.
template <int pixels>
SELKIE_INLINE void depthwise_any_row(const float* const* inputs, const float* weights, const DepthwiseArguments& t,
                                     int64_t channel, Vector (&sum)[pixels]) {
  for (int64_t tap = 0; tap < t.taps; ++tap, inputs += pixels) {
    Vector weight = load(weights + tap * t.weight_stride + channel);
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) multiply_add(sum[pixel], load(inputs[pixel] + channel), weight);
  }
}

// Fewer channels than a vector has lanes.
template <int pixels, int taps, int stride>
void depthwise_few_channels(const DepthwiseArguments& t, const float* const* const* inputs, float* output) {
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    for (int64_t channel = 0; channel < t.channels; ++channel) {
      float sum = t.bias ? t.bias[channel] : 0.0f;
      for (int64_t row = 0; row < t.rows; ++row) {
        for (int64_t tap = 0; tap < t.taps; ++tap) {
          int64_t i = taps == 0 ? tap * pixels + pixel : pixel * stride + tap;
          sum += inputs[row][i][channel] * t.weights[(row * t.taps + tap) * t.weight_stride + channel];
        }
      }
      if (t.clamps) {
        sum = sum < t.low ? t.low : sum;
        sum = sum > t.high ? t.high : sum;
      }
      output[pixel * t.output_stride + channel] = sum;
    }
  }
}

// The last vector overlaps the one before it if channels are no multiple of lanes. `rows` = 0 stands for any number:
// where it is known, the loop over rows is unrolled and their pointers stay in registers.
template <int pixels, int taps, int stride, int rows>
SELKIE_INLINE void depthwise_line(const DepthwiseArguments& t, const float* const* const* inputs, DepthwiseRows inside,
                                  float* output) {
  const int64_t row_weights = t.taps * t.weight_stride;
  const float* const* row_inputs[rows > 0 ? rows : 1];
#pragma GCC unroll 3
  for (int row = 0; row < rows; ++row) row_inputs[row] = inputs[row];
  for (int64_t next = 0; next < t.channels; next += lanes) {
    int64_t channel = next + lanes <= t.channels ? next : t.channels - lanes;
    Vector bias = t.bias ? load(t.bias + channel) : Vector{};
    Vector sum[pixels];
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) sum[pixel] = bias;
    if constexpr (rows > 0) {
#pragma GCC unroll 3
      for (int row = 0; row < rows; ++row)
        depthwise_row<pixels, taps, stride>(row_inputs[row], t.weights + row * row_weights, t.weight_stride, channel,
                                            sum);
    } else {
      const float* weights = t.weights + inside.begin * row_weights;
      for (int64_t row = inside.begin; row < inside.begin + inside.count; ++row, weights += row_weights) {
        if constexpr (taps > 0)
          depthwise_row<pixels, taps, stride>(inputs[row], weights, t.weight_stride, channel, sum);
        else
          depthwise_any_row<pixels>(inputs[row], weights, t, channel, sum);
      }
    }
    if (t.clamps) {
#pragma GCC unroll 8
      for (int pixel = 0; pixel < pixels; ++pixel) sum[pixel] = clamp(sum[pixel], t.low, t.high);
    }
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) store(output + pixel * t.output_stride + channel, sum[pixel]);
  }
}

// `taps` = 0 stands for any width.
template <int pixels, int taps, int stride>
void depthwise(const DepthwiseArguments& arguments) {
  const DepthwiseArguments t = arguments;  // a copy, since stores to the output might change the original
  const float* const* const* inputs = t.inputs;
  float* output = t.output;
  for (int64_t line = 0; line < t.lines; ++line, inputs += t.rows, output += t.output_line_stride) {
    if (t.channels < lanes)
      depthwise_few_channels<pixels, taps, stride>(t, inputs, output);
    else if (taps == 3 && t.inside[line].count == 3 && t.rows == 3)
      depthwise_line<pixels, taps, stride, taps == 3 ? 3 : 0>(t, inputs, t.inside[line], output);
    else
      depthwise_line<pixels, taps, stride, 0>(t, inputs, t.inside[line], output);
  }
}

template <int taps, int stride>
constexpr void set_depthwise(DepthwiseFunction (&functions)[most_depthwise_pixels]) {
  functions[0] = depthwise<1, taps, stride>;
  functions[1] = depthwise<2, taps, stride>;
  functions[2] = depthwise<3, taps, stride>;
  functions[3] = depthwise<4, taps, stride>;
  functions[4] = depthwise<5, taps, stride>;
  functions[5] = depthwise<6, taps, stride>;
  functions[6] = depthwise<7, taps, stride>;
  functions[7] = depthwise<8, taps, stride>;
}

}  // namespace
}  // namespace selkie::kernels
