// The transforms of Winograd's F(4x4, 3x3) for one tile, vectors over channels. Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks" (2015), with the points 0, 1, -1, 2, -2 and infinity. With stride 2, the even inputs
// meet the first and the last weight, as F(4, 2) with the points 0, 1, -1, 2 and infinity; the odd ones meet the middle
// weight alone, and are points as they are.
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

struct Unstrided {
  static constexpr int side = 6;

  // B^T x for one column or row of a tile.
  SELKIE_INLINE static void input(const Vector (&x)[side], Vector (&y)[side]) {
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

  // A^T m for one column or row: products to four outputs.
  SELKIE_INLINE static void output(const Vector (&m)[side], Vector (&y)[4]) {
    Vector sum = m[1] + m[2];
    Vector difference = m[1] - m[2];
    Vector far_sum = m[3] + m[4];
    Vector far_difference = m[3] - m[4];
    y[0] = m[0] + sum + far_sum;
    y[1] = difference + 2.0f * far_difference;
    y[2] = sum + 4.0f * far_sum;
    y[3] = difference + 8.0f * far_difference + m[5];
  }
};

struct Strided {
  static constexpr int side = 9;

  SELKIE_INLINE static void input(const Vector (&x)[side], Vector (&y)[side]) {
    Vector near = x[6] - x[4];
    Vector wide = x[6] - x[2];
    y[0] = 2.0f * (x[0] - x[4]) + wide;
    y[1] = near - 2.0f * x[2];
    y[2] = near + 2.0f * (x[2] - x[4]);
    y[3] = wide;
    y[4] = (x[8] - x[4]) - 2.0f * wide;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) y[5 + i] = x[2 * i + 1];
  }

  SELKIE_INLINE static void output(const Vector (&m)[side], Vector (&y)[4]) {
    Vector sum = m[1] + m[2];
    Vector difference = m[1] - m[2];
    y[0] = (m[0] + sum) + (m[3] + m[5]);
    y[1] = difference + 2.0f * m[3] + m[6];
    y[2] = sum + 4.0f * m[3] + m[7];
    y[3] = (difference + 8.0f * m[3]) + (m[4] + m[8]);
  }
};

template <class Form>
void winograd_input(const WinogradInputArguments& arguments) {
  constexpr int side = Form::side;
  const WinogradInputArguments t = arguments;
  for (int64_t next = 0; next < t.channels; next += lanes) {
    int64_t channel = next + lanes <= t.channels ? next : t.channels - lanes;
    Vector half[side][side];
#pragma GCC unroll 1
    for (int column = 0; column < side; ++column) {
      Vector x[side];
      Vector y[side];
#pragma GCC unroll 9
      for (int row = 0; row < side; ++row) x[row] = load(t.pixels[row * side + column] + channel);
      Form::input(x, y);
#pragma GCC unroll 9
      for (int row = 0; row < side; ++row) half[row][column] = y[row];
    }
    float* to = t.to + channel;
#pragma GCC unroll 1
    for (int row = 0; row < side; ++row) {
      Vector y[side];
      Form::input(half[row], y);
#pragma GCC unroll 9
      for (int column = 0; column < side; ++column) store(to + t.points[row * side + column], y[column]);
    }
  }
}

// One vector of channels. The addend may be the output itself, so nothing is written twice.
template <class Form, class Lanes>
SELKIE_INLINE void winograd_output_channels(const WinogradOutputArguments& t, int64_t channel, Lanes part) {
  constexpr int side = Form::side;
  const float* from = t.from + channel;
  Vector half[side][4];
#pragma GCC unroll 1
  for (int row = 0; row < side; ++row) {
    Vector m[side];
#pragma GCC unroll 9
    for (int column = 0; column < side; ++column) m[column] = part.load(from + t.points[row * side + column]);
    Form::output(m, half[row]);
  }
  Vector bias = t.bias ? part.load(t.bias + channel) : Vector{};
  for (int64_t column = 0; column < t.columns; ++column) {
    Vector m[side];
    Vector y[4];
#pragma GCC unroll 9
    for (int row = 0; row < side; ++row) m[row] = half[row][column];
    Form::output(m, y);
    int64_t at = column * t.pixel_stride + channel;
#pragma GCC unroll 4
    for (int row = 0; row < 4; ++row, at += t.line_stride) {
      if (row >= t.rows) break;
      Vector value = y[row] + bias;
      if (t.addend) value += part.load(t.addend + at);
      part.store(t.output + at, t.clamps ? clamp(value, t.low, t.high) : value);
    }
  }
}

template <class Form>
void winograd_output(const WinogradOutputArguments& arguments) {
  const WinogradOutputArguments t = arguments;
  int64_t channel = 0;
  for (; channel + lanes <= t.channels; channel += lanes) winograd_output_channels<Form>(t, channel, AllLanes{});
  if (channel < t.channels) winograd_output_channels<Form>(t, channel, FirstLanes(t.channels - channel));
}

}  // namespace
}  // namespace selkie::kernels
