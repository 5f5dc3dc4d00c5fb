// The transforms of Winograd's F(4x4, 3x3) for one tile, vectors over channels. Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks" (2015), with the points 0, 1, -1, 2, -2 and infinity.
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// B^T x for one column or row of a 6x6 tile.
SELKIE_INLINE void transform_input(const Vector (&x)[6], Vector (&y)[6]) {
  Vector even = x[4] - 4.0f * x[2];
  Vector odd = x[3] - 4.0f * x[1];
  Vector even_half = x[4] - x[2];
  Vector odd_half = x[3] - x[1];
  y[0] = 4.0f * x[0] + (x[4] - 5.0f * x[2]);
  y[1] = even + odd;
  y[2] = even - odd;
  y[3] = even_half + 2.0f * odd_half;
  y[4] = even_half - 2.0f * odd_half;
  y[5] = 4.0f * x[1] + (x[5] - 5.0f * x[3]);
}

// A^T m for one column or row: six products to four outputs.
SELKIE_INLINE void transform_output(const Vector (&m)[6], Vector (&y)[4]) {
  Vector sum = m[1] + m[2];
  Vector difference = m[1] - m[2];
  Vector far_sum = m[3] + m[4];
  Vector far_difference = m[3] - m[4];
  y[0] = m[0] + sum + far_sum;
  y[1] = difference + 2.0f * far_difference;
  y[2] = sum + 4.0f * far_sum;
  y[3] = difference + 8.0f * far_difference + m[5];
}

void winograd_input(const WinogradInputArguments& arguments) {
  const WinogradInputArguments t = arguments;
  for (int64_t next = 0; next < t.channels; next += lanes) {
    int64_t channel = next + lanes <= t.channels ? next : t.channels - lanes;
    Vector half[6][6];
#pragma GCC unroll 1
    for (int column = 0; column < 6; ++column) {
      Vector x[6];
      Vector y[6];
#pragma GCC unroll 6
      for (int row = 0; row < 6; ++row) x[row] = load(t.pixels[row * 6 + column] + channel);
      transform_input(x, y);
#pragma GCC unroll 6
      for (int row = 0; row < 6; ++row) half[row][column] = y[row];
    }
    float* to = t.to + channel;
#pragma GCC unroll 1
    for (int row = 0; row < 6; ++row) {
      Vector y[6];
      transform_input(half[row], y);
#pragma GCC unroll 6
      for (int column = 0; column < 6; ++column, to += t.point_stride) store(to, y[column]);
    }
  }
}

void winograd_output(const WinogradOutputArguments& arguments) {
  const WinogradOutputArguments t = arguments;
  for (int64_t next = 0; next < t.channels; next += lanes) {
    int64_t channel = next + lanes <= t.channels ? next : t.channels - lanes;
    const float* from = t.from + channel;
    Vector half[6][4];
#pragma GCC unroll 1
    for (int row = 0; row < 6; ++row) {
      Vector m[6];
#pragma GCC unroll 6
      for (int column = 0; column < 6; ++column, from += t.point_stride) m[column] = load(from);
      transform_output(m, half[row]);
    }
    Vector bias = t.bias ? load(t.bias + channel) : Vector{};
    for (int64_t column = 0; column < t.columns; ++column) {
      Vector m[6];
      Vector y[4];
#pragma GCC unroll 6
      for (int row = 0; row < 6; ++row) m[row] = half[row][column];
      transform_output(m, y);
      float* output = t.output + column * t.pixel_stride + channel;
#pragma GCC unroll 4
      for (int row = 0; row < 4; ++row)
        if (row < t.rows) store(output + row * t.line_stride, y[row] + bias);
    }
  }
}

}  // namespace
}  // namespace selkie::kernels
