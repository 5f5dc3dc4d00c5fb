// Pointers from an output pixel of a convolution of integers to the input pixels of its taps, and zero points.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/integer_gemm.h"

namespace selkie::kernels {

inline int32_t byte_value(const ByteTensor& bytes, const uint8_t* at) {
  return bytes.is_signed ? static_cast<int8_t>(*at) : static_cast<int32_t>(*at);
}

inline int32_t zero_point(const ByteTensor& bytes, int64_t i) {
  if (bytes.zeros == nullptr) return 0;
  return byte_value(bytes, bytes.zeros + (bytes.zero_count == 1 ? 0 : i));
}

inline int64_t input_pixels(const ConvolutionShape& shape) {
  return shape.batch * shape.input[0] * shape.input[1] * shape.input[2];
}

// to[tap * stride] = pixel(index of the input pixel), or `outside` where a tap is not inside the input.
template <class Pixel>
void fill_taps(const ConvolutionShape& shape, int64_t row, Pixel pixel, const uint8_t* outside, int64_t stride,
               const uint8_t** to) {
  std::array<int64_t, 3> begin;
  int64_t image = row;
  for (size_t axis = 3; axis-- > 0; image /= shape.output[axis])
    begin[axis] = image % shape.output[axis] * shape.stride[axis] - shape.pad[axis];
  auto place = [&](size_t axis, int64_t k) { return begin[axis] + k * shape.dilation[axis]; };
  auto inside = [&](size_t axis, int64_t at) { return at >= 0 && at < shape.input[axis]; };
  for (int64_t i = 0; i < shape.kernel[0]; ++i)
    for (int64_t j = 0; j < shape.kernel[1]; ++j) {
      bool line = inside(0, place(0, i)) && inside(1, place(1, j));
      int64_t first = ((image * shape.input[0] + place(0, i)) * shape.input[1] + place(1, j)) * shape.input[2];
      for (int64_t k = 0; k < shape.kernel[2]; ++k, to += stride)
        *to = line && inside(2, place(2, k)) ? pixel(first + place(2, k)) : outside;
    }
}

}  // namespace selkie::kernels
