// Packing, planning and running of integer products.
//
// Weights are signed bytes b′ = b − offset, where the offset is 128 if they are unsigned, with zero points z′ that are
// moved as they are. Then Σ (a − z_a)(b − z_b) = Σ (a − z_a) b′ − z_b′ Σ (a − z_a). A table that multiplies bytes has
// unsigned a′ in place of a − z_a, moved by 128 if they are signed: Σ (a − z_a) b′ = Σ a′b′ − z_a′ Σ b′.
#include "kernels/integer_gemm.h"

#include <cstring>

#include "kernels/block.h"
#include "kernels/integer_depthwise.h"
#include "kernels/integer_rows.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

// Where the parts of packed weights are, all of them aligned to a cache line.
struct PackedParts {
  int64_t channels;  // of a group
  int64_t columns;   // of a group,
  int64_t padded;    // and up to a whole panel
  int64_t steps;     // of a tap
  int64_t panel;     // bytes
  // Offsets in bytes.
  int64_t column_sums;
  int64_t column_zeros;
  int64_t panels;
  int64_t total;

  PackedParts(const IntegerTable& table, const ConvolutionShape& shape) {
    channels = shape.input_channels / shape.groups;
    columns = shape.output_channels / shape.groups;
    padded = round_up(columns, table.tile_columns);
    steps = table.steps(channels);
    panel = shape.taps() * steps * table.tile_columns * table.step;
    column_sums = 64;  // behind a word that says whether there are column zeros
    column_zeros = column_sums + round_up(shape.groups * padded * 4, 64);
    panels = column_zeros + round_up(shape.groups * padded * 4, 64);
    total = panels + shape.groups * padded / table.tile_columns * panel;
  }
};

class Packed {
 public:
  Packed(const PackedParts& parts, const std::byte* base) : parts_(parts), base_(base) {}

  bool has_zeros() const { return *reinterpret_cast<const int32_t*>(base_) != 0; }
  const int32_t* column_sums(int64_t group) const { return integers(parts_.column_sums, group); }
  const int32_t* column_zeros(int64_t group) const { return integers(parts_.column_zeros, group); }
  const int8_t* panel(int64_t index) const {
    return reinterpret_cast<const int8_t*>(base_ + parts_.panels + index * parts_.panel);
  }

 private:
  const int32_t* integers(int64_t offset, int64_t group) const {
    return reinterpret_cast<const int32_t*>(base_ + offset) + group * parts_.padded;
  }

  const PackedParts& parts_;
  const std::byte* base_;
};

// One panel of columns of a group, and the sums of its columns. An unsigned byte less 128 has its first bit turned.
void pack_panel(const IntegerTable& table, const IntegerWeights& weights, const PackedParts& parts, int64_t taps,
                int64_t first, int64_t columns, int8_t* to, int32_t* sums) {
  uint8_t turned = weights.bytes.is_signed ? 0 : 0x80;
  std::memset(to, 0, static_cast<size_t>(parts.panel));
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t channel = 0; channel < parts.channels; ++channel) {
      const uint8_t* from = weights.bytes.data + first * weights.column_stride + channel * weights.channel_stride +
                            tap * weights.tap_stride;
      int64_t step = tap * parts.steps + channel / table.step;
      int8_t* line = to + step * table.tile_columns * table.step + channel % table.step;
      for (int64_t j = 0; j < columns; ++j, from += weights.column_stride, line += table.step) {
        *line = static_cast<int8_t>(*from ^ turned);
        sums[j] = static_cast<int32_t>(static_cast<uint32_t>(sums[j]) + static_cast<uint32_t>(int32_t{*line}));
      }
    }
}

// Memory of one thread in the second stage.
struct IntegerScratch {
  const uint8_t** pointers;
  int32_t* row_zeros;
  int32_t* row_sums;
  uint8_t* outside;  // what a tap outside the input reads: zero points
  size_t bytes;

  IntegerScratch(const IntegerTable& table, const ConvolutionShape& shape, const IntegerPlan& plan, void* base) {
    Scratch scratch(base);
    pointers = scratch.take<const uint8_t*>(plan.rows_of_task * shape.taps());
    row_zeros = scratch.take<int32_t>(plan.rows_of_task);
    row_sums = scratch.take<int32_t>(plan.rows_of_task);
    outside = scratch.take<uint8_t>(4 * table.steps(shape.input_channels / shape.groups));
    bytes = scratch.used();
  }
};

// Rows are split evenly over tiles, since 4 + 3 rows keep more of the pipeline busy than 6 + 1.
struct EvenTiles {
  int64_t rows;
  int64_t count;

  EvenTiles(const IntegerTable& table, int64_t total) : rows(total), count(ceil_divide(total, table.tile_rows)) {}
  int64_t begin(int64_t tile) const { return rows * tile / count; }
  int64_t rows_of(int64_t tile) const { return begin(tile + 1) - begin(tile); }
};

class MultiplyTask {
 public:
  MultiplyTask(const IntegerTable& table, const IntegerProduct& product, const IntegerPlan& plan, const void* memory,
               const IntegerScratch& scratch, int64_t task)
      : table_(table),
        product_(product),
        shape_(product.shape),
        parts_(table, product.shape),
        packed_(parts_, product.packed),
        memory_(static_cast<const uint8_t*>(memory)),
        scratch_(scratch),
        group_(task / (plan.row_tasks * plan.column_tasks)),
        row_begin_(task / plan.column_tasks % plan.row_tasks * plan.rows_of_task),
        rows_(std::min(plan.rows_of_task, shape_.output_pixels() - row_begin_)),
        column_begin_(task % plan.column_tasks * plan.columns_of_task),
        column_end_(std::min(parts_.columns, column_begin_ + plan.columns_of_task)),
        tiles_(table, rows_) {}

  void run() {
    fill_pointers();
    if (!table_.centered || packed_.has_zeros()) find_row_terms();
    int64_t fitting = cache_sizes().l2 / 8 / (4 * rows_);
    int64_t most = round_up(std::max<int64_t>(fitting, 64), table_.tile_columns);
    int64_t group = product_.epilogue.function ? most : column_end_ - column_begin_;
    for (int64_t begin = column_begin_; begin < column_end_; begin += group) {
      int64_t end = std::min(column_end_, begin + group);
      for (int64_t column = begin; column < end; column += table_.tile_columns) multiply_panel(column);
      if (!product_.epilogue.function) continue;
      int64_t first = group_ * parts_.columns;
      int64_t ranges[] = {row_begin_, row_begin_ + rows_, first + begin, first + end};
      product_.epilogue.function(product_.epilogue.buffers, product_.epilogue.sizes, ranges);
    }
  }

 private:
  const uint8_t* pixel(int64_t index) const { return memory_ + (index * shape_.groups + group_) * parts_.steps * 4; }

  void fill_pointers() {
    const uint8_t** to = scratch_.pointers;
    int64_t taps = shape_.taps();
    for (int64_t tile = 0; tile < tiles_.count; ++tile) {
      int64_t rows = tiles_.rows_of(tile);
      for (int64_t r = 0; r < rows; ++r)
        fill_taps(
            shape_, row_begin_ + tiles_.begin(tile) + r, [&](int64_t i) { return pixel(i); }, scratch_.outside, rows,
            to + r);
      to += rows * taps;
    }
  }

  // What zero points take away from each row.
  void find_row_terms() {
    int64_t taps = shape_.taps();
    int32_t moved = product_.input.is_signed ? 128 : 0;
    const uint8_t* const* pointers = scratch_.pointers;
    for (int64_t tile = 0, row = 0; tile < tiles_.count; ++tile) {
      int64_t rows = tiles_.rows_of(tile);
      for (int64_t r = 0; r < rows; ++r, ++row) {
        int32_t zero = table_.centered ? 0 : zero_point(product_.input, row_begin_ + row) + moved;
        scratch_.row_zeros[row] = zero;
        if (!packed_.has_zeros()) continue;
        uint32_t sum = 0;
        for (int64_t tap = 0; tap < taps; ++tap)
          sum += static_cast<uint32_t>(table_.sum(pointers[tap * rows + r], parts_.channels));
        sum -= static_cast<uint32_t>(zero) * static_cast<uint32_t>(taps * parts_.channels);
        scratch_.row_sums[row] = static_cast<int32_t>(sum);
      }
      pointers += rows * taps;
    }
  }

  void multiply_panel(int64_t column) {
    int64_t panels = parts_.padded / table_.tile_columns;
    int64_t first = group_ * parts_.columns + column;
    IntegerTileArguments arguments{.rows = scratch_.pointers,
                                   .taps = shape_.taps(),
                                   .steps = parts_.steps,
                                   .b = packed_.panel(group_ * panels + column / table_.tile_columns),
                                   .c = product_.output + row_begin_ * shape_.output_channels + first,
                                   .c_stride = shape_.output_channels,
                                   .columns = std::min<int64_t>(table_.tile_columns, column_end_ - column),
                                   .row_zeros = table_.centered ? nullptr : scratch_.row_zeros,
                                   .column_sums = packed_.column_sums(group_) + column,
                                   .row_sums = packed_.has_zeros() ? scratch_.row_sums : nullptr,
                                   .column_zeros = packed_.column_zeros(group_) + column};
    for (int64_t tile = 0; tile < tiles_.count; ++tile) {
      int64_t rows = tiles_.rows_of(tile);
      table_.tiles[rows - 1](arguments);
      arguments.rows += rows * arguments.taps;
      arguments.c += rows * arguments.c_stride;
      if (arguments.row_zeros) arguments.row_zeros += rows;
      if (arguments.row_sums) arguments.row_sums += rows;
    }
  }

  const IntegerTable& table_;
  const IntegerProduct& product_;
  const ConvolutionShape& shape_;
  PackedParts parts_;
  Packed packed_;
  const uint8_t* memory_;
  const IntegerScratch& scratch_;
  int64_t group_;
  int64_t row_begin_;
  int64_t rows_;
  int64_t column_begin_;
  int64_t column_end_;
  EvenTiles tiles_;
};

// The first stage: the input's pixels, group by group, in the form that tiles read.
void center_pixels(const IntegerTable& table, const IntegerProduct& product, int64_t begin, int64_t end, void* memory) {
  const ConvolutionShape& shape = product.shape;
  int64_t channels = shape.input_channels / shape.groups;
  int64_t bytes = 4 * table.steps(channels);
  const uint8_t* from = product.input.data + begin * shape.input_channels;
  uint8_t* to = static_cast<uint8_t*>(memory) + begin * shape.groups * bytes;
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    int32_t zero = zero_point(product.input, pixel);
    for (int64_t group = 0; group < shape.groups; ++group, from += channels, to += bytes)
      table.center(from, product.input.is_signed, zero, channels, to);
  }
}

// Bytes of the input that a task of the first stage takes, about ten microseconds' worth.
constexpr int64_t bytes_of_pixel_task = 64 << 10;

}  // namespace

ConvolutionShape product_shape(int64_t m, int64_t n, int64_t k) {
  return {.input_channels = k, .output_channels = n, .input = {1, 1, m}, .output = {1, 1, m}};
}

size_t packed_integer_bytes(const IntegerTable& table, const ConvolutionShape& shape) {
  if (is_integer_depthwise(shape)) return packed_integer_depthwise_bytes(table, shape);
  return static_cast<size_t>(PackedParts(table, shape).total);
}

void pack_integer(const IntegerTable& table, const ConvolutionShape& shape, const IntegerWeights& weights,
                  std::byte* packed) {
  if (is_integer_depthwise(shape)) return pack_integer_depthwise(table, shape, weights, packed);
  PackedParts parts(table, shape);
  std::memset(packed, 0, static_cast<size_t>(parts.panels));
  auto* sums = reinterpret_cast<int32_t*>(packed + parts.column_sums);
  auto* zeros = reinterpret_cast<int32_t*>(packed + parts.column_zeros);
  auto* panels = reinterpret_cast<int8_t*>(packed + parts.panels);
  int32_t has_zeros = 0;
  for (int64_t group = 0; group < shape.groups; ++group) {
    for (int64_t column = 0; column < parts.columns; column += table.tile_columns, panels += parts.panel)
      pack_panel(table, weights, parts, shape.taps(), group * parts.columns + column,
                 std::min<int64_t>(table.tile_columns, parts.columns - column), panels,
                 sums + group * parts.padded + column);
    for (int64_t column = 0; column < parts.columns; ++column) {
      int32_t zero = zero_point(weights.bytes, group * parts.columns + column) - (weights.bytes.is_signed ? 0 : 128);
      zeros[group * parts.padded + column] = zero;
      if (zero != 0) has_zeros = 1;
    }
  }
  std::memcpy(packed, &has_zeros, sizeof has_zeros);
}

IntegerPlan plan_integer(const IntegerTable& table, const IntegerProduct& product, int threads) {
  const ConvolutionShape& shape = product.shape;
  if (is_integer_depthwise(shape)) return plan_integer_depthwise(table, product, threads);
  IntegerPlan plan{};
  int64_t columns = shape.output_channels / shape.groups;
  int64_t rows = shape.output_pixels();
  if (rows == 0 || columns == 0) return plan;
  int64_t channels = shape.input_channels / shape.groups;
  int64_t row_bytes = std::max<int64_t>(1, shape.taps() * table.steps(channels) * 4);
  // Rows of a block stay in the second-level cache while panels pass by.
  int64_t most = std::clamp<int64_t>(cache_sizes().l2 / 2 / row_bytes, 4 * table.tile_rows, 16 * table.tile_rows);
  Cut cut = cut_tasks({.rows = rows,
                       .columns = columns,
                       .row_step = round_up(ceil_divide(rows, ceil_divide(rows, most)), table.tile_rows),
                       .least_rows = table.tile_rows,
                       .column_step = table.tile_columns,
                       .products = shape.taps() * channels * shape.groups / 2,
                       .threads = threads});
  plan.rows_of_task = cut.rows;
  plan.columns_of_task = cut.columns;
  plan.row_tasks = ceil_divide(rows, cut.rows);
  plan.column_tasks = ceil_divide(columns, cut.columns);
  plan.groups = shape.groups;
  plan.pixels_of_task = std::max<int64_t>(1, bytes_of_pixel_task / std::max<int64_t>(1, shape.input_channels));
  plan.pixel_tasks = ceil_divide(input_pixels(shape), plan.pixels_of_task);
  plan.memory_bytes = static_cast<size_t>(input_pixels(shape) * shape.groups * table.steps(channels) * 4);
  plan.scratch_bytes = IntegerScratch(table, shape, plan, nullptr).bytes;
  return plan;
}

void run_integer_stage(const IntegerTable& table, const IntegerProduct& product, const IntegerPlan& plan, int64_t stage,
                       int64_t task_begin, int64_t task_end, void* memory, void* scratch) {
  if (task_begin >= task_end) return;
  const ConvolutionShape& shape = product.shape;
  if (is_integer_depthwise(shape))
    return run_integer_depthwise_stage(table, product, plan, stage, task_begin, task_end, memory, scratch);
  if (stage == 0)
    return center_pixels(table, product, task_begin * plan.pixels_of_task,
                         std::min(input_pixels(shape), task_end * plan.pixels_of_task), memory);
  IntegerScratch parts(table, shape, plan, scratch);
  int64_t channels = shape.input_channels / shape.groups;
  std::memset(parts.outside, 0, static_cast<size_t>(4 * table.steps(channels)));
  if (!table.centered) {
    int32_t zero = zero_point(product.input, 0) + (product.input.is_signed ? 128 : 0);
    std::memset(parts.outside, zero, static_cast<size_t>(channels));
  }
  for (int64_t task = task_begin; task < task_end; ++task)
    MultiplyTask(table, product, plan, memory, parts, task).run();
}

}  // namespace selkie::kernels
