// Convolutions of 3x3 by Winograd's F(4x4, 3x3): with stride 1, 36 products for 16 outputs instead of 144; with stride
// 2, 81. Results differ from the direct sum by about ten times its rounding error. F(6x6, 3x3), with stride 1 only, has
// 64 products for 36 outputs, a larger error, and seven times the weights.
#pragma once

#include "kernels/convolution.h"

namespace selkie::kernels {

// Whether the kernel can do this convolution at all.
bool winograd_applies(const KernelTable& table, const ConvolutionShape& shape);
// What it is given: weights that winograd_transform_weights made, which are four times as many (or seven, for tiles of
// 6x6 outputs), or those of pack_convolution, which it transforms as it runs, for tiles of either size.
enum class WinogradWeights { transformed, packed, transformed_for_six, packed_for_six };
inline bool is_packed(WinogradWeights form) {
  return form == WinogradWeights::packed || form == WinogradWeights::packed_for_six;
}
inline bool is_for_six(WinogradWeights form) {
  return form == WinogradWeights::transformed_for_six || form == WinogradWeights::packed_for_six;
}
// Whether it is expected to be faster than run_convolution, by counting cycles of arithmetic, transforms and weights.
bool winograd_wins(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights);
// Of run_convolution's time, by the same count.
double winograd_time(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights);
// Cycles by which kept transformed weights of this form are expected to make it faster than whichever is best without
// them; not negative.
double winograd_saving(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights kept);
// Whether tiles of 6x6 outputs are expected to be faster than those of 4x4, both by transformed weights.
bool wide_winograd_wins(const KernelTable& table, const ConvolutionShape& shape);

size_t winograd_weight_elements(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights form);
// `weights` is [output channels, input channels, 3, 3], as ONNX has it.
void winograd_transform_weights(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights form,
                                const float* weights, float* transformed);

struct WinogradPlan {
  WinogradWeights weights;
  int64_t tiles_of_task;
  int64_t channels_of_task;
  int64_t channels_of_group;  // output channels whose products are made at one time
  int64_t column_tasks;       // of the same tiles
  int64_t tasks;
  size_t scratch_bytes;  // for each thread, aligned to 64
  int64_t weight_tasks;  // that transform all weights before the others run; 0 if each task transforms what it needs
  size_t memory_bytes;   // where they put them, for all threads, aligned to 64
};

// `convolution.packed_weights` is what `weights` says.
WinogradPlan plan_winograd(const KernelTable& table, const Convolution& convolution, WinogradWeights weights,
                           int threads);
void run_winograd_weights(const KernelTable& table, const Convolution& convolution, const WinogradPlan& plan,
                          int64_t task_begin, int64_t task_end, void* memory);
// After all of those; `memory` is theirs.
void run_winograd(const KernelTable& table, const Convolution& convolution, const WinogradPlan& plan,
                  int64_t task_begin, int64_t task_end, const void* memory, void* scratch);

}  // namespace selkie::kernels
