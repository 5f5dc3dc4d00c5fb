// Which of several kernels that do the same work a call takes. It follows from sizes and strides alone, so that it can
// be told before a run.
#pragma once

#include "kernels/convolution.h"
#include "kernels/gemm.h"

namespace selkie::kernels {

enum class ConvolutionVersion { direct, depthwise, winograd };
// Weights are packed for the depthwise kernel, or for the direct one and perhaps for Winograd's as well.
ConvolutionVersion convolution_version(const KernelTable& table, const ConvolutionShape& shape, bool depthwise,
                                       bool winograd);

struct ProductVersion {
  enum class Factor { packed_before, packed_in_call, in_place };
  Factor b;
  bool one_row;  // by the kernel that multiplies all panels at once, else by register tiles
};
ProductVersion product_version(const KernelTable& table, const Gemm& gemm);

}  // namespace selkie::kernels
