// Convolution in f32 over channels-last tensors, as products over row pointers, or over copies of a block's rows. One,
// two and three spatial axes, any strides, dilations, pads and groups.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/epilogue.h"
#include "kernels/table.h"

namespace selkie::kernels {

// Spatial axes are depth, height and width; where there are fewer, the leading ones have size 1.
struct ConvolutionShape {
  int64_t batch = 1;
  int64_t input_channels = 1;
  int64_t output_channels = 1;
  int64_t groups = 1;
  std::array<int64_t, 3> input = {1, 1, 1};
  std::array<int64_t, 3> output = {1, 1, 1};
  std::array<int64_t, 3> kernel = {1, 1, 1};
  std::array<int64_t, 3> stride = {1, 1, 1};
  std::array<int64_t, 3> dilation = {1, 1, 1};
  std::array<int64_t, 3> pad = {0, 0, 0};  // zeros before the first element; those after it follow from `output`

  int64_t output_pixels() const { return batch * output[0] * output[1] * output[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  bool operator==(const ConvolutionShape&) const = default;
};

struct Convolution {
  ConvolutionShape shape;
  const float* input = nullptr;    // [batch, depth, height, width, channels]
  int64_t input_pixel_stride = 0;  // floats from pixel to pixel, at least the channels
  const float* packed_weights = nullptr;
  const float* bias = nullptr;  // [output channels], or null
  float* output = nullptr;      // [batch, depth, height, width, channels]
  int64_t output_pixel_stride = 0;
  Finish finish;
  Epilogue epilogue;
  // For a part of a larger one, by the direct and the depthwise kernel: the row of the whole that row 0 is for the
  // epilogue, and whether the input comes from beyond the second-level cache.
  int64_t first_row = 0;
  bool fetches_input = false;
};

struct ConvolutionPlan {
  int64_t rows_of_task;
  int64_t columns_of_task;
  int64_t row_tasks;
  int64_t column_tasks;
  int64_t groups;
  bool joined;           // the taps of one kernel row are read as one run of floats
  bool copies;           // rows are copied before they are multiplied
  size_t scratch_bytes;  // for each thread, aligned to 64

  int64_t tasks() const { return groups * row_tasks * column_tasks; }
};

size_t packed_convolution_elements(const KernelTable& table, const ConvolutionShape& shape);
// `weights` is [output channels, input channels / groups, kernel…], as ONNX has it.
void pack_convolution(const KernelTable& table, const ConvolutionShape& shape, const float* weights, float* packed);

ConvolutionPlan plan_convolution(const KernelTable& table, const Convolution& convolution, int threads);
void run_convolution(const KernelTable& table, const Convolution& convolution, const ConvolutionPlan& plan,
                     int64_t task_begin, int64_t task_end, void* scratch);

}  // namespace selkie::kernels
