// Depthwise convolution in f32 over channels-last tensors: every channel has its own filter (groups = input channels =
// output channels). Kernels of width 3 and 5 with stride 1 and 2 have loops of their own.
#pragma once

#include "kernels/convolution.h"

namespace selkie::kernels {

struct DepthwisePlan {
  int64_t lines_of_task;  // lines of output pixels
  int64_t tasks;
  size_t scratch_bytes;  // for each thread, aligned to 64
};

bool is_depthwise(const ConvolutionShape& shape);

// The kernel rows that read the input where the first one reads its line `first`; all where the kernel has planes.
DepthwiseRows rows_inside(const ConvolutionShape& shape, int64_t first);

size_t packed_depthwise_elements(const ConvolutionShape& shape);
// `weights` is [channels, 1, kernel…], as ONNX has it.
void pack_depthwise(const ConvolutionShape& shape, const float* weights, float* packed);

// `convolution.packed_weights` is from pack_depthwise; nothing is added to the output.
DepthwisePlan plan_depthwise(const Convolution& convolution, int threads);
void run_depthwise(const KernelTable& table, const Convolution& convolution, const DepthwisePlan& plan,
                   int64_t task_begin, int64_t task_end, void* scratch);

}  // namespace selkie::kernels
