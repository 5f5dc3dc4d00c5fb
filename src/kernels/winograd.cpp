// Blocks of tiles go through input transform, products and output transform while they are in cache.
#include "kernels/winograd.h"

#include <array>
#include <cstring>
#include <optional>
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
      : outputs(is_for_six(weights) ? 6 : 4),
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

// Input channels whose weights are transformed at one time, if they were not before. Fewer would stay in the
// second-level cache, but every part costs one more pass over the products.
constexpr int64_t channels_of_part = 256;
// So few tiles are multiplied by weights as they are transformed, which are then not stored.
constexpr int64_t most_few_tiles = 8;
// Of their input channels, so that weights are in cache while they are read once per row of points.
constexpr int64_t channels_of_few = 128;
bool takes_few(const TileForm& form, int64_t tiles) {
  return !form.strided && form.outputs == 4 && tiles <= most_few_tiles;
}
auto weights_function(const KernelTable& table, const TileForm& form) {
  return form.strided        ? table.strided_winograd_weights
         : form.outputs == 6 ? table.wide_winograd_weights
                             : table.winograd_weights;
}
int64_t part_stride(const KernelTable& table, const ConvolutionShape& shape) {
  return std::min(channels_of_part, shape.input_channels) * table.tile_columns + 16;
}
// Whether each task transforms what it needs, part by part.
bool transforms_parts(const WinogradPlan& plan) { return is_packed(plan.weights) && plan.weight_tasks == 0; }

// Transformed weights: panels of one matrix after the other.
struct TransformedWeights {
  const float* base;
  int64_t matrix_stride;
};
// Not a power of two, lest all matrices of a filter are in the same sets of the cache while they are written.
int64_t matrix_stride(const KernelTable& table, const ConvolutionShape& shape) {
  return static_cast<int64_t>(packed_b_elements(table, shape.input_channels, shape.output_channels)) + 16;
}

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
    bool stores_weights = transforms_parts(plan) && !takes_few(TileForm(shape, plan.weights), plan.tiles_of_task);
    weights = scratch.take<float>(stores_weights ? all.count() * part_stride(table, shape) : 0);
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
            const WinogradScratch& scratch, const TransformedWeights& weights, int64_t first_tile)
      : table_(table),
        convolution_(convolution),
        shape_(convolution.shape),
        scratch_(scratch),
        weights_(weights),
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
  void multiply(const ChannelGroup& group) {
    int64_t depth = shape_.input_channels;
    const float* panels = weights_.base + group.begin * depth;
    for (int64_t i = 0; i < matrices_.count(); ++i)
      multiply_matrix(i, group,
                      {.weights = panels + i * weights_.matrix_stride,
                       .after = panels + (i + 1) % matrices_.count() * weights_.matrix_stride,
                       .first_channel = 0,
                       .channels = depth});
  }

  // By weights that are transformed now. The group is one panel.
  void transform_and_multiply(const ChannelGroup& group) {
    if (takes_few(form_, tiles_)) return multiply_few(group);
    int64_t depth = shape_.input_channels;
    int64_t width = table_.tile_columns;
    int64_t stride = part_stride(table_, shape_);
    auto transform = weights_function(table_, form_);
    for (int64_t channel = 0; channel < depth; channel += channels_of_part) {
      int64_t channels = std::min(channels_of_part, depth - channel);
      transform({.weights = convolution_.packed_weights + group.begin * taps * depth + channel * width,
                 .tap_stride = depth * width,
                 .count = channels * width,
                 .to = scratch_.weights,
                 .matrix_stride = stride});
      for (int64_t i = 0; i < matrices_.count(); ++i)
        multiply_matrix(i, group,
                        {.weights = scratch_.weights + i * stride,
                         .after = scratch_.weights + (i + 1) % matrices_.count() * stride,
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

  // Blocks of a matrix's rows, all of one size but the last.
  struct MatrixCut {
    int64_t rows;
    int64_t channels;
    int64_t step;
    BlockCut whole;
    BlockCut rest;

    MatrixCut(const KernelTable& table, int64_t all_rows, int64_t all_channels)
        : rows(all_rows),
          channels(all_channels),
          step(rows_of_block(table, rows, channels)),
          whole(table, std::min(step, rows), 1, channels),
          rest(rows % step == 0 ? whole : BlockCut(table, rows % step, 1, channels)) {}
  };

  void multiply_matrix(int64_t i, const ChannelGroup& group, const MatrixPart& part) {
    int64_t depth = shape_.input_channels;
    int64_t rows = matrices_[i].rows * tiles_;
    if (!cut_ || cut_->rows != rows || cut_->channels != part.channels) cut_.emplace(table_, rows, part.channels);
    int64_t step = cut_->step;
    const float* a = scratch_.inputs + matrices_.begin(i, most_tiles_, depth) + part.first_channel;
    float* c = scratch_.products + matrices_.begin(i, most_tiles_, group.stride);
    for (int64_t row = 0; row < rows; row += step)
      multiply_block(table_, rows - row < step ? cut_->rest : cut_->whole,
                     {.rows = std::min(step, rows - row),
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
    int64_t first_line = place.line * shape_.stride[1] - shape_.pad[1];
    int64_t first_pixel = place.pixel * shape_.stride[2] - shape_.pad[2];
    int64_t stride = convolution_.input_pixel_stride;
    bool inside = first_line >= 0 && first_line + side <= shape_.input[1] && first_pixel >= 0 &&
                  first_pixel + side <= shape_.input[2];
    for (int64_t row = 0; row < side; ++row) {
      int64_t line = first_line + row;
      bool line_inside = line >= 0 && line < shape_.input[1];
      const float* at = image + (line * shape_.input[2] + first_pixel) * stride;
      const float** to = pixels + row * side;
      if (inside) {
        for (int64_t column = 0; column < side; ++column) to[column] = at + column * stride;
        continue;
      }
      for (int64_t column = 0; column < side; ++column) {
        int64_t pixel = first_pixel + column;
        to[column] = line_inside && pixel >= 0 && pixel < shape_.input[2] ? at + column * stride : scratch_.zeros;
      }
    }
  }

  const KernelTable& table_;
  const Convolution& convolution_;
  const ConvolutionShape& shape_;
  const WinogradScratch& scratch_;
  TransformedWeights weights_;
  TileForm form_;
  Tiling tiling_;
  int64_t begin_;
  int64_t tiles_;
  int64_t most_tiles_;
  Matrices matrices_;
  std::optional<MatrixCut> cut_;  // of the last matrix: the next one is alike, mostly
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

size_t transformed_bytes(const KernelTable& table, const ConvolutionShape& shape, const TileForm& form) {
  return static_cast<size_t>(form.matrices() * matrix_stride(table, shape)) * sizeof(float);
}

// Whether packed weights are transformed at once for all blocks of tiles, or for each block part by part, which takes
// little memory.
bool transforms_first(const KernelTable& table, const ConvolutionShape& shape, const TileForm& form) {
  constexpr size_t most_bytes = size_t{5} << 20;
  return !takes_few(form, Tiling(shape, form).total) && transformed_bytes(table, shape, form) <= most_bytes;
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

// Cycles of the transforms, of one tile or weight and one vector.
struct TransformCycles {
  double input, output;
  double weights;          // that are stored
  double few_weights = 0;  // that are multiplied at once
};

// What a processor takes for all that is no product, and the floats that come in a cycle.
struct Costs {
  TransformCycles four, six, strided;
  double cache_floats;   // from beyond the second-level cache
  double memory_floats;  // of very many weights
};

// Counted where vectors of 512 bits are made of halves, and fitted to `kernels_bench winograd` where two of them are
// multiplied in a cycle: loads, stores and shuffles do not keep up with that.
const Costs& costs(const KernelTable& table) {
  static constexpr Costs of_halves{.four = {.input = 130, .output = 110, .weights = 110, .few_weights = 70},
                                   .six = {.input = 270, .output = 210, .weights = 200},
                                   .strided = {.input = 520, .output = 380, .weights = 110},
                                   .cache_floats = 4,
                                   .memory_floats = 1};
  static constexpr Costs of_zen5{.four = {.input = 240, .output = 190, .weights = 120, .few_weights = 70},
                                 .six = {.input = 540, .output = 420, .weights = 180},
                                 .strided = {.input = 500, .output = 360, .weights = 130},
                                 .cache_floats = 8,
                                 .memory_floats = 2};
  static constexpr Costs of_intel{.four = {.input = 260, .output = 220, .weights = 220, .few_weights = 140},
                                  .six = {.input = 540, .output = 420, .weights = 400},
                                  .strided = {.input = 1040, .output = 760, .weights = 450},
                                  .cache_floats = 4,
                                  .memory_floats = 1};
  constexpr int wide_lanes = 16;
  WideUnits units = table.lanes == wide_lanes ? wide_units() : WideUnits::fewer;
  return units == WideUnits::zen5 ? of_zen5 : units == WideUnits::intel ? of_intel : of_halves;
}

const TransformCycles& transform_cycles(const KernelTable& table, const TileForm& form) {
  const Costs& all = costs(table);
  return form.strided ? all.strided : form.outputs == 6 ? all.six : all.four;
}

// Cycles of a core with two multiply-add units. Little of the reading is hidden behind products.
double cycles(const KernelTable& table, double products, double weights, double passes) {
  constexpr double memory_weights = 4e6;
  double reading =
      weights / (weights > memory_weights ? costs(table).memory_floats : costs(table).cache_floats) * passes;
  return products / (2 * static_cast<double>(table.lanes)) + reading;
}

double direct_cycles(const KernelTable& table, const ConvolutionShape& shape) {
  auto weights = static_cast<double>(taps * shape.input_channels * shape.output_channels);
  return cycles(table, static_cast<double>(shape.output_pixels()) * weights, weights, 1);
}

// Measured on the layers of ResNet-50 and YOLOX-S, the ratio to the direct kernel is mostly within a tenth of what this
// gives; weights of many channels come faster than this has it where the last cache is large.
double winograd_cycles(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights_form) {
  TileForm form(shape, weights_form);
  const TransformCycles& each = transform_cycles(table, form);
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
  if (!is_packed(weights_form))
    return transforms + cycles(table, tiles * points * weights, static_cast<double>(form.matrices()) * weights, blocks);
  if (transforms_first(table, shape, form))
    return transforms + weights / lanes * each.weights +
           cycles(table, tiles * points * weights, static_cast<double>(form.matrices()) * weights, blocks);
  // The points are read once for every panel of weights.
  if (is_beyond_cache(form.points() * std::min(tiles_at_once, tiling.total) * shape.input_channels))
    transforms += tiles * points * channels * filters / table.tile_columns / costs(table).cache_floats;
  bool few = takes_few(form, tiling.total);
  auto passes = static_cast<double>(ceil_divide(3 * tiling.total, table.tile_rows));
  transforms += weights / lanes * (few ? passes * each.few_weights : blocks * each.weights);
  return transforms + cycles(table, tiles * points * weights, taps * weights, blocks);
}

}  // namespace

double winograd_time(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights) {
  return winograd_cycles(table, shape, weights) / direct_cycles(table, shape);
}

bool winograd_wins(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights weights) {
  return winograd_applies(table, shape) && !(is_for_six(weights) && is_strided(shape)) &&
         winograd_cycles(table, shape, weights) < 0.9 * direct_cycles(table, shape);
}

double winograd_saving(const KernelTable& table, const ConvolutionShape& shape, WinogradWeights kept) {
  double without = std::min(direct_cycles(table, shape), winograd_cycles(table, shape, WinogradWeights::packed));
  if (!is_strided(shape)) without = std::min(without, winograd_cycles(table, shape, WinogradWeights::packed_for_six));
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
      double u[most_matrices] = {};
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
  bool first = is_packed(weights) && transforms_first(table, shape, form);
  bool by_parts = is_packed(weights) && !first;
  // Threads that transform weights share the channels, lest each transforms all of them.
  Cut cut = cut_tasks({.rows = tiles,
                       .columns = shape.output_channels,
                       .row_step = tiles_of_block(table, shape, form),
                       .least_rows = table.tile_rows,
                       .column_step = by_parts ? table.tile_columns : shape.output_channels,
                       .products = form.points() * shape.input_channels,
                       .threads = threads});
  plan.tiles_of_task = cut.rows;
  plan.channels_of_task = cut.columns;
  plan.channels_of_group = by_parts ? table.tile_columns : shape.output_channels;
  plan.column_tasks = ceil_divide(shape.output_channels, cut.columns);
  plan.tasks = ceil_divide(tiles, cut.rows) * plan.column_tasks;
  plan.weight_tasks = first ? ceil_divide(shape.output_channels, table.tile_columns) : 0;
  plan.memory_bytes = first ? transformed_bytes(table, shape, form) : 0;
  plan.scratch_bytes = WinogradScratch(table, shape, plan, nullptr).bytes;
  return plan;
}

void run_winograd_weights(const KernelTable& table, const Convolution& convolution, const WinogradPlan& plan,
                          int64_t task_begin, int64_t task_end, void* memory) {
  const ConvolutionShape& shape = convolution.shape;
  auto transform = weights_function(table, TileForm(shape, plan.weights));
  int64_t panel = shape.input_channels * table.tile_columns;
  for (int64_t task = task_begin; task < task_end; ++task)
    transform({.weights = convolution.packed_weights + task * taps * panel,
               .tap_stride = panel,
               .count = panel,
               .to = static_cast<float*>(memory) + task * panel,
               .matrix_stride = matrix_stride(table, shape)});
}

void run_winograd(const KernelTable& table, const Convolution& convolution, const WinogradPlan& plan,
                  int64_t task_begin, int64_t task_end, const void* memory, void* scratch) {
  if (task_begin >= task_end) return;
  const ConvolutionShape& shape = convolution.shape;
  WinogradScratch parts(table, shape, plan, scratch);
  std::memset(parts.zeros, 0, static_cast<size_t>(shape.input_channels) * sizeof(float));
  TransformedWeights weights{
      .base = convolution.packed_weights,
      .matrix_stride = static_cast<int64_t>(packed_b_elements(table, shape.input_channels, shape.output_channels))};
  if (plan.weight_tasks > 0)
    weights = {.base = static_cast<const float*>(memory), .matrix_stride = matrix_stride(table, shape)};
  for (int64_t task = task_begin; task < task_end; ++task) {
    TileBlock block(table, convolution, plan, parts, weights, task / plan.column_tasks * plan.tiles_of_task);
    // The task before may have had the same tiles.
    if (task == task_begin || task % plan.column_tasks == 0) block.transform_inputs();
    int64_t begin = task % plan.column_tasks * plan.channels_of_task;
    int64_t end = std::min(shape.output_channels, begin + plan.channels_of_task);
    for (; begin < end; begin += plan.channels_of_group) {
      ChannelGroup group{
          .begin = begin, .count = std::min(plan.channels_of_group, end - begin), .stride = plan.channels_of_group};
      transforms_parts(plan) ? block.transform_and_multiply(group) : block.multiply(group);
      block.transform_outputs(group);
      block.call_epilogue(group);
    }
  }
}

}  // namespace selkie::kernels
