// One row times packed panels. It is bound by reading the panels, and several that are read side by side come faster
// than one after the other, most of all from memory.
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

template <int panels, int sums>
SELKIE_INLINE void multiply_panels(const RowArguments& t, int64_t first) {
  const float* b = t.panels + first * t.panel_stride;
  Vector sum[sums][panels][2];
#pragma GCC unroll 4
  for (int s = 0; s < sums; ++s)
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        sum[s][p][v] = s == 0 && t.bias ? load(t.bias + (first + p) * 2 * lanes + v * lanes) : Vector{};
  int64_t d = 0;
  auto step = [&](Vector(&to)[panels][2]) __attribute__((always_inline)) {
    Vector scalar = broadcast(t.row[d]);
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        multiply_add(to[p][v], scalar, load(b + p * t.panel_stride + d * 2 * lanes + v * lanes));
    ++d;
  };
  while (d + sums <= t.depth) {
#pragma GCC unroll 4
    for (int s = 0; s < sums; ++s) step(sum[s]);
  }
  while (d < t.depth) step(sum[0]);
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      Vector all = sum[0][p][v];
#pragma GCC unroll 4
      for (int s = 1; s < sums; ++s) all += sum[s][p][v];
      store(t.c + (first + p) * 2 * lanes + v * lanes, all);
    }
}

void multiply_row(const RowArguments& arguments) {
  const RowArguments t = arguments;
  int64_t panel = 0;
  for (; panel + 4 <= t.count; panel += 4) multiply_panels<4, 1>(t, panel);
  for (; panel + 2 <= t.count; panel += 2) multiply_panels<2, 2>(t, panel);
  if (panel < t.count) multiply_panels<1, 4>(t, panel);
}

}  // namespace
}  // namespace selkie::kernels
