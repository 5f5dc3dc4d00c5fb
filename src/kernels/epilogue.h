// Generated code that a library kernel calls on each finished block of its output, while the block is in cache.
#pragma once

#include <cstdint>

namespace selkie::kernels {

// `ranges` is {row begin, row end, column begin, column end} of the output seen as a matrix: for convolutions a row is
// an output pixel (batch and spatial axes flattened), a column an output channel. Blocks of one kernel never overlap,
// cover the whole output and may come from several threads at once.
struct Epilogue {
  void (*function)(void* const* buffers, const int64_t* sizes, const int64_t* ranges) = nullptr;
  void* const* buffers = nullptr;
  const int64_t* sizes = nullptr;
};

}  // namespace selkie::kernels
