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
  static constexpr int outputs = 4;
  static constexpr int matrices = 6;  // of a side, into which filters are transformed

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

  // G g for one column or row of a filter.
  SELKIE_INLINE static void weights(const Vector (&g)[3], Vector (&u)[6]) {
    Vector outer = (g[0] + g[2]) * (-1.0f / 6);
    Vector inner = g[1] * (1.0f / 6);
    Vector far_outer = g[0] * (1.0f / 24) + g[2] * (1.0f / 6);
    Vector far_inner = g[1] * (1.0f / 12);
    u[0] = g[0] * 0.25f;
    u[1] = outer - inner;
    u[2] = outer + inner;
    u[3] = far_outer + far_inner;
    u[4] = far_outer - far_inner;
    u[5] = g[2];
  }

  // Element i of it.
  template <int i>
  SELKIE_INLINE static Vector weight(const float* first, int64_t stride) {
    auto g = [&](int k) { return load(first + k * stride); };
    if constexpr (i == 0) return g(0) * 0.25f;
    if constexpr (i == 1) return (g(0) + g(1) + g(2)) * (-1.0f / 6);
    if constexpr (i == 2) return (g(0) - g(1) + g(2)) * (-1.0f / 6);
    if constexpr (i == 3) return g(0) * (1.0f / 24) + g(1) * (1.0f / 12) + g(2) * (1.0f / 6);
    if constexpr (i == 4) return g(0) * (1.0f / 24) - g(1) * (1.0f / 12) + g(2) * (1.0f / 6);
    if constexpr (i == 5) return g(2);
  }
};

// F(6x6, 3x3), with the points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity.
struct Wide {
  static constexpr int side = 8;
  static constexpr int outputs = 6;
  static constexpr int matrices = 8;

  SELKIE_INLINE static void input(const Vector (&x)[side], Vector (&y)[side]) {
    Vector even = (x[2] + x[6]) - 4.25f * x[4];
    Vector odd = (x[1] + x[5]) - 4.25f * x[3];
    Vector even_twice = (x[6] - 1.25f * x[4]) + 0.25f * x[2];
    Vector odd_twice = (2.0f * x[5] - 2.5f * x[3]) + 0.5f * x[1];
    Vector even_half = (x[6] - 5.0f * x[4]) + 4.0f * x[2];
    Vector odd_half = (0.5f * x[5] - 2.5f * x[3]) + 2.0f * x[1];
    y[0] = (x[0] - x[6]) + 5.25f * (x[4] - x[2]);
    y[1] = even + odd;
    y[2] = even - odd;
    y[3] = even_twice + odd_twice;
    y[4] = even_twice - odd_twice;
    y[5] = even_half + odd_half;
    y[6] = even_half - odd_half;
    y[7] = (x[7] - x[1]) + 5.25f * (x[3] - x[5]);
  }

  SELKIE_INLINE static void output(const Vector (&m)[side], Vector (&y)[outputs]) {
    Vector sum = m[1] + m[2];
    Vector difference = m[1] - m[2];
    Vector sum_twice = m[3] + m[4];
    Vector difference_twice = m[3] - m[4];
    Vector sum_half = m[5] + m[6];
    Vector difference_half = m[5] - m[6];
    y[0] = (m[0] + sum) + (sum_twice + sum_half);
    y[1] = (difference + 2.0f * difference_twice) + 0.5f * difference_half;
    y[2] = (sum + 4.0f * sum_twice) + 0.25f * sum_half;
    y[3] = (difference + 8.0f * difference_twice) + 0.125f * difference_half;
    y[4] = (sum + 16.0f * sum_twice) + 0.0625f * sum_half;
    y[5] = ((difference + m[7]) + 32.0f * difference_twice) + 0.03125f * difference_half;
  }

  SELKIE_INLINE static void weights(const Vector (&g)[3], Vector (&u)[side]) {
    Vector outer = (g[0] + g[2]) * (-2.0f / 9);
    Vector inner = g[1] * (2.0f / 9);
    Vector outer_twice = g[0] * (1.0f / 90) + g[2] * (2.0f / 45);
    Vector inner_twice = g[1] * (1.0f / 45);
    Vector outer_half = g[0] * (32.0f / 45) + g[2] * (8.0f / 45);
    Vector inner_half = g[1] * (16.0f / 45);
    u[0] = g[0];
    u[1] = outer - inner;
    u[2] = outer + inner;
    u[3] = outer_twice + inner_twice;
    u[4] = outer_twice - inner_twice;
    u[5] = outer_half + inner_half;
    u[6] = outer_half - inner_half;
    u[7] = g[2];
  }
};

struct Strided {
  static constexpr int side = 9;
  static constexpr int outputs = 4;
  static constexpr int matrices = 6;

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

  SELKIE_INLINE static void weights(const Vector (&g)[3], Vector (&u)[6]) {
    u[0] = g[0] * 0.5f;
    u[1] = (g[0] + g[2]) * -0.5f;
    u[2] = (g[2] - g[0]) * (1.0f / 6);
    u[3] = g[0] * (1.0f / 6) + g[2] * (1.0f / 3);
    u[4] = g[2];
    u[5] = g[1];
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
      for (int row = 0; row < side; ++row) {
        x[row] = load(t.pixels[row * side + column] + channel);
        if (column >= side - t.next_columns) __builtin_prefetch(t.pixels[row * side + column] + channel + t.next, 0, 3);
      }
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

template <class Form>
void winograd_weights(const WinogradWeightsArguments& arguments) {
  constexpr int side = Form::matrices;
  constexpr int64_t ahead = 16 * lanes;  // weights may come from memory
  const WinogradWeightsArguments t = arguments;
  for (int64_t filter = 0; filter < t.count; filter += lanes) {
    Vector half[side][3];
#pragma GCC unroll 3
    for (int column = 0; column < 3; ++column) {
      Vector g[3];
      Vector u[side];
#pragma GCC unroll 3
      for (int row = 0; row < 3; ++row) {
        const float* from = t.weights + (3 * row + column) * t.tap_stride + filter;
        g[row] = load(from);
        __builtin_prefetch(from + ahead, 0, 2);
      }
      Form::weights(g, u);
#pragma GCC unroll 8
      for (int row = 0; row < side; ++row) half[row][column] = u[row];
    }
    float* to = t.to + filter;
#pragma GCC unroll 8
    for (int row = 0; row < side; ++row) {
      Vector u[side];
      Form::weights(half[row], u);
#pragma GCC unroll 8
      for (int column = 0; column < side; ++column) store(to + (side * row + column) * t.matrix_stride, u[column]);
    }
  }
}

// One row of points: its six matrices' products stay in registers while their weights come and go.
template <int row, int tiles>
SELKIE_INLINE void winograd_row(const WinogradFewArguments& t, int64_t first_tile) {
  auto product = [&](int i, int tile) {
    return t.products + t.product_points[6 * row + i] + (first_tile + tile) * t.product_stride;
  };
  const float* weights = t.weights;
  const float* inputs[6];
  Vector sum[6][tiles];
#pragma GCC unroll 6
  for (int i = 0; i < 6; ++i) {
    inputs[i] = t.inputs + t.points[6 * row + i] + first_tile * t.input_stride;
#pragma GCC unroll 4
    for (int tile = 0; tile < tiles; ++tile) sum[i][tile] = t.accumulate ? load(product(i, tile)) : Vector{};
  }
  const int64_t tap = t.tap_stride;
  const int64_t stride = t.input_stride;
  const float* after = t.after + row * tap;
  for (int64_t channel = 0; channel < t.channels; ++channel) {
    __builtin_prefetch(after, 0, 2);
    if (row < 3) __builtin_prefetch(after + 6 * tap, 0, 2);
    Vector half[3];
    Vector u[6];
#pragma GCC unroll 3
    for (int column = 0; column < 3; ++column) half[column] = Unstrided::weight<row>(weights + column * tap, 3 * tap);
    Unstrided::weights(half, u);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i)
#pragma GCC unroll 4
      for (int tile = 0; tile < tiles; ++tile)
        multiply_add(sum[i][tile], broadcast(inputs[i][channel + tile * stride]), u[i]);
    weights += t.channel_stride;
    after += t.channel_stride;
  }
#pragma GCC unroll 6
  for (int i = 0; i < 6; ++i)
#pragma GCC unroll 4
    for (int tile = 0; tile < tiles; ++tile) store(product(i, tile), sum[i][tile]);
}

template <int tiles>
SELKIE_INLINE void winograd_rows(const WinogradFewArguments& t, int64_t first_tile) {
  winograd_row<0, tiles>(t, first_tile);
  winograd_row<1, tiles>(t, first_tile);
  winograd_row<2, tiles>(t, first_tile);
  winograd_row<3, tiles>(t, first_tile);
  winograd_row<4, tiles>(t, first_tile);
  winograd_row<5, tiles>(t, first_tile);
}

void winograd_few(const WinogradFewArguments& arguments) {
  const WinogradFewArguments t = arguments;
  constexpr int64_t most = SELKIE_ISA_TILE_ROWS / 3;
  int64_t passes = (t.tiles + most - 1) / most;
  for (int64_t pass = 0, tile = 0; pass < passes; ++pass) {
    int64_t tiles = t.tiles * (pass + 1) / passes - tile;
    if (tiles == 1) winograd_rows<1>(t, tile);
    if (tiles == 2) winograd_rows<2>(t, tile);
    if (tiles == 3) winograd_rows<3>(t, tile);
    if (tiles == 4) winograd_rows<4>(t, tile);
    tile += tiles;
  }
}

// One vector of channels. The addend may be the output itself, so nothing is written twice.
template <class Form, class Lanes>
SELKIE_INLINE void winograd_output_channels(const WinogradOutputArguments& t, int64_t channel, Lanes part) {
  constexpr int side = Form::side;
  const float* from = t.from + channel;
  Vector half[side][Form::outputs];
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
    Vector y[Form::outputs];
#pragma GCC unroll 9
    for (int row = 0; row < side; ++row) m[row] = half[row][column];
    Form::output(m, y);
    int64_t at = column * t.pixel_stride + channel;
#pragma GCC unroll 6
    for (int row = 0; row < Form::outputs; ++row, at += t.line_stride) {
      if (row >= t.rows) break;
      Vector value = y[row] + bias;
      if (t.addend) value += part.load(t.addend + at);
      part.store(t.output + at, t.clamps ? clamp(value, t.low, t.high) : value);
      __builtin_prefetch(t.output + at + Form::outputs * t.pixel_stride, 1, 3);  // of the next tile
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
