// Convolution in groups of few channels, in f32 over channels-last tensors: a vector has the outputs of several groups,
// or of a part of one. Kernels of width 3 with stride 1 and 2 have loops of their own.
#pragma once

#include "kernels/convolution.h"

namespace selkie::kernels {

struct GroupedPlan {
  int64_t lines_of_task;  // lines of output pixels
  int64_t units_of_task;  // groups that are computed together
  int64_t line_tasks;
  int64_t unit_tasks;
  size_t scratch_bytes;  // for each thread, aligned to 64

  int64_t tasks() const { return line_tasks * unit_tasks; }
};

// Whether this kernel is faster than the direct one: it multiplies one vector of outputs at a time, the direct one two,
// but does so for each group alone. It follows from channels and groups, never from the sizes of images.
bool takes_grouped(const KernelTable& table, const ConvolutionShape& shape);

size_t packed_grouped_elements(const KernelTable& table, const ConvolutionShape& shape);
// `weights` is [output channels, input channels / groups, kernel…], as ONNX has it.
void pack_grouped(const KernelTable& table, const ConvolutionShape& shape, const float* weights, float* packed);

// `convolution.packed_weights` is from pack_grouped.
GroupedPlan plan_grouped(const KernelTable& table, const Convolution& convolution, int threads);
void run_grouped(const KernelTable& table, const Convolution& convolution, const GroupedPlan& plan, int64_t task_begin,
                 int64_t task_end, void* scratch);

}  // namespace selkie::kernels
