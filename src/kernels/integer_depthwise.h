// Depthwise convolutions of bytes: integer_gemm.h's, of one input and one output channel in each group.
#pragma once

#include "kernels/integer_gemm.h"

namespace selkie::kernels {

bool is_integer_depthwise(const ConvolutionShape& shape);

size_t packed_integer_depthwise_bytes(const IntegerTable& table, const ConvolutionShape& shape);
void pack_integer_depthwise(const IntegerTable& table, const ConvolutionShape& shape, const IntegerWeights& weights,
                            std::byte* packed);
IntegerPlan plan_integer_depthwise(const IntegerTable& table, const IntegerProduct& product, int threads);
void run_integer_depthwise_stage(const IntegerTable& table, const IntegerProduct& product, const IntegerPlan& plan,
                                 int64_t stage, int64_t task_begin, int64_t task_end, void* memory, void* scratch);

}  // namespace selkie::kernels
