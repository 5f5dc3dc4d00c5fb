// Depthwise convolutions of bytes, pixel by pixel, in 16 bits less zero points, which padding is then zeros of.
#include "kernels/integer_depthwise.h"

#include <algorithm>
#include <cstring>

#include "kernels/block.h"
#include "kernels/integer_rows.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

int64_t padded_channels(const IntegerTable& table, const ConvolutionShape& shape) {
  return round_up(shape.groups, table.tile_columns);
}

struct DepthwiseScratch {
  const uint8_t** pointers;
  uint8_t* zeros;
  size_t bytes;

  DepthwiseScratch(const IntegerTable& table, const ConvolutionShape& shape, void* base) {
    Scratch scratch(base);
    pointers = scratch.take<const uint8_t*>(shape.taps());
    zeros = scratch.take<uint8_t>(2 * padded_channels(table, shape));
    bytes = scratch.used();
  }
};

void run_task(const IntegerTable& table, const IntegerProduct& product, const IntegerPlan& plan,
              const DepthwiseScratch& scratch, const uint8_t* memory, int64_t task) {
  const ConvolutionShape& shape = product.shape;
  int64_t stride = 2 * padded_channels(table, shape);
  int64_t begin = task * plan.rows_of_task;
  int64_t end = std::min(shape.output_pixels(), begin + plan.rows_of_task);
  auto pixel = [&](int64_t index) { return memory + index * stride; };
  for (int64_t row = begin; row < end; ++row) {
    fill_taps(shape, row, pixel, scratch.zeros, 1, scratch.pointers);
    table.depthwise({.rows = scratch.pointers,
                     .taps = shape.taps(),
                     .weights = reinterpret_cast<const uint32_t*>(product.packed),
                     .channels = shape.groups,
                     .c = product.output + row * shape.groups});
  }
  if (!product.epilogue.function) return;
  int64_t ranges[] = {begin, end, 0, shape.groups};
  product.epilogue.function(product.epilogue.buffers, product.epilogue.sizes, ranges);
}

}  // namespace

bool is_integer_depthwise(const ConvolutionShape& shape) {
  return shape.groups > 1 && shape.groups == shape.input_channels && shape.groups == shape.output_channels;
}

size_t packed_integer_depthwise_bytes(const IntegerTable& table, const ConvolutionShape& shape) {
  return static_cast<size_t>(shape.taps() * padded_channels(table, shape)) * sizeof(uint32_t);
}

void pack_integer_depthwise(const IntegerTable& table, const ConvolutionShape& shape, const IntegerWeights& weights,
                            std::byte* packed) {
  std::memset(packed, 0, packed_integer_depthwise_bytes(table, shape));
  auto* to = reinterpret_cast<uint32_t*>(packed);
  int64_t padded = padded_channels(table, shape);
  for (int64_t channel = 0; channel < shape.groups; ++channel)
    for (int64_t tap = 0; tap < shape.taps(); ++tap) {
      const uint8_t* at = weights.bytes.data + channel * weights.column_stride + tap * weights.tap_stride;
      int32_t value = byte_value(weights.bytes, at) - zero_point(weights.bytes, channel);
      to[tap * padded + channel] = static_cast<uint16_t>(value);
    }
}

IntegerPlan plan_integer_depthwise(const IntegerTable& table, const IntegerProduct& product, int threads) {
  const ConvolutionShape& shape = product.shape;
  IntegerPlan plan{};
  int64_t rows = shape.output_pixels();
  if (rows == 0) return plan;
  // So many sums that they are in cache when the epilogue comes.
  int64_t fitting = std::clamp<int64_t>(cache_sizes().l2 / 8 / (4 * shape.groups), 8, 512);
  Cut cut = cut_tasks({.rows = rows,
                       .columns = shape.groups,
                       .row_step = fitting,
                       .least_rows = 8,
                       .column_step = shape.groups,
                       .products = shape.taps(),
                       .threads = threads});
  plan.rows_of_task = cut.rows;
  plan.columns_of_task = shape.groups;
  plan.row_tasks = ceil_divide(rows, cut.rows);
  plan.column_tasks = 1;
  plan.groups = 1;
  plan.pixels_of_task = std::max<int64_t>(1, (64 << 10) / shape.groups);
  plan.pixel_tasks = ceil_divide(input_pixels(shape), plan.pixels_of_task);
  plan.memory_bytes = static_cast<size_t>(input_pixels(shape) * 2 * padded_channels(table, shape));
  plan.scratch_bytes = DepthwiseScratch(table, shape, nullptr).bytes;
  return plan;
}

void run_integer_depthwise_stage(const IntegerTable& table, const IntegerProduct& product, const IntegerPlan& plan,
                                 int64_t stage, int64_t task_begin, int64_t task_end, void* memory, void* scratch) {
  const ConvolutionShape& shape = product.shape;
  int64_t padded = padded_channels(table, shape);
  if (stage == 0) {
    int64_t end = std::min(input_pixels(shape), task_end * plan.pixels_of_task);
    for (int64_t pixel = task_begin * plan.pixels_of_task; pixel < end; ++pixel) {
      uint8_t* to = static_cast<uint8_t*>(memory) + pixel * 2 * padded;
      table.center_words(product.input.data + pixel * shape.groups, product.input.is_signed,
                         zero_point(product.input, 0), shape.groups, to);
      std::memset(to + 2 * shape.groups, 0, static_cast<size_t>(2 * (padded - shape.groups)));
    }
    return;
  }
  DepthwiseScratch parts(table, shape, scratch);
  std::memset(parts.zeros, 0, static_cast<size_t>(2 * padded));
  for (int64_t task = task_begin; task < task_end; ++task)
    run_task(table, product, plan, parts, static_cast<const uint8_t*>(memory), task);
}

}  // namespace selkie::kernels
