// A few rows times packed panels. Such products are bound by reading the panels, and several that are read side by side
// come faster than one after the other, most of all from memory.
#pragma once

#include <cstring>

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// As many as registers hold sums for.
template <int rows>
constexpr int panels_beside() {
  constexpr int fitting = SELKIE_ISA_TILE_ROWS / rows;
  return fitting < 4 ? fitting : 4;
}

// Every column is summed in the same order, whatever stands beside it: equal columns of b give equal results.
template <int rows, int panels>
SELKIE_INLINE void multiply_panels(const RowArguments& t, int64_t first) {
  const float* b = t.panels + first * t.panel_stride;
  Vector sum[rows][panels][2];
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      int64_t at = (first + p) * 2 * lanes + v * lanes;
      Vector bias = t.bias ? load(t.bias + at) : Vector{};
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        sum[r][p][v] = bias;
        if (t.addend) sum[r][p][v] += load(t.addend + r * t.c_stride + at);
      }
    }
  for (int64_t d = 0; d < t.depth; ++d) {
    Vector scalar[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) scalar[r] = broadcast(t.row[r * t.row_stride + d]);
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        Vector column = load(b + p * t.panel_stride + d * 2 * lanes + v * lanes);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) multiply_add(sum[r][p][v], scalar[r], column);
      }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) store(t.c + r * t.c_stride + (first + p) * 2 * lanes + v * lanes, sum[r][p][v]);
}

// Whole panels from `panel` on.
template <int rows, int panels>
SELKIE_INLINE void multiply_whole_panels(const RowArguments& t, int64_t panel, int64_t count) {
  for (; panel + panels <= count; panel += panels) multiply_panels<rows, panels>(t, panel);
  if constexpr (panels > 1) multiply_whole_panels<rows, panels / 2>(t, panel, count);
}

template <int rows>
void multiply_rows(const RowArguments& arguments) {
  const RowArguments t = arguments;
  constexpr int64_t width = 2 * lanes;
  const int64_t count = t.columns / width;
  multiply_whole_panels<rows, panels_beside<rows>()>(t, 0, count);
  const int64_t rest = t.columns - count * width;
  if (rest == 0) return;
  alignas(64) float bias[width] = {};
  alignas(64) float addend[rows * width] = {};
  alignas(64) float c[rows * width];
  const size_t bytes = static_cast<size_t>(rest) * sizeof(float);
  if (t.bias) std::memcpy(bias, t.bias + count * width, bytes);
  if (t.addend)
    for (int r = 0; r < rows; ++r) std::memcpy(addend + r * width, t.addend + r * t.c_stride + count * width, bytes);
  multiply_panels<rows, 1>({.row = t.row,
                            .row_stride = t.row_stride,
                            .depth = t.depth,
                            .panels = t.panels + count * t.panel_stride,
                            .panel_stride = t.panel_stride,
                            .columns = width,
                            .c = c,
                            .c_stride = width,
                            .bias = bias,
                            .addend = addend},
                           0);
  for (int r = 0; r < rows; ++r) std::memcpy(t.c + r * t.c_stride + count * width, c + r * width, bytes);
}

}  // namespace
}  // namespace selkie::kernels
