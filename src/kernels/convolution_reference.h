// Convolution as nested loops in double, which the kernels' tests compare with, and random shapes for it.
#pragma once

#include <cmath>

#include "kernels/convolution.h"
#include "kernels/test_support.h"

namespace selkie::kernels::testing {

struct Reference {
  double value;
  double size;  // sum of the products' magnitudes, to which rounding is proportional
};

// One output element; weights are [output channels, input channels / groups, kernel…], all pixels densely packed.
inline Reference reference_element(const ConvolutionShape& s, const float* input, int64_t input_pixel_stride,
                                   const float* weights, const float* bias, int64_t pixel, int64_t channel) {
  std::array<int64_t, 3> at;
  int64_t image = pixel;
  for (size_t axis = 3; axis-- > 0; image /= s.output[axis]) at[axis] = image % s.output[axis];
  int64_t channels = s.input_channels / s.groups;
  int64_t group = channel / (s.output_channels / s.groups);
  double bias_value = bias ? bias[channel] : 0;
  Reference result{.value = bias_value, .size = 1 + std::abs(bias_value)};
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    std::array<int64_t, 3> kernel = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                                     tap % s.kernel[2]};
    int64_t from = image;
    bool inside = true;
    for (size_t axis = 0; axis < 3; ++axis) {
      int64_t place = at[axis] * s.stride[axis] - s.pad[axis] + kernel[axis] * s.dilation[axis];
      inside = inside && place >= 0 && place < s.input[axis];
      from = from * s.input[axis] + place;
    }
    if (!inside) continue;
    for (int64_t c = 0; c < channels; ++c) {
      double product = static_cast<double>(input[from * input_pixel_stride + group * channels + c]) *
                       weights[(channel * channels + c) * s.taps() + tap];
      result.value += product;
      result.size += std::abs(product);
    }
  }
  return result;
}

// Sets the output sizes for pads of `after` elements at the ends; where no window fits, the output is empty.
inline void set_output(ConvolutionShape& shape, const std::array<int64_t, 3>& after) {
  for (size_t axis = 0; axis < 3; ++axis) {
    int64_t room = shape.input[axis] + shape.pad[axis] + after[axis] - shape.dilation[axis] * (shape.kernel[axis] - 1);
    shape.output[axis] = room < 1 ? 0 : (room - 1) / shape.stride[axis] + 1;
  }
}

}  // namespace selkie::kernels::testing
