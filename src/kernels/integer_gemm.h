// Products and convolutions of bytes less their zero points, exact in i32 (modulo 2³²), with weights packed once. A
// matrix product is a convolution of one tap, whose pixels are the rows. Nothing here allocates: a call has two stages,
// each cut into tasks that any threads may run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolution.h"
#include "kernels/epilogue.h"
#include "kernels/integer_table.h"

namespace selkie::kernels {

// Bytes, signed or not, and what is subtracted from them.
struct ByteTensor {
  const uint8_t* data = nullptr;
  bool is_signed = false;
  const uint8_t* zeros = nullptr;  // of the same sign; null: 0
  int64_t zero_count = 1;          // one for all, or several
};

// Weights as they are given, in elements: of output channel, input channel of its group, and tap.
struct IntegerWeights {
  ByteTensor bytes;  // with a zero point for each output channel, if there are several
  int64_t column_stride;
  int64_t channel_stride;
  int64_t tap_stride;
};

struct IntegerProduct {
  ConvolutionShape shape;
  ByteTensor input;                   // [batch, depth, height, width, channels]; several zero points: one per row
  const std::byte* packed = nullptr;  // from pack_integer of the same table, aligned to 64
  int32_t* output = nullptr;          // [batch, depth, height, width, channels]
  Epilogue epilogue;
};

struct IntegerPlan {
  int64_t rows_of_task;
  int64_t columns_of_task;
  int64_t row_tasks;
  int64_t column_tasks;
  int64_t groups;
  int64_t pixels_of_task;  // of the first stage, which brings the input into the form that tiles read
  int64_t pixel_tasks;
  size_t memory_bytes;   // that stages share
  size_t scratch_bytes;  // for each thread; both are aligned to 64

  static constexpr int64_t stages = 2;
  int64_t tasks(int64_t stage) const { return stage == 0 ? pixel_tasks : groups * row_tasks * column_tasks; }
};

ConvolutionShape product_shape(int64_t m, int64_t n, int64_t k);

size_t packed_integer_bytes(const IntegerTable& table, const ConvolutionShape& shape);
void pack_integer(const IntegerTable& table, const ConvolutionShape& shape, const IntegerWeights& weights,
                  std::byte* packed);

IntegerPlan plan_integer(const IntegerTable& table, const IntegerProduct& product, int threads);
void run_integer_stage(const IntegerTable& table, const IntegerProduct& product, const IntegerPlan& plan, int64_t stage,
                       int64_t task_begin, int64_t task_end, void* memory, void* scratch);

}  // namespace selkie::kernels
