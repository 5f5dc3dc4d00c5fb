// Blocks of tiles go through input transform, products and output transform while they are in cache.
#include "kernels/winograd.h"

#include <array>
#include <cstring>
#include <span>

#include "base/error.h"
#include "kernels/block.h"
#include "kernels/gemm.h"
#include "kernels/processor.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

constexpr int64_t taps = 9;
constexpr int64_t most_matrices = 64;
constexpr int64_t most_points = 81;

bool is_strided(const ConvolutionShape& shape) { return shape.stride[1] == 2; }

// What a tile is, counted along one of its sides. Weights become so many matrices. With stride 2 the last one serves
// the four points that are inputs as they are, so that its products have four times the rows: sixteen times where that
// is so in both directions.
struct TileForm {
  int64_t outputs;
  int64_t matrices_of_side;
  int64_t side;  // of the input's pixels, and of points
  bool strided;

  TileForm(const ConvolutionShape& shape, WinogradWeights weights)
      : outputs(weights == WinogradWeights::transformed_for_six ? 6 : 4),
        matrices_of_side(outputs + 2),
        side(is_strided(shape) ? 9 : outputs + 2),
        strided(is_strided(shape)) {}
  int64_t matrices() const { return matrices_of_side * matrices_of_side; }
  int64_t points() const { return side * side; }
};

// Products with one matrix.
struct Matrix {
  int64_t down;
  int64_t across;
  int64_t rows;         // of a tile
  int64_t rows_before;  // of all matrices before this one
};

class Matrices {
 public:
  explicit Matrices(const TileForm& form) : form_(form) {
    int64_t rows = 0;
    for (int64_t i = 0; i < form.matrices(); ++i) {
      Matrix& m = all_[i];
      m = {.down = i / form.matrices_of_side, .across = i % form.matrices_of_side, .rows = 0, .rows_before = rows};
      m.rows = count(m.down) * count(m.across);
      rows += m.rows;
    }
  }

  const Matrix& operator[](int64_t i) const { return all_[i]; }
  int64_t count() const { return form_.matrices(); }

  // Matrices lie a cache line more than their size apart, lest powers of two put all of them into the same cache sets.
  int64_t elements(int64_t most_tiles, int64_t channels) const {
    return form_.points() * most_tiles * channels + count() * padding;
  }
  int64_t begin(int64_t matrix, int64_t most_tiles, int64_t channels) const {
    return all_[matrix].rows_before * most_tiles * channels + matrix * padding;
  }
  // Where each point of a block's first tile is.
  void find_points(int64_t most_tiles, int64_t tiles, int64_t channels, int64_t* points) const {
    for (int64_t down = 0; down < form_.side; ++down) {
      for (int64_t across = 0; across < form_.side; ++across) {
        int64_t matrix = matrix_of(down) * form_.matrices_of_side + matrix_of(across);
        int64_t row = (down - matrix_of(down)) * count(matrix_of(across)) + across - matrix_of(across);
        *points++ = begin(matrix, most_tiles, channels) + row * tiles * channels;
      }
    }
  }

 private:
  static constexpr int64_t padding = 16;
  int64_t matrix_of(int64_t point) const { return std::min(point, form_.matrices_of_side - 1); }
  int64_t count(int64_t of_side) const {
    return form_.strided && of_side == form_.matrices_of_side - 1 ? form_.outputs : 1;
  }

  TileForm form_;
  Matrix all_[most_matrices];
};

struct Tiling {
  int64_t down;
  int64_t across;
  int64_t total;

  Tiling(const ConvolutionShape& shape, const TileForm& form)
      : down(ceil_divide(shape.output[1], form.outputs)),
        across(ceil_divide(shape.output[2], form.outputs)),
        total(shape.batch * down * across) {}
};

// Output channels whose products are made at one time.
struct ChannelGroup {
  int64_t begin;  // a multiple of the width of a panel of weights
  int64_t count;
  int64_t stride;  // floats of a row of products
};

// Input channels whose weights are transformed at one time, if they were not before: the second-level cache holds them
// beside the rest.
constexpr int64_t channels_of_part = 64;
// So few tiles are multiplied by weights as they are transformed, which are then not stored.
constexpr int64_t most_few_tiles = 8;
// Of their input channels, so that weights are in cache while they are read once per row of points.
constexpr int64_t channels_of_few = 128;
int64_t part_stride(const KernelTable& table) { return channels_of_part * table.tile_columns + 16; }

struct WinogradScratch {
  float* zeros;
  float* inputs;    // [matrices][rows][tiles][input channels]
  float* products;  // [matrices][rows][tiles][output channels of a group]
  float* weights;   // [matrices][input channels of a part][columns of a panel]
  size_t bytes;

  WinogradScratch(const KernelTable& table, const ConvolutionShape& shape, const WinogradPlan& plan, void* base) {
    Scratch scratch(base);
    Matrices all(TileForm(shape, plan.weights));
    zeros = scratch.take<float>(shape.input_channels);
    inputs = scratch.take<float>(all.elements(plan.tiles_of_task, shape.input_channels));
    products = scratch.take<float>(all.elements(plan.tiles_of_task, plan.channels_of_group));
    weights = scratch.take<float>(plan.weights == WinogradWeights::packed ? all.count() * part_stride(table) : 0);
    bytes = scratch.used();
  }
};

struct TilePlace {
  int64_t image;
  int64_t line;   // of the first output pixel
  int64_t pixel;  // in that line

  TilePlace(const Tiling& tiling, int64_t outputs, int64_t tile)
      : image(tile / (tiling.down * tiling.across)),
        line(tile / tiling.across % tiling.down * outputs),
        pixel(tile % tiling.across * outputs) {}
};

class TileBlock {
 public:
  TileBlock(const KernelTable& table, const Convolution& convolution, const WinogradPlan& plan,
            const WinogradScratch& scratch, int64_t first_tile)
      : table_(table),
        convolution_(convolution),
        shape_(convolution.shape),
        scratch_(scratch),
        form_(convolution.shape, plan.weights),
        tiling_(convolution.shape, form_),
        begin_(first_tile),
        tiles_(std::min(plan.tiles_of_task, tiling_.total - begin_)),
        most_tiles_(plan.tiles_of_task),
        matrices_(form_) {}

  void transform_inputs() const {
    const float* pixels[most_points];
    int64_t points[most_points];
    matrices_.find_points(most_tiles_, tiles_, shape_.input_channels, points);
    auto transform = form_.strided        ? table_.strided_winograd_input
                     : form_.outputs == 6 ? table_.wide_winograd_input
                                          : table_.winograd_input;
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      find_pixels(place_of(tile), pixels);
      transform({.pixels = pixels,
                 .channels = shape_.input_channels,
                 .to = scratch_.inputs + tile * shape_.input_channels,
                 .points = points,
                 .next = form_.outputs * shape_.stride[2] * convolution_.input_pixel_stride,
                 .next_columns = form_.outputs * shape_.stride[2]});
    }
  }

  // By weights that were transformed before.
  void multiply(const ChannelGroup& group) const {
    int64_t depth = shape_.input_channels;
    auto weights = static_cast<int64_t>(packed_b_elements(table_, depth, shape_.output_channels));
    for (int64_t i = 0; i < matrices_.count(); ++i) {
      const float* panels = convolution_.packed_weights + group.begin * depth;
      multiply_matrix(i, group,
                      {.weights = panels + i * weights,
                       .after = panels + (i + 1) % matrices_.count() * weights,
                       .first_channel = 0,
                       .channels = depth});
    }
  }

  // By weights that are transformed now. The group is one panel.
  void transform_and_multiply(const ChannelGroup& group) const {
    if (!form_.strided && tiles_ <= most_few_tiles) return multiply_few(group);
    int64_t depth = shape_.input_channels;
    int64_t width = table_.tile_columns;
    auto transform = form_.strided ? table_.strided_winograd_weights : table_.winograd_weights;
    for (int64_t channel = 0; channel < depth; channel += channels_of_part) {
      int64_t channels = std::min(channels_of_part, depth - channel);
      transform({.weights = convolution_.packed_weights + group.begin * taps * depth + channel * width,
                 .tap_stride = depth * width,
                 .count = channels * width,
                 .to = scratch_.weights,
                 .matrix_stride = part_stride(table_)});
      for (int64_t i = 0; i < matrices_.count(); ++i)
        multiply_matrix(i, group,
                        {.weights = scratch_.weights + i * part_stride(table_),
                         .after = scratch_.weights + (i + 1) % matrices_.count() * part_stride(table_),
                         .first_channel = channel,
                         .channels = channels});
    }
  }

  void transform_outputs(const ChannelGroup& group) const {
    int64_t points[most_points];
    matrices_.find_points(most_tiles_, tiles_, group.stride, points);
    auto transform = form_.strided        ? table_.strided_winograd_output
                     : form_.outputs == 6 ? table_.wide_winograd_output
                                          : table_.winograd_output;
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      TilePlace place = place_of(tile);
      int64_t first = pixel_index(place) * convolution_.output_pixel_stride + group.begin;
      const Finish& finish = convolution_.finish;
      transform({.from = scratch_.products + tile * group.stride,
                 .points = points,
                 .channels = group.count,
                 .bias = convolution_.bias ? convolution_.bias + group.begin : nullptr,
                 .addend = finish.addend ? finish.addend + first : nullptr,
                 .clamps = finish.clamps(),
                 .low = finish.low,
                 .high = finish.high,
                 .output = convolution_.output + first,
                 .line_stride = shape_.output[2] * convolution_.output_pixel_stride,
                 .pixel_stride = convolution_.output_pixel_stride,
                 .rows = std::min(form_.outputs, shape_.output[1] - place.line),
                 .columns = std::min(form_.outputs, shape_.output[2] - place.pixel)});
    }
  }

  // Lines of pixels that the block's tiles cover, one call each.
  void call_epilogue(const ChannelGroup& group) const {
    const Epilogue& epilogue = convolution_.epilogue;
    if (!epilogue.function) return;
    for (int64_t tile = 0; tile < tiles_;) {
      TilePlace place = place_of(tile);
      int64_t run = std::min(tiles_ - tile, tiling_.across - (begin_ + tile) % tiling_.across);
      int64_t width = std::min(run * form_.outputs, shape_.output[2] - place.pixel);
      int64_t lines = std::min(form_.outputs, shape_.output[1] - place.line);
      for (int64_t line = 0; line < lines; ++line) {
        int64_t first = pixel_index(place) + line * shape_.output[2];
        int64_t ranges[] = {first, first + width, group.begin, group.begin + group.count};
        epilogue.function(epilogue.buffers, epilogue.sizes, ranges);
      }
      tile += run;
    }
  }

 private:
  // Panels of one matrix of weights, for some input channels.
  struct MatrixPart {
    const float* weights;
    const float* after;  // what is read next
    int64_t first_channel;
    int64_t channels;
  };

  void multiply_few(const ChannelGroup& group) const {
    int64_t depth = shape_.input_channels;
    int64_t points[most_points];
    int64_t product_points[most_points];
    matrices_.find_points(most_tiles_, tiles_, depth, points);
    matrices_.find_points(most_tiles_, tiles_, group.stride, product_points);
    int64_t width = table_.tile_columns;
    const float* panel = convolution_.packed_weights + group.begin * taps * depth;
    const float* next_panel =
        group.begin + group.count == shape_.output_channels ? panel : panel + taps * depth * width;
    for (int64_t channel = 0; channel < depth; channel += channels_of_few) {
      int64_t channels = std::min(channels_of_few, depth - channel);
      const float* weights = panel + channel * width;
      // The next part is fetched if it is as long.
      bool last = channel + channels == depth;
      const float* after = !last ? weights + channels * width : channels == channels_of_few ? next_panel : weights;
      for (int64_t column = 0; column < group.count; column += table_.lanes)
        table_.winograd_few({.weights = weights + column,
                             .tap_stride = depth * width,
                             .channel_stride = width,
                             .after = after + column,
                             .channels = channels,
                             .accumulate = channel > 0,
                             .inputs = scratch_.inputs + channel,
                             .points = points,
                             .tiles = tiles_,
                             .input_stride = depth,
                             .products = scratch_.products + column,
                             .product_points = product_points,
                             .product_stride = group.stride});
    }
  }

  void multiply_matrix(int64_t i, const ChannelGroup& group, const MatrixPart& part) const {
    int64_t depth = shape_.input_channels;
    int64_t rows = matrices_[i].rows * tiles_;
    int64_t step = rows_of_block(table_, rows, part.channels);
    const float* a = scratch_.inputs + matrices_.begin(i, most_tiles_, depth) + part.first_channel;
    float* c = scratch_.products + matrices_.begin(i, most_tiles_, group.stride);
    for (int64_t row = 0; row < rows; row += step)
      multiply_block(table_, {.rows = std::min(step, rows - row),
                              .a = a + row * depth,
                              .a_stride = depth,
                              .depth = part.channels,
                              .b = {.base = part.weights,
                                    .panel_stride = part.channels * table_.tile_columns,
                                    .depth_stride = table_.tile_columns,
                                    .after = row + step < rows ? nullptr : part.after},
                              .c = c + row * group.stride,
                              .c_stride = group.stride,
                              .column_begin = 0,
                              .column_end = group.count,
                              .accumulate = part.first_channel > 0});
  }

  TilePlace place_of(int64_t tile) const { return {tiling_, form_.outputs, begin_ + tile}; }

  int64_t pixel_index(const TilePlace& place) const {
    return (place.image * shape_.output[1] + place.line) * shape_.output[2] + place.pixel;
  }

  void find_pixels(const TilePlace& place, const float* (&pixels)[most_points]) const {
    const float* image =
        convolution_.input + place.image * shape_.input[1] * shape_.input[2] * convolution_.input_pixel_stride;
    int64_t side = form_.side;
    for (int64_t row = 0; row < side; ++row) {
      int64_t line = place.line * shape_.stride[1] - shape_.pad[1] + row;
      bool inside = line >= 0 && line < shape_.input[1];
      for (int64_t column = 0; column < side; ++column) {
        int64_t pixel = place.pixel * shape_.stride[2] - shape_.pad[2] + column;
        pixels[row * side + column] = inside && pixel >= 0 && pixel < shape_.input[2]
                                          ? image + (line * shape_.input[2] + pixel) * convolution_.input_pixel_stride
                                          : scratch_.zeros;
      }
    }
  }

  const KernelTable& table_;
  const Convolution& convolution_;
  const ConvolutionShape& shape_;
  const WinogradScratch& scratch_;
  TileForm form_;
  Tiling tiling_;
  int64_t begin_;
  int64_t tiles_;
  int64_t most_tiles_;
  Matrices matrices_;
};

// Tiles of one block: its points should stay in the second-level cache, but below a few register tiles of rows the
// weights are read too often.
int64_t tiles_of_block(const KernelTable& table, const ConvolutionShape& shape, const TileForm& form) {
  int64_t bytes_of_tile = form.points() * 4 * (shape.input_channels + shape.output_channels);
  // With stride 2 most products have more rows than there are tiles.
  int64_t least = (form.strided ? 2 : 4) * table.tile_rows;
  int64_t most = std::clamp<int64_t>(cache_sizes().l2 / bytes_of_tile, least, 16 * table.tile_rows);
  int64_t total = Tiling(shape, form).total;
  // A few tiles more in each block are better than a block of few.
  int64_t blocks = std::max<int64_t>(1, (total + most / 2) / most);
  return std::min(total, round_up(ceil_divide(total, blocks), table.tile_rows));
}

// G, by which a column of a 3x3 filter is multiplied.
using Column = std::array<double, 3>;
std::span<const Column> filter_matrix(const TileForm& form) {
  static constexpr Column of_four[] = {{0.25, 0, 0},
                                       {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                       {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                       {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                       {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                       {0, 0, 1}};
  static constexpr Column of_six[] = {{1, 0, 0},
                                      {-2.0 / 9, -2.0 / 9, -2.0 / 9},
                                      {-2.0 / 9, 2.0 / 9, -2.0 / 9},
                                      {1.0 / 90, 1.0 / 45, 2.0 / 45},
                                      {1.0 / 90, -1.0 / 45, 2.0 / 45},
                                      {32.0 / 45, 16.0 / 45, 8.0 / 45},
                                      {32.0 / 45, -16.0 / 45, 8.0 / 45},
                                      {0, 0, 1}};
  static constexpr Column strided[] = {{0.5, 0, 0},           {-0.5, 0, -0.5}, {-1.0 / 6, 0, 1.0 / 6},
                                       {1.0 / 6, 0, 1.0 / 3}, {0, 0, 1},       {0, 1, 0}};
  if (form.strided) return strided;
  if (form.outputs == 6) return of_six;
  return of_four;
}

double times(const Column& a, double x, double y, double z) { return a[0] * x + a[1] * y + a[2] * z; }

// G filter G^T, row by row.
void transform_filter(const TileForm& form, const float* filter, double* u) {
  for (const Column& down : filter_matrix(form)) {
    Column half;
    for (size_t i = 0; i < 3; ++i) half[i] = times(down, filter[i], filter[3 + i], filter[6 + i]);
    for (const Column& across : filter_matrix(form)) *u++ = times(across, half[0], half[1], half[2]);
  }
}

}  // namespace

bool winograd_applies(const KernelTable& table, const ConvolutionShape& shape) {
  using Sizes = std::array<int64_t, 3>;
  bool stride = shape.stride[1] == shape.stride[2] && (shape.stride[1] == 1 || shape.stride[1] == 2);
  return shape.groups == 1 && shape.kernel == Sizes{1, 3, 3} && stride && shape.dilation == Sizes{1, 1, 1} &&
         shape.input[0] == 1 && shape.output[0] == 1 && shape.pad[0] == 0 && shape.input_channels >= table.lanes &&
         shape.output_channels >= table.lanes;
}

namespace {

constexpr double floats_of_cycle = 4;  // from beyond the second-level cache

// Cycles of a core with two multiply-add units. Very many weights come at one float a cycle. Little of the reading is
// hidden behind products.
double cycles(const KernelTable& table, double products, double weights, double passes) {
  constexpr double memory_weights = 4e6;
  double reading = weights / (weights > memory_weights ? 1 : floats_of_cycle) * passes;
  return products / (2 * static_cast<double>(table.lanes)) + reading;
}

double direct_cycles(const KernelTable& table, const ConvolutionShape& shape) {
  auto weights = static_cast<double>(taps * shape.input_channels * shape.output_channels);
  return cycles(table, static_cast<double>(shape.output_pixels()) * weights, weights, 1);
}

// Cycles of the transforms, of one tile or weight and one vector.
struct TransformCycles {
  double input, output;
  double weights;      // that are stored
  double few_weights;  // that are multiplied at once
};

// Counted where vectors of 512 bits are made of halves, and fitted to `kernels_bench winograd` where two of them are
// multiplied in a cycle: loads, stores and shuffles do not keep up with that.
TransformCycles transform_cycles(const KernelTable& table, const TileForm& form) {
  constexpr int wide_lanes = 16;
  bool is_wide = table.lanes == wide_lanes && has_two_wide_units();
  double scale = is_wide ? 2 : 1;
  if (form.strided)
    return {.input = 520 * scale, .output = 380 * scale, .weights = is_wide ? 450.0 : 110.0, .few_weights = 0};
  bool is_six = form.outputs == 6;
  return {.input = (is_six ? 270 : 130) * scale,
          .output = (is_six ? 210 : 110) * scale,
          .weights = 110 * scale,
          .few_weights = 70 * scale};
}

// Measured on the layers of ResNet-50 and YOLOX-S, the ratio to the direct kernel is mostly within a tenth of what this
// gives; weights of many channels come faster than this has it where the last cache is large.
double winograd_cycles(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights_form) {
  TileForm form(shape, weights_form);
  TransformCycles each = transform_cycles(table, form);
  auto lanes = static_cast<double>(table.lanes);
  auto channels = static_cast<double>(shape.input_channels);
  auto filters = static_cast<double>(shape.output_channels);
  Tiling tiling(shape, form);
  auto tiles = static_cast<double>(tiling.total);
  double weights = channels * filters;
  int64_t tiles_at_once = std::max<int64_t>(1, tiles_of_block(table, shape, form));
  auto blocks = static_cast<double>(ceil_divide(tiling.total, tiles_at_once));
  auto points = static_cast<double>(form.points());
  double transforms = tiles * (channels * each.input + filters * each.output) / lanes;
  if (weights_form != WinogradWeights::packed)
    return transforms + cycles(table, tiles * points * weights, static_cast<double>(form.matrices()) * weights, blocks);
  // The points are read once for every panel of weights.
  if (is_beyond_cache(form.points() * std::min(tiles_at_once, tiling.total) * shape.input_channels))
    transforms += tiles * points * channels * filters / table.tile_columns / floats_of_cycle;
  bool few = !form.strided && tiling.total <= most_few_tiles;
  auto passes = static_cast<double>(ceil_divide(3 * tiling.total, table.tile_rows));
  transforms += weights / lanes * (few ? passes * each.few_weights : blocks * each.weights);
  return transforms + cycles(table, tiles * points * weights, taps * weights, blocks);
}

}  // namespace

double winograd_time(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights) {
  return winograd_cycles(table, shape, weights) / direct_cycles(table, shape);
}

bool winograd_wins(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights) {
  return winograd_applies(table, shape) && winograd_cycles(table, shape, weights) < 0.9 * direct_cycles(table, shape);
}

double winograd_saving(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights kept) {
  double without = std::min(direct_cycles(table, shape), winograd_cycles(table, shape, WinogradWeights::packed));
  return std::max(without - winograd_cycles(table, shape, kept), 0.0);
}

bool wide_winograd_wins(const KernelTable& table, const ConvolutionShape& shape) {
  return winograd_applies(table, shape) && !is_strided(shape) &&
         winograd_cycles(table, shape, WinogradWeights::transformed_for_six) <
             0.95 * winograd_cycles(table, shape, WinogradWeights::transformed);
}

size_t winograd_weight_elements(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights form) {
  return static_cast<size_t>(TileForm(shape, form).matrices()) *
         packed_b_elements(table, shape.input_channels, shape.output_channels);
}

void winograd_transform_weights(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights_form,
                                const float* weights, float* transformed) {
  TileForm form(shape, weights_form);
  size_t elements = packed_b_elements(table, shape.input_channels, shape.output_channels);
  std::memset(transformed, 0, static_cast<size_t>(form.matrices()) * elements * sizeof(float));
  int64_t width = table.tile_columns;
  for (int64_t filter = 0; filter < shape.output_channels; ++filter) {
    for (int64_t channel = 0; channel < shape.input_channels; ++channel) {
      double u[most_matrices];
      transform_filter(form, weights + (filter * shape.input_channels + channel) * taps, u);
      float* to = transformed + (filter / width * shape.input_channels + channel) * width + filter % width;
      for (int64_t i = 0; i < form.matrices(); ++i, to += elements) *to = static_cast<float>(u[i]);
    }
  }
}

WinogradPlan plan_winograd(const KernelTable& table, const Convolution& convolution, WinogradWeights weights,
                           int threads) {
  const ConvolutionShape& shape = convolution.shape;
  CHECK(winograd_applies(table, shape), "a convolution that Winograd's kernel cannot do");
  WinogradPlan plan{.weights = weights};
  TileForm form(shape, weights);
  int64_t tiles = Tiling(shape, form).total;
  if (tiles == 0) return plan;
  bool transforms = weights == WinogradWeights::packed;
  // Threads that transform weights share the channels, lest each transforms all of them.
  Cut cut = cut_tasks({.rows = tiles,
                       .columns = shape.output_channels,
                       .row_step = tiles_of_block(table, shape, form),
                       .least_rows = table.tile_rows,
                       .column_step = transforms ? table.tile_columns : shape.output_channels,
                       .products = form.points() * shape.input_channels,
                       .threads = threads});
  plan.tiles_of_task = cut.rows;
  plan.channels_of_task = cut.columns;
  plan.channels_of_group = transforms ? table.tile_columns : shape.output_channels;
  plan.column_tasks = ceil_divide(shape.output_channels, cut.columns);
  plan.tasks = ceil_divide(tiles, cut.rows) * plan.column_tasks;
  plan.scratch_bytes = WinogradScratch(table, shape, plan, nullptr).bytes;
  return plan;
}

void run_winograd(const KernelTable& table, const Convolution& convolution, const WinogradPlan& plan,
                  int64_t task_begin, int64_t task_end, void* scratch) {
  if (task_begin >= task_end) return;
  WinogradScratch parts(table, convolution.shape, plan, scratch);
  std::memset(parts.zeros, 0, static_cast<size_t>(convolution.shape.input_channels) * sizeof(float));
  for (int64_t task = task_begin; task < task_end; ++task) {
    TileBlock block(table, convolution, plan, parts, task / plan.column_tasks * plan.tiles_of_task);
    // The task before may have had the same tiles.
    if (task == task_begin || task % plan.column_tasks == 0) block.transform_inputs();
    int64_t begin = task % plan.column_tasks * plan.channels_of_task;
    int64_t end = std::min(convolution.shape.output_channels, begin + plan.channels_of_task);
    for (; begin < end; begin += plan.channels_of_group) {
      ChannelGroup group{
          .begin = begin, .count = std::min(plan.channels_of_group, end - begin), .stride = plan.channels_of_group};
      plan.weights == WinogradWeights::packed ? block.transform_and_multiply(group) : block.multiply(group);
      block.transform_outputs(group);
      block.call_epilogue(group);
    }
  }
}

}  // namespace selkie::kernels
