// Lines of output pixels, split evenly into groups that the leaf kernels make at once.
#include "kernels/depthwise.h"

#include <algorithm>

#include "kernels/block.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

DepthwiseKind kind_of(const ConvolutionShape& shape) {
  if (shape.dilation[2] != 1) return any_depthwise;
  if (shape.kernel[2] == 3 && shape.stride[2] == 1) return three_by_one;
  if (shape.kernel[2] == 3 && shape.stride[2] == 2) return three_by_two;
  if (shape.kernel[2] == 5 && shape.stride[2] == 1) return five_by_one;
  if (shape.kernel[2] == 5 && shape.stride[2] == 2) return five_by_two;
  return any_depthwise;
}

struct DepthwiseScratch {
  const float** inputs;
  const float** group_inputs;
  const float** weights;
  size_t bytes;

  DepthwiseScratch(const ConvolutionShape& shape, void* base) {
    Scratch scratch(base);
    int64_t rows = shape.kernel[0] * shape.kernel[1];
    inputs = scratch.take<const float*>(rows);
    group_inputs = scratch.take<const float*>(rows);
    weights = scratch.take<const float*>(rows);
    bytes = scratch.used();
  }
};

// Fills in the kernel rows of output line (depth, height) that lie inside the input; gives their number.
int64_t find_rows(const Convolution& convolution, int64_t image, int64_t depth, int64_t height,
                  const DepthwiseScratch& scratch) {
  const ConvolutionShape& s = convolution.shape;
  int64_t rows = 0;
  for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
    int64_t d = depth * s.stride[0] - s.pad[0] + kd * s.dilation[0];
    if (d < 0 || d >= s.input[0]) continue;
    for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
      int64_t h = height * s.stride[1] - s.pad[1] + kh * s.dilation[1];
      if (h < 0 || h >= s.input[1]) continue;
      int64_t line = (image * s.input[0] + d) * s.input[1] + h;
      scratch.inputs[rows] = convolution.input + line * s.input[2] * convolution.input_pixel_stride;
      scratch.weights[rows] = convolution.packed_weights + (kd * s.kernel[1] + kh) * s.kernel[2] * s.input_channels;
      ++rows;
    }
  }
  return rows;
}

void run_line(const KernelTable& table, const Convolution& convolution, const DepthwiseScratch& scratch, int64_t line) {
  const ConvolutionShape& s = convolution.shape;
  int64_t width = s.output[2];
  DepthwiseArguments arguments{.rows = find_rows(convolution, line / s.output[1] / s.output[0],
                                                 line / s.output[1] % s.output[0], line % s.output[1], scratch),
                               .inputs = scratch.group_inputs,
                               .weights = scratch.weights,
                               .taps = s.kernel[2],
                               .stride = s.stride[2],
                               .dilation = s.dilation[2],
                               .valid_begin = 0,
                               .valid_end = 0,
                               .pixel_stride = convolution.input_pixel_stride,
                               .weight_stride = s.input_channels,
                               .channels = s.input_channels,
                               .bias = convolution.bias,
                               .output = convolution.output + line * width * convolution.output_pixel_stride,
                               .output_stride = convolution.output_pixel_stride};
  int64_t groups = ceil_divide(width, most_depthwise_pixels);
  DepthwiseKind kind = kind_of(s);
  for (int64_t group = 0, pixel = 0; group < groups; ++group) {
    int64_t pixels = width / groups + (group < width % groups ? 1 : 0);
    int64_t first = pixel * s.stride[2] - s.pad[2];
    int64_t last = first + (pixels - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2];
    for (int64_t row = 0; row < arguments.rows; ++row)
      scratch.group_inputs[row] = scratch.inputs[row] + first * convolution.input_pixel_stride;
    arguments.valid_begin = -first;
    arguments.valid_end = s.input[2] - first;
    bool border = first < 0 || last >= s.input[2];
    table.depthwise[kind][border ? 1 : 0][pixels - 1](arguments);
    arguments.output += pixels * convolution.output_pixel_stride;
    pixel += pixels;
  }
}

}  // namespace

bool is_depthwise(const ConvolutionShape& shape) {
  return shape.groups == shape.input_channels && shape.groups == shape.output_channels;
}

size_t packed_depthwise_elements(const ConvolutionShape& shape) {
  return static_cast<size_t>(shape.taps() * shape.input_channels);
}

void pack_depthwise(const ConvolutionShape& shape, const float* weights, float* packed) {
  for (int64_t tap = 0; tap < shape.taps(); ++tap)
    for (int64_t channel = 0; channel < shape.input_channels; ++channel)
      *packed++ = weights[channel * shape.taps() + tap];
}

DepthwisePlan plan_depthwise(const Convolution& convolution, int threads) {
  const ConvolutionShape& s = convolution.shape;
  DepthwisePlan plan{};
  int64_t lines = s.batch * s.output[0] * s.output[1];
  if (lines == 0 || s.output[2] == 0 || s.input_channels == 0) return plan;
  Cut cut = cut_tasks({.rows = lines,
                       .columns = s.output[2] * s.input_channels,
                       .row_step = lines,
                       .least_rows = 1,
                       .column_step = s.output[2] * s.input_channels,
                       .products = s.taps(),
                       .threads = threads});
  plan.lines_of_task = cut.rows;
  plan.tasks = ceil_divide(lines, cut.rows);
  plan.scratch_bytes = DepthwiseScratch(s, nullptr).bytes;
  return plan;
}

void run_depthwise(const KernelTable& table, const Convolution& convolution, const DepthwisePlan& plan,
                   int64_t task_begin, int64_t task_end, void* scratch) {
  const ConvolutionShape& s = convolution.shape;
  DepthwiseScratch parts(s, scratch);
  int64_t lines = s.batch * s.output[0] * s.output[1];
  int64_t end = std::min(lines, task_end * plan.lines_of_task);
  for (int64_t line = task_begin * plan.lines_of_task; line < end; ++line) {
    run_line(table, convolution, parts, line);
    if (!convolution.epilogue.function) continue;
    int64_t ranges[] = {line * s.output[2], (line + 1) * s.output[2], 0, s.output_channels};
    convolution.epilogue.function(convolution.epilogue.buffers, convolution.epilogue.sizes, ranges);
  }
}

}  // namespace selkie::kernels
