// Convolutions of 3x3 by Winograd's F(4x4, 3x3): with stride 1, 36 products for 16 outputs instead of 144; with stride
// 2,
// 81. Results differ from the direct sum by about ten times its rounding error.
#pragma once

#include "kernels/convolution.h"

namespace selkie::kernels {

// Whether the kernel can do this convolution at all.
bool winograd_applies(const KernelTable& table, const ConvolutionShape& shape);
// Whether it is expected to be faster than run_convolution, by counting cycles of arithmetic, transforms and weights.
bool winograd_wins(const KernelTable& table, const ConvolutionShape& shape);

size_t winograd_weight_elements(const KernelTable& table, const ConvolutionShape& shape);
// `weights` is [output channels, input channels, 3, 3], as ONNX has it.
void winograd_transform_weights(const KernelTable& table, const ConvolutionShape& shape, const float* weights,
                                float* transformed);

struct WinogradPlan {
  int64_t tiles_of_task;
  int64_t tasks;
  size_t scratch_bytes;  // for each thread, aligned to 64
};

// `convolution.packed_weights` is from winograd_transform_weights.
WinogradPlan plan_winograd(const KernelTable& table, const Convolution& convolution, int threads);
void run_winograd(const KernelTable& table, const Convolution& convolution, const WinogradPlan& plan,
                  int64_t task_begin, int64_t task_end, void* scratch);

}  // namespace selkie::kernels
