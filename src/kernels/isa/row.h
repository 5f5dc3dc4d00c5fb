// One row times packed panels. It is bound by reading the panels, and several that are read side by side come faster
// than one after the other, most of all from memory.
#pragma once

#include <cstring>

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// Every column is summed in the same order, whatever stands beside it: equal columns of b give equal results.
template <int panels>
SELKIE_INLINE void multiply_panels(const RowArguments& t, int64_t first) {
  const float* b = t.panels + first * t.panel_stride;
  Vector sum[panels][2];
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      int64_t at = (first + p) * 2 * lanes + v * lanes;
      sum[p][v] = t.bias ? load(t.bias + at) : Vector{};
      if (t.addend) sum[p][v] += load(t.addend + at);
    }
  for (int64_t d = 0; d < t.depth; ++d) {
    Vector scalar = broadcast(t.row[d]);
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        multiply_add(sum[p][v], scalar, load(b + p * t.panel_stride + d * 2 * lanes + v * lanes));
  }
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) store(t.c + (first + p) * 2 * lanes + v * lanes, sum[p][v]);
}

void multiply_row(const RowArguments& arguments) {
  const RowArguments t = arguments;
  constexpr int64_t width = 2 * lanes;
  const int64_t count = t.columns / width;
  int64_t panel = 0;
  for (; panel + 4 <= count; panel += 4) multiply_panels<4>(t, panel);
  for (; panel + 2 <= count; panel += 2) multiply_panels<2>(t, panel);
  if (panel < count) multiply_panels<1>(t, panel);
  const int64_t rest = t.columns - count * width;
  if (rest == 0) return;
  alignas(64) float bias[width] = {};
  alignas(64) float addend[width] = {};
  alignas(64) float c[width];
  const size_t bytes = static_cast<size_t>(rest) * sizeof(float);
  if (t.bias) std::memcpy(bias, t.bias + count * width, bytes);
  if (t.addend) std::memcpy(addend, t.addend + count * width, bytes);
  multiply_panels<1>({.row = t.row,
                      .depth = t.depth,
                      .panels = t.panels + count * t.panel_stride,
                      .panel_stride = t.panel_stride,
                      .columns = width,
                      .c = c,
                      .bias = bias,
                      .addend = addend},
                     0);
  std::memcpy(t.c + count * width, c, bytes);
}

}  // namespace
}  // namespace selkie::kernels
