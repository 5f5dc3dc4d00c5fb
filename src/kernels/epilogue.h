// What becomes of a library kernel's output besides its own formula: what it does itself as it stores an element, and
// generated code that it calls on each finished block while the block is in cache.
#pragma once

#include <cstdint>
#include <limits>

namespace selkie::kernels {

// `ranges` is {row begin, row end, column begin, column end} of the output seen as a matrix: for convolutions a row is
// an output pixel (batch and spatial axes flattened), a column an output channel. Blocks of one kernel never overlap,
// cover the whole output and may come from several threads at once.
struct Epilogue {
  void (*function)(void* const* buffers, const int64_t* sizes, const int64_t* ranges) = nullptr;
  void* const* buffers = nullptr;
  const int64_t* sizes = nullptr;
};

// Each element is stored as the element of `addend` in the same place added to it, clamped to low … high; NaN stays
// NaN.
struct Finish {
  const float* addend = nullptr;  // laid out as the output, or null
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  bool clamps() const {
    return low > -std::numeric_limits<float>::infinity() || high < std::numeric_limits<float>::infinity();
  }
};

}  // namespace selkie::kernels
