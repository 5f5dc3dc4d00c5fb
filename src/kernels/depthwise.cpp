// Lines of output pixels, split evenly into strips that the leaf kernels make at once.
#include "kernels/depthwise.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "kernels/block.h"
#include "kernels/processor.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

DepthwiseKind kind_of(const ConvolutionShape& shape) {
  if (shape.dilation[2] != 1) return any_depthwise;
  if (shape.kernel[2] == 3 && shape.stride[2] == 1) return three_by_one;
  if (shape.kernel[2] == 3 && shape.stride[2] == 2) return three_by_two;
  if (shape.kernel[2] == 5 && shape.stride[2] == 1) return five_by_one;
  if (shape.kernel[2] == 5 && shape.stride[2] == 2) return five_by_two;
  if (shape.kernel[2] == 7 && shape.stride[2] == 1) return seven_by_one;
  return any_depthwise;
}

// How the output is walked through: for some lines and a block of channels, strips of neighbouring pixels from top to
// bottom, so that the input lines which output lines share are still in the first-level cache.
struct Walk {
  int64_t lines;     // at a time
  int64_t channels;  // of a block
  int64_t strips;    // of a line, as even as possible
  int64_t pixels;    // of the widest strip
  bool copies;       // inputs, since where they are they fall into the same few sets of the first-level cache

  explicit Walk(const Convolution& convolution) {
    const ConvolutionShape& s = convolution.shape;
    constexpr int64_t line_floats = 16;  // of a cache
    strips = std::max<int64_t>(1, ceil_divide(s.output[2], most_depthwise_pixels));
    pixels = ceil_divide(s.output[2], strips);
    int64_t inputs = (pixels - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
    int64_t read = std::max<int64_t>(1, inputs * s.kernel[0] * s.kernel[1]);
    // All inputs lie a multiple of `apart` bytes from each other, which only some sets of the cache serve.
    const FirstCache& cache = first_cache();
    int64_t apart = std::gcd(4 * convolution.input_pixel_stride, cache.way_bytes);
    int64_t places = cache.way_bytes / std::max<int64_t>(apart, 4 * line_floats);
    copies = kind_of(s) != any_depthwise && read > cache.ways * places;
    // Short runs of channels are fetched slowly, so that a block has at least six lines of a cache.
    int64_t fitting = std::max(cache_sizes().l1 / 2 / (4 * read), 6 * line_floats);
    int64_t blocks = std::max<int64_t>(1, (s.input_channels + fitting / 2) / fitting);
    channels = round_up(ceil_divide(s.input_channels, blocks), line_floats);
    int64_t written = std::max<int64_t>(1, s.output[2] * channels);
    lines = std::clamp<int64_t>(cache_sizes().l2 / 4 / (4 * written), 1, copies ? 12 : 32);
  }
};

// Pointers to the inputs of one strip: for each plane of the kernel and input line that some output line reads.
// Neighbouring output lines share input lines where the kernel is taller than its stride.
class Grid {
 public:
  Grid(const Convolution& convolution, const Walk& walk, void* base)
      : convolution_(convolution), s_(convolution.shape), kind_(kind_of(s_)) {
    step_ = s_.dilation[1] == 1 ? std::min(s_.stride[1], s_.kernel[1]) : s_.kernel[1];
    slots_ = (walk.lines - 1) * step_ + s_.kernel[1];
    inputs_ = kind_ == any_depthwise ? walk.pixels * s_.kernel[2] : (walk.pixels - 1) * s_.stride[2] + s_.kernel[2];
    Scratch scratch(base);
    pointers_ = scratch.take<const float*>(s_.kernel[0] * slots_ * inputs_);
    rows_ = scratch.take<const float* const*>(walk.lines * s_.kernel[0] * s_.kernel[1]);
    inside_ = scratch.take<DepthwiseRows>(walk.lines);
    offsets_ = scratch.take<int64_t>(inputs_);
    zeros_ = scratch.take<float>(walk.channels);
    copy_stride_ = walk.copies ? walk.channels + 16 : 0;
    copies_ = scratch.take<float>(s_.kernel[0] * slots_ * inputs_ * copy_stride_);
    bytes_ = scratch.used();
    if (base) find_rows(walk.lines);
    if (base) std::fill(zeros_, zeros_ + walk.channels, 0.0f);
  }

  // The lines that fill() will be asked for.
  void find_inside(int64_t line_begin, int64_t lines) {
    for (int64_t line = 0; line < lines; ++line)
      inside_[line] = rows_inside(s_, (line_begin % s_.output[1] + line) * s_.stride[1] - s_.pad[1]);
  }

  // Some pixels of `lines` output lines from `line_begin` on, all of one depth.
  void fill(int64_t line_begin, int64_t lines, int64_t pixel_begin, int64_t pixels, int64_t channel, int64_t channels) {
    find_offsets(pixel_begin, pixels);
    int64_t image = line_begin / s_.output[1] / s_.output[0];
    int64_t depth = line_begin / s_.output[1] % s_.output[0];
    int64_t height = line_begin % s_.output[1];
    for (int64_t kd = 0; kd < s_.kernel[0]; ++kd) {
      int64_t d = depth * s_.stride[0] - s_.pad[0] + kd * s_.dilation[0];
      const float* plane = convolution_.input + channel + (image * s_.input[0] + d) * s_.input[1] * line_stride();
      if (d < 0 || d >= s_.input[0]) plane = nullptr;
      for (int64_t line = 0; line < lines; ++line) {
        int64_t first = (height + line) * s_.stride[1] - s_.pad[1];
        for (int64_t kh = line > 0 ? s_.kernel[1] - step_ : 0; kh < s_.kernel[1]; ++kh)
          fill_slot(plane, first + kh * s_.dilation[1], slot(kd, line, kh), channels);
      }
    }
  }

  // Per line and kernel row.
  const float* const* const* rows() const { return rows_; }
  // Per line: the first kernel row that reads the input, and how many do.
  const DepthwiseRows* inside() const { return inside_; }
  DepthwiseKind kind() const { return kind_; }
  size_t bytes() const { return bytes_; }

 private:
  int64_t line_stride() const { return s_.input[2] * convolution_.input_pixel_stride; }
  const float** slot(int64_t kd, int64_t line, int64_t kh) {
    return pointers_ + (kd * slots_ + line * step_ + kh) * inputs_;
  }

  void find_rows(int64_t lines) {
    const float* const** row = rows_;
    for (int64_t line = 0; line < lines; ++line)
      for (int64_t kd = 0; kd < s_.kernel[0]; ++kd)
        for (int64_t kh = 0; kh < s_.kernel[1]; ++kh) *row++ = slot(kd, line, kh);
  }

  // Where a strip's inputs are in a line; -1 outside it.
  void find_offsets(int64_t pixel_begin, int64_t pixels) {
    int64_t first = pixel_begin * s_.stride[2] - s_.pad[2];
    auto offset = [&](int64_t at) { return at < 0 || at >= s_.input[2] ? -1 : at * convolution_.input_pixel_stride; };
    if (kind_ == any_depthwise) {
      used_ = pixels * s_.kernel[2];
      for (int64_t i = 0; i < used_; ++i)
        offsets_[i] = offset(first + i % pixels * s_.stride[2] + i / pixels * s_.dilation[2]);
    } else {
      used_ = (pixels - 1) * s_.stride[2] + s_.kernel[2];
      for (int64_t i = 0; i < used_; ++i) offsets_[i] = offset(first + i);
    }
    regular_ = kind_ != any_depthwise && first >= 0 && first + used_ <= s_.input[2];
  }

  void copy_slot(const float* from, const float** to, int64_t channels) const {
    float* copy = copies_ + (to - pointers_) * copy_stride_;
    for (int64_t i = 0; i < used_; ++i, copy += copy_stride_) {
      to[i] = offsets_[i] < 0 ? zeros_ : copy;
      if (offsets_[i] >= 0) std::memcpy(copy, from + offsets_[i], static_cast<size_t>(channels) * sizeof(float));
    }
  }

  void fill_slot(const float* plane, int64_t line, const float** to, int64_t channels) const {
    if (!plane || line < 0 || line >= s_.input[1]) return static_cast<void>(std::fill(to, to + used_, zeros_));
    const float* from = plane + line * line_stride();
    if (copy_stride_) {
      copy_slot(from, to, channels);
    } else if (regular_) {
      from += offsets_[0];
      const int64_t stride = convolution_.input_pixel_stride;
      for (const float** end = to + used_; to < end; ++to, from += stride) *to = from;
    } else {
      for (int64_t i = 0; i < used_; ++i) to[i] = offsets_[i] < 0 ? zeros_ : from + offsets_[i];
    }
  }

  const Convolution& convolution_;
  const ConvolutionShape& s_;
  DepthwiseKind kind_;
  int64_t step_;    // slots from one output line to the next
  int64_t slots_;   // input lines of a plane
  int64_t inputs_;  // of a slot
  int64_t used_ = 0;
  bool regular_ = false;  // neighbours, all inside
  const float** pointers_;
  const float* const** rows_;
  DepthwiseRows* inside_;
  int64_t* offsets_;
  float* zeros_;
  float* copies_;
  int64_t copy_stride_;  // from one input to the next; 0 where they are not copied
  size_t bytes_;
};

// A block of channels of some lines.
void run_block(const KernelTable& table, const Convolution& convolution, const Walk& walk, Grid& grid,
               int64_t line_begin, int64_t lines, int64_t channel, int64_t channels) {
  const ConvolutionShape& s = convolution.shape;
  DepthwiseArguments arguments{.lines = lines,
                               .rows = s.kernel[0] * s.kernel[1],
                               .inside = grid.inside(),
                               .inputs = grid.rows(),
                               .weights = convolution.packed_weights + channel,
                               .weight_stride = s.input_channels,
                               .taps = s.kernel[2],
                               .channels = channels,
                               .bias = convolution.bias ? convolution.bias + channel : nullptr,
                               .clamps = convolution.finish.clamps(),
                               .low = convolution.finish.low,
                               .high = convolution.finish.high,
                               .output = nullptr,
                               .output_stride = convolution.output_pixel_stride,
                               .output_line_stride = s.output[2] * convolution.output_pixel_stride};
  for (int64_t strip = 0, pixel = 0; strip < walk.strips; ++strip) {
    int64_t pixels = s.output[2] / walk.strips + (strip < s.output[2] % walk.strips ? 1 : 0);
    grid.fill(line_begin, lines, pixel, pixels, channel, channels);
    int64_t at = line_begin * s.output[2] + pixel;
    arguments.output = convolution.output + channel + at * convolution.output_pixel_stride;
    table.depthwise[grid.kind()][pixels - 1](arguments);
    pixel += pixels;
  }
}

}  // namespace

bool is_depthwise(const ConvolutionShape& shape) {
  return shape.groups == shape.input_channels && shape.groups == shape.output_channels;
}

DepthwiseRows rows_inside(const ConvolutionShape& s, int64_t first) {
  if (s.kernel[0] > 1) return {.begin = 0, .count = s.kernel[0] * s.kernel[1]};
  int64_t begin = std::min(s.kernel[1], first < 0 ? ceil_divide(-first, s.dilation[1]) : 0);
  int64_t end = std::min(s.kernel[1], ceil_divide(std::max<int64_t>(0, s.input[1] - first), s.dilation[1]));
  return {.begin = begin, .count = std::max<int64_t>(0, end - begin)};
}

size_t packed_depthwise_elements(const ConvolutionShape& shape) {
  return static_cast<size_t>(shape.taps() * shape.input_channels);
}

void pack_depthwise(const ConvolutionShape& shape, const float* weights, float* packed) {
  for (int64_t tap = 0; tap < shape.taps(); ++tap)
    for (int64_t channel = 0; channel < shape.input_channels; ++channel)
      *packed++ = weights[channel * shape.taps() + tap];
}

DepthwisePlan plan_depthwise(const Convolution& convolution, int threads) {
  const ConvolutionShape& s = convolution.shape;
  DepthwisePlan plan{};
  int64_t lines = s.batch * s.output[0] * s.output[1];
  if (lines == 0 || s.output[2] == 0 || s.input_channels == 0) return plan;
  Cut cut = cut_tasks({.rows = lines,
                       .columns = s.output[2] * s.input_channels,
                       .row_step = lines,
                       .least_rows = 1,
                       .column_step = s.output[2] * s.input_channels,
                       .products = s.taps(),
                       .threads = threads});
  plan.lines_of_task = cut.rows;
  plan.tasks = ceil_divide(lines, cut.rows);
  plan.scratch_bytes = Grid(convolution, Walk(convolution), nullptr).bytes();
  return plan;
}

void run_depthwise(const KernelTable& table, const Convolution& convolution, const DepthwisePlan& plan,
                   int64_t task_begin, int64_t task_end, void* scratch) {
  if (task_begin >= task_end) return;
  const ConvolutionShape& s = convolution.shape;
  Walk walk(convolution);
  Grid grid(convolution, walk, scratch);
  CHECK(!convolution.finish.addend, "a depthwise convolution adds nothing to its output");
  const Epilogue& epilogue = convolution.epilogue;
  int64_t end = std::min(s.batch * s.output[0] * s.output[1], task_end * plan.lines_of_task);
  for (int64_t line = task_begin * plan.lines_of_task, lines = 0; line < end; line += lines) {
    lines = std::min({walk.lines, end - line, s.output[1] - line % s.output[1]});
    grid.find_inside(line, lines);
    for (int64_t channel = 0; channel < s.input_channels; channel += walk.channels) {
      int64_t channels = std::min(walk.channels, s.input_channels - channel);
      run_block(table, convolution, walk, grid, line, lines, channel, channels);
      if (!epilogue.function) continue;
      int64_t row = convolution.first_row + line * s.output[2];
      int64_t ranges[] = {row, row + lines * s.output[2], channel, channel + channels};
      epilogue.function(epilogue.buffers, epilogue.sizes, ranges);
    }
  }
}

}  // namespace selkie::kernels
