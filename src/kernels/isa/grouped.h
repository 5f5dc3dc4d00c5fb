// Grouped convolution of a few neighbouring output pixels and one vector of outputs. Lanes of several groups take their
// inputs out of one vector by a permutation, lanes of one group take the same input; either serves all pixels and taps
// that need it.
#pragma once

#include "kernels/isa/vector.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// One input channel after the other of all lanes' groups.
struct SeveralGroups {
  typedef int32_t Places __attribute__((vector_size(lanes * 4)));
  typedef int32_t UnalignedPlaces __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
  Places places;

  SELKIE_INLINE explicit SeveralGroups(const GroupedArguments& t)
      : places(*reinterpret_cast<const UnalignedPlaces*>(t.first_inputs)) {}
  SELKIE_INLINE Vector at(const float* pixel) const {
#if defined(SELKIE_ISA_NATIVE)
    // From memory: left to itself, GCC 12 keeps all pixels in registers, and has none for weights.
    Vector value;
    asm("vpermps %1, %2, %0" : "=v"(value) : "m"(*reinterpret_cast<const UnalignedVector*>(pixel)), "v"(places));
    return value;
#else
    Vector value;
    for (int i = 0; i < lanes; ++i) value[i] = pixel[places[i]];
    return value;
#endif
  }
  SELKIE_INLINE void advance() { places += 1; }
};

struct OneGroup {
  int64_t channel = 0;

  SELKIE_INLINE explicit OneGroup(const GroupedArguments&) {}
  SELKIE_INLINE Vector at(const float* pixel) const { return broadcast(pixel[channel]); }
  SELKIE_INLINE void advance() { ++channel; }
};

// One input channel times one kernel row of `taps` neighbouring taps.
template <int pixels, int taps, int stride, class Group>
SELKIE_INLINE void grouped_taps(const GroupedArguments&, const Group& group, const float* input, const float* weights,
                                Vector (&sum)[pixels]) {
  Vector weight[taps];
#pragma GCC unroll 8
  for (int tap = 0; tap < taps; ++tap) weight[tap] = load(weights + tap * lanes);
#pragma GCC unroll 32
  for (int i = 0; i < (pixels - 1) * stride + taps; ++i) {
    Vector value = group.at(input + i * lanes);
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) {
      int tap = i - pixel * stride;
      if (tap >= 0 && tap < taps) multiply_add(sum[pixel], value, weight[tap]);
    }
  }
}

// The same for a kernel row of any width, stride and dilation.
template <int pixels, class Group>
SELKIE_INLINE void grouped_any_taps(const GroupedArguments& t, const Group& group, const float* input,
                                    const float* weights, Vector (&sum)[pixels]) {
  for (int64_t tap = 0; tap < t.taps; ++tap, input += t.tap_step, weights += lanes) {
    Vector weight = load(weights);
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel)
      multiply_add(sum[pixel], group.at(input + pixel * t.pixel_step), weight);
  }
}

// All input channels times one kernel row; gives where the next row's weights begin.
template <int pixels, int taps, int stride, class Group>
SELKIE_INLINE const float* grouped_row(const GroupedArguments& t, const float* input, const float* weights,
                                       Vector (&sum)[pixels]) {
  for (int64_t begin = 0; begin < t.depth; begin += lanes, input += t.chunk_stride) {
    Group group(t);
    int64_t end = begin + lanes < t.depth ? begin + lanes : t.depth;
    for (int64_t channel = begin; channel < end; ++channel, weights += t.taps * lanes) {
      if constexpr (taps > 0)
        grouped_taps<pixels, taps, stride>(t, group, input, weights, sum);
      else
        grouped_any_taps<pixels>(t, group, input, weights, sum);
      group.advance();
    }
  }
  return weights;
}

template <int pixels, int taps, int stride, class Group, class Lanes>
SELKIE_INLINE void grouped_lines(const GroupedArguments& t, Lanes part) {
  const float* const* inputs = t.inputs;
  Vector bias = t.bias ? part.load(t.bias) : Vector{};
  for (int64_t line = 0, offset = 0; line < t.lines; ++line, inputs += t.rows, offset += t.output_line_stride) {
    Vector sum[pixels];
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) sum[pixel] = bias;
    if (t.addend) {
#pragma GCC unroll 8
      for (int pixel = 0; pixel < pixels; ++pixel) sum[pixel] += part.load(t.addend + offset + pixel * t.output_stride);
    }
    // What the next line is stored to is fetched while this one is multiplied; with stride 2 that was slower.
    if (stride != 2 && line + 1 < t.lines) {
      const float* next = t.output + offset + t.output_line_stride;
#pragma GCC unroll 8
      for (int pixel = 0; pixel < pixels; ++pixel) __builtin_prefetch(next + pixel * t.output_stride, 0, 2);
    }
    DepthwiseRows inside = t.inside[line];
    const float* weights = t.weights + inside.begin * t.depth * t.taps * lanes;
    for (int64_t row = inside.begin; row < inside.begin + inside.count; ++row)
      weights = grouped_row<pixels, taps, stride, Group>(t, inputs[row] + t.offset, weights, sum);
    if (t.clamps) {
#pragma GCC unroll 8
      for (int pixel = 0; pixel < pixels; ++pixel) sum[pixel] = clamp(sum[pixel], t.low, t.high);
    }
#pragma GCC unroll 8
    for (int pixel = 0; pixel < pixels; ++pixel) part.store(t.output + offset + pixel * t.output_stride, sum[pixel]);
  }
}

// `taps` = 0 stands for any width.
template <int pixels, int taps, int stride, class Group>
void grouped(const GroupedArguments& arguments) {
  GroupedArguments t = arguments;  // a copy, since stores to the output might change the original
  if (taps > 0) t.taps = taps;
  t.columns >= lanes ? grouped_lines<pixels, taps, stride, Group>(t, AllLanes{})
                     : grouped_lines<pixels, taps, stride, Group>(t, FirstLanes(t.columns));
}

template <int taps, int stride, class Group>
constexpr void set_grouped_lanes(GroupedFunction (&functions)[most_grouped_pixels]) {
  functions[0] = grouped<1, taps, stride, Group>;
  functions[1] = grouped<2, taps, stride, Group>;
  functions[2] = grouped<3, taps, stride, Group>;
  functions[3] = grouped<4, taps, stride, Group>;
  functions[4] = grouped<5, taps, stride, Group>;
  functions[5] = grouped<6, taps, stride, Group>;
  functions[6] = grouped<7, taps, stride, Group>;
  functions[7] = grouped<8, taps, stride, Group>;
}

template <int taps, int stride>
constexpr void set_grouped(GroupedFunction (&functions)[grouped_lanes][most_grouped_pixels]) {
  set_grouped_lanes<taps, stride, OneGroup>(functions[one_group]);
  set_grouped_lanes<taps, stride, SeveralGroups>(functions[several_groups]);
}

template <class Lanes>
SELKIE_INLINE void copy_chunks_of(Lanes part, const float* from, int64_t stride, int64_t rows, float* to) {
  for (int64_t row = 0; row < rows; ++row, from += stride, to += lanes) store(to, part.load(from));
}

void copy_chunks(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  columns >= lanes ? copy_chunks_of(AllLanes{}, from, stride, rows, to)
                   : copy_chunks_of(FirstLanes(columns), from, stride, rows, to);
}

}  // namespace
}  // namespace selkie::kernels
