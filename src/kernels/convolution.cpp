// Pointers from output pixels and taps to input channels, and the tasks that multiply by them.
#include "kernels/convolution.h"

#include <algorithm>
#include <cstring>

#include "kernels/block.h"
#include "kernels/gemm.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

// Few channels make taps so short that moving to the next one takes as long as multiplying. The taps of a kernel row
// lie side by side in the input, so they are read as one; only where a window crosses the left or right border is it
// copied.
constexpr int64_t joined_channels = 32;

bool joins_taps(const Convolution& convolution) {
  const ConvolutionShape& shape = convolution.shape;
  return shape.groups == 1 && shape.input_channels < joined_channels && shape.kernel[2] > 1 && shape.dilation[2] == 1 &&
         convolution.input_pixel_stride == shape.input_channels;
}

// A window of one pixel that moves with the output: rows of the product are the input's pixels.
bool is_plain_product(const ConvolutionShape& shape) {
  const std::array<int64_t, 3> ones = {1, 1, 1};
  return shape.taps() == 1 && shape.stride == ones && shape.pad == std::array<int64_t, 3>{} &&
         shape.input == shape.output;
}

// Where the window of one output pixel begins; outside the input where there are pads.
struct Window {
  const float* origin;
  std::array<int64_t, 3> begin;
  bool inside;  // every tap reads the input
};

// Where a tap reads, from the first of its window.
struct Tap {
  int64_t offset;  // in floats
  std::array<int64_t, 3> at;
};

struct ConvolutionScratch {
  const float** pointers;
  Window* windows;  // of a tile
  float* zeros;
  float* borders;  // copies of joined taps that cross a border
  float* copies;   // or null
  Tap* taps;
  size_t bytes;

  ConvolutionScratch(const KernelTable& table, const Convolution& convolution, const ConvolutionPlan& plan,
                     void* base) {
    const ConvolutionShape& shape = convolution.shape;
    Scratch scratch(base);
    pointers = scratch.take<const float*>(plan.rows_of_task * shape.taps());
    windows = scratch.take<Window>(table.tile_rows);
    int64_t channels = shape.input_channels / shape.groups;
    zeros = scratch.take<float>(plan.joined ? shape.kernel[2] * channels : channels);
    borders = scratch.take<float>(plan.joined ? plan.rows_of_task * shape.taps() * channels : 0);
    taps = scratch.take<Tap>(shape.taps());
    copies = scratch.take<float>(plan.copies ? copied_floats(table, plan.rows_of_task, shape.taps() * channels) : 0);
    if (!plan.copies) copies = nullptr;
    bytes = scratch.used();
  }
};

class Rows {
 public:
  Rows(const KernelTable& table, const Convolution& convolution, const ConvolutionScratch& scratch)
      : table_(table), convolution_(convolution), shape_(convolution.shape), scratch_(scratch) {
    strides_[2] = convolution.input_pixel_stride;
    strides_[1] = strides_[2] * shape_.input[2];
    strides_[0] = strides_[1] * shape_.input[1];
    channels_ = shape_.input_channels / shape_.groups;
  }

  // Pointers to single taps.
  void fill(int64_t row_begin, int64_t rows, int64_t group) {
    find_taps(shape_.kernel[2], group * channels_);
    auto crossing = [&](const Window& window, const Tap& tap) -> const float* {
      return reads_input(window, tap, 3) ? window.origin + tap.offset : scratch_.zeros;
    };
    fill_windows(row_begin, rows, shape_.taps(), crossing);
  }

  // Pointers to kernel rows, whose taps are read as one.
  void fill_joined(int64_t row_begin, int64_t rows) {
    find_taps(1, 0);
    float* border = scratch_.borders;
    auto crossing = [&](const Window& window, const Tap& tap) -> const float* {
      if (!reads_input(window, tap, 2)) return scratch_.zeros;
      if (is_inside(window.begin[2], 2)) return window.origin + tap.offset;
      const float* copied = border;
      border = copy_border(window, tap, border);
      return copied;
    };
    fill_windows(row_begin, rows, shape_.kernel[0] * shape_.kernel[1], crossing);
  }

 private:
  // An output pixel.
  struct Place {
    int64_t image;
    std::array<int64_t, 3> at;
  };

  Place place_of(int64_t row) const {
    Place place{};
    for (size_t axis = 3; axis-- > 0; row /= shape_.output[axis]) place.at[axis] = row % shape_.output[axis];
    place.image = row;
    return place;
  }

  void advance(Place& place, int64_t pixels) const {
    place.at[2] += pixels;
    while (place.at[2] >= shape_.output[2]) {
      place.at[2] -= shape_.output[2];
      if (++place.at[1] < shape_.output[1]) continue;
      place.at[1] = 0;
      if (++place.at[0] < shape_.output[0]) continue;
      place.at[0] = 0;
      ++place.image;
    }
  }

  // Pointers of all windows and taps as multiply_block reads them; `crossing` gives those of tiles at a border.
  template <class Crossing>
  void fill_windows(int64_t row_begin, int64_t rows, int64_t taps, Crossing crossing) {
    const float** to = scratch_.pointers;
    RowTiles tiles(table_, rows);
    Place place = place_of(row_begin);
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
      int64_t count = tiles.rows_of(tile);
      if (is_even(place, count)) {
        const float* origin = origin_of(place.image, begin_of(place.at));
        int64_t step = shape_.stride[2] * strides_[2];
        for (int64_t tap = 0; tap < taps; ++tap, to += count)
          for (int64_t r = 0; r < count; ++r) to[r] = origin + scratch_.taps[tap].offset + r * step;
      } else {
        find_windows(place, count);
        for (int64_t tap = 0; tap < taps; ++tap, to += count)
          for (int64_t r = 0; r < count; ++r) {
            const Window& window = scratch_.windows[r];
            const Tap& read = scratch_.taps[tap];
            to[r] = window.inside ? window.origin + read.offset : crossing(window, read);
          }
      }
      advance(place, count);
    }
  }

  // Whether the windows of so many pixels lie side by side inside the input.
  bool is_even(const Place& place, int64_t count) const {
    if (place.at[2] + count > shape_.output[2]) return false;
    std::array<int64_t, 3> begin = begin_of(place.at);
    return is_inside(begin[0], 0) && is_inside(begin[1], 1) && is_inside(begin[2], 2) &&
           is_inside(begin[2] + (count - 1) * shape_.stride[2], 2);
  }

  void find_windows(Place place, int64_t count) const {
    for (int64_t r = 0; r < count;) {
      int64_t line = std::min(count - r, shape_.output[2] - place.at[2]);
      find_line(place, line, scratch_.windows + r);
      r += line;
      advance(place, line);
    }
  }

  std::array<int64_t, 3> begin_of(const std::array<int64_t, 3>& at) const {
    std::array<int64_t, 3> begin;
    for (size_t axis = 0; axis < 3; ++axis) begin[axis] = at[axis] * shape_.stride[axis] - shape_.pad[axis];
    return begin;
  }

  const float* origin_of(int64_t image, const std::array<int64_t, 3>& begin) const {
    const float* origin = convolution_.input + image * strides_[0] * shape_.input[0];
    for (size_t axis = 0; axis < 3; ++axis) origin += begin[axis] * strides_[axis];
    return origin;
  }

  // Windows of `count` output pixels side by side.
  void find_line(const Place& place, int64_t count, Window* windows) const {
    std::array<int64_t, 3> begin = begin_of(place.at);
    const float* origin = origin_of(place.image, begin);
    bool line_inside = is_inside(begin[0], 0) && is_inside(begin[1], 1);
    // Fields one by one: a whole window copied in vectors would wait for the one field that has just been stored.
    int64_t pixel = begin[2];
    for (int64_t i = 0; i < count; ++i) {
      windows[i].origin = origin;
      windows[i].begin[0] = begin[0];
      windows[i].begin[1] = begin[1];
      windows[i].begin[2] = pixel;
      windows[i].inside = line_inside && is_inside(pixel, 2);
      pixel += shape_.stride[2];
      origin += shape_.stride[2] * strides_[2];
    }
  }

  bool is_inside(int64_t begin, size_t axis) const {
    return begin >= 0 && begin + (shape_.kernel[axis] - 1) * shape_.dilation[axis] < shape_.input[axis];
  }

  // With the first `across` taps of each kernel row; a pixel's channels begin at `first`.
  void find_taps(int64_t across, int64_t first) const {
    Tap* tap = scratch_.taps;
    for (int64_t k = 0; k < shape_.kernel[0]; ++k)
      for (int64_t i = 0; i < shape_.kernel[1]; ++i)
        for (int64_t j = 0; j < across; ++j, ++tap) {
          tap->at = {k * shape_.dilation[0], i * shape_.dilation[1], j * shape_.dilation[2]};
          tap->offset = first;
          for (size_t axis = 0; axis < 3; ++axis) tap->offset += tap->at[axis] * strides_[axis];
        }
  }

  bool reads_input(const Window& window, const Tap& tap, size_t axes) const {
    for (size_t axis = 0; axis < axes; ++axis) {
      int64_t at = window.begin[axis] + tap.at[axis];
      if (at < 0 || at >= shape_.input[axis]) return false;
    }
    return true;
  }

  // A kernel row's taps, and zeros for those beyond the border.
  float* copy_border(const Window& window, const Tap& first, float* to) const {
    int64_t begin = std::clamp<int64_t>(-window.begin[2], 0, shape_.kernel[2]);
    int64_t end = std::clamp(shape_.input[2] - window.begin[2], begin, shape_.kernel[2]);
    const float* from = window.origin + first.offset;
    to = std::fill_n(to, begin * channels_, 0.0F);
    to = std::copy(from + begin * channels_, from + end * channels_, to);
    return std::fill_n(to, (shape_.kernel[2] - end) * channels_, 0.0F);
  }

  const KernelTable& table_;
  const Convolution& convolution_;
  const ConvolutionShape& shape_;
  const ConvolutionScratch& scratch_;
  std::array<int64_t, 3> strides_;
  int64_t channels_;
};

size_t packed_group_elements(const KernelTable& table, const ConvolutionShape& shape) {
  return packed_b_elements(table, shape.taps() * (shape.input_channels / shape.groups),
                           shape.output_channels / shape.groups);
}

void run_task(const KernelTable& table, const Convolution& convolution, const ConvolutionPlan& plan,
              const ConvolutionScratch& scratch, int64_t task) {
  const ConvolutionShape& shape = convolution.shape;
  int64_t group = task / (plan.row_tasks * plan.column_tasks);
  int64_t row_begin = task / plan.column_tasks % plan.row_tasks * plan.rows_of_task;
  int64_t rows = std::min(plan.rows_of_task, shape.output_pixels() - row_begin);
  int64_t channels = shape.input_channels / shape.groups;
  int64_t columns = shape.output_channels / shape.groups;
  int64_t column_begin = task % plan.column_tasks * plan.columns_of_task;

  bool plain = is_plain_product(shape);
  if (!plain) {
    Rows builder(table, convolution, scratch);
    plan.joined ? builder.fill_joined(row_begin, rows) : builder.fill(row_begin, rows, group);
  }
  int64_t joined = plan.joined ? shape.kernel[2] : 1;
  int64_t first = group * columns;
  int64_t output = row_begin * convolution.output_pixel_stride + first;
  Finish finish = convolution.finish;
  if (finish.addend) finish.addend += output;
  int64_t input = row_begin * convolution.input_pixel_stride + group * channels;
  multiply_block(
      table,
      {.rows = rows,
       .pointers = scratch.pointers,
       .a = plain ? convolution.input + input : nullptr,
       .a_stride = convolution.input_pixel_stride,
       .fetches_rows = convolution.fetches_input || is_beyond_cache(shape.output_pixels() * shape.input_channels),
       .copies = scratch.copies,
       .taps = shape.taps() / joined,
       .depth = channels * joined,
       .b = {.base = convolution.packed_weights + static_cast<size_t>(group) * packed_group_elements(table, shape),
             .panel_stride = shape.taps() * channels * table.tile_columns,
             .depth_stride = table.tile_columns},
       .c = convolution.output + output,
       .c_stride = convolution.output_pixel_stride,
       .column_begin = column_begin,
       .column_end = std::min(columns, column_begin + plan.columns_of_task),
       .bias = convolution.bias ? convolution.bias + first : nullptr,
       .many_panels = are_many_panels(table, columns),
       .row_begin = convolution.first_row + row_begin,
       .first_column = first,
       .finish = finish,
       .epilogue = convolution.epilogue});
}

}  // namespace

size_t packed_convolution_elements(const KernelTable& table, const ConvolutionShape& shape) {
  return static_cast<size_t>(shape.groups) * packed_group_elements(table, shape);
}

void pack_convolution(const KernelTable& table, const ConvolutionShape& shape, const float* weights, float* packed) {
  int64_t channels = shape.input_channels / shape.groups;
  int64_t columns = shape.output_channels / shape.groups;
  int64_t taps = shape.taps();
  int64_t width = table.tile_columns;
  for (int64_t group = 0; group < shape.groups; ++group) {
    for (int64_t column = 0; column < columns; column += width) {
      const float* from = weights + (group * columns + column) * channels * taps;
      int64_t present = std::min(width, columns - column);
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t j = 0; j < width; ++j) *packed++ = j < present ? from[(j * channels + c) * taps + tap] : 0;
    }
  }
}

ConvolutionPlan plan_convolution(const KernelTable& table, const Convolution& convolution, int threads) {
  const ConvolutionShape& shape = convolution.shape;
  ConvolutionPlan plan{};
  int64_t columns = shape.output_channels / shape.groups;
  int64_t rows = shape.output_pixels();
  if (rows == 0 || columns == 0) return plan;
  int64_t products = shape.taps() * (shape.input_channels / shape.groups);
  Cut cut = cut_tasks({.rows = rows,
                       .columns = columns,
                       .row_step = rows_of_block(table, rows, products),
                       .least_rows = table.tile_rows,
                       .column_step = table.tile_columns,
                       .products = products * shape.groups,
                       .threads = threads});
  plan.rows_of_task = cut.rows;
  plan.columns_of_task = cut.columns;
  plan.row_tasks = ceil_divide(rows, cut.rows);
  plan.column_tasks = ceil_divide(columns, cut.columns);
  plan.groups = shape.groups;
  plan.joined = joins_taps(convolution);
  plan.copies = copies_rows(table, {.rows = plan.rows_of_task,
                                    .columns = plan.columns_of_task,
                                    .stride = is_plain_product(shape) ? convolution.input_pixel_stride : 0});
  plan.scratch_bytes = ConvolutionScratch(table, convolution, plan, nullptr).bytes;
  return plan;
}

void run_convolution(const KernelTable& table, const Convolution& convolution, const ConvolutionPlan& plan,
                     int64_t task_begin, int64_t task_end, void* scratch) {
  if (task_begin >= task_end) return;
  ConvolutionScratch parts(table, convolution, plan, scratch);
  int64_t channels = convolution.shape.input_channels / convolution.shape.groups;
  int64_t zeros = plan.joined ? convolution.shape.kernel[2] * channels : channels;
  std::memset(parts.zeros, 0, static_cast<size_t>(zeros) * sizeof(float));
  for (int64_t task = task_begin; task < task_end; ++task) run_task(table, convolution, plan, parts, task);
}

}  // namespace selkie::kernels
