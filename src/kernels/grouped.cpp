// Input lines of some groups are copied side by side, with the zeros around them, and multiplied vector by vector of
// outputs while they are in the second-level cache.
#include "kernels/grouped.h"

#include <algorithm>
#include <optional>

#include "kernels/block.h"
#include "kernels/depthwise.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

// Groups that are computed together: as many as a vector has room for, of inputs and of outputs, or one.
struct Units {
  int64_t lanes;
  int64_t inputs;   // of a group
  int64_t outputs;  // of a group
  int64_t groups;   // of a unit
  int64_t count;
  int64_t chunks;   // vectors of a unit's inputs
  int64_t vectors;  // of its outputs

  Units(const KernelTable& table, const ConvolutionShape& s)
      : lanes(table.lanes), inputs(s.input_channels / s.groups), outputs(s.output_channels / s.groups) {
    groups = std::max<int64_t>(1, lanes / std::max<int64_t>({1, inputs, outputs}));
    count = ceil_divide(s.groups, groups);
    chunks = ceil_divide(groups * inputs, lanes);
    vectors = ceil_divide(groups * outputs, lanes);
  }
  int64_t groups_of(int64_t unit, const ConvolutionShape& s) const {
    return std::min(groups, s.groups - unit * groups);
  }
  int64_t weights_of_vector(const ConvolutionShape& s) const { return s.taps() * inputs * lanes; }
};

GroupedKind kind_of(const ConvolutionShape& s) {
  if (s.dilation[2] != 1 || s.kernel[2] != 3) return any_grouped;
  return s.stride[2] == 1 ? grouped_three_by_one : s.stride[2] == 2 ? grouped_three_by_two : any_grouped;
}

// How the output is walked through: some lines of some units at a time.
struct Walk {
  int64_t row_pixels;  // of a copied input line
  int64_t step;        // input lines from one output line to the next that are not shared
  int64_t units;
  int64_t lines;

  Walk(const ConvolutionShape& s, const Units& of) {
    row_pixels = (std::max<int64_t>(1, s.output[2]) - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
    step = s.dilation[1] == 1 ? std::min(s.stride[1], s.kernel[1]) : s.kernel[1];
    // Short runs of channels are fetched slowly.
    constexpr int64_t run = 64;
    units = std::min(of.count, ceil_divide(run, of.groups * of.inputs));
    int64_t line_floats = s.kernel[0] * row_pixels * of.chunks * of.lanes * units;
    int64_t fitting = cache_sizes().l2 / 4 / static_cast<int64_t>(sizeof(float)) / line_floats;
    lines = std::clamp<int64_t>((fitting - s.kernel[1]) / step + 1, 1, std::max<int64_t>(1, s.output[1]));
  }
  int64_t slots(const ConvolutionShape& s) const { return (lines - 1) * step + s.kernel[1]; }
};

struct GroupedScratch {
  float* copies;          // [kernel planes][slots][units][chunks][pixels][lanes]
  const float** rows;     // [lines][kernel rows]
  DepthwiseRows* inside;  // [lines]
  int32_t* first_inputs;  // [lanes]
  size_t bytes;

  GroupedScratch(const ConvolutionShape& s, const Units& of, const Walk& walk, void* base) {
    Scratch scratch(base);
    int64_t floats_of_slot = walk.units * of.chunks * walk.row_pixels * of.lanes;
    copies = scratch.take<float>(s.kernel[0] * walk.slots(s) * floats_of_slot);
    rows = scratch.take<const float*>(walk.lines * s.kernel[0] * s.kernel[1]);
    inside = scratch.take<DepthwiseRows>(walk.lines);
    first_inputs = scratch.take<int32_t>(of.lanes);
    bytes = scratch.used();
  }
};

// Lines and units that are computed at once.
struct Part {
  int64_t line;
  int64_t lines;
  int64_t unit;
  int64_t units;
};

class Grouped {
 public:
  Grouped(const KernelTable& table, const Convolution& convolution, void* scratch)
      : table_(table),
        c_(convolution),
        s_(convolution.shape),
        of_(table, s_),
        walk_(s_, of_),
        scratch_(s_, of_, walk_, scratch),
        chunk_stride_(walk_.row_pixels * of_.lanes),
        unit_stride_(of_.chunks * chunk_stride_) {
    if (!scratch) return;
    for (int64_t i = 0; i < of_.lanes; ++i)
      scratch_.first_inputs[i] = static_cast<int32_t>(i < of_.groups * of_.outputs ? i / of_.outputs * of_.inputs : 0);
    find_rows();
  }

  size_t scratch_bytes() const { return scratch_.bytes; }
  const Units& units() const { return of_; }
  const Walk& walk() const { return walk_; }

  void run(int64_t line_begin, int64_t line_end, int64_t unit_begin, int64_t unit_end) {
    for (int64_t line = line_begin, lines = 0; line < line_end; line += lines) {
      lines = std::min({walk_.lines, line_end - line, s_.output[1] - line % s_.output[1]});
      for (int64_t unit = unit_begin; unit < unit_end; unit += walk_.units)
        run_part({.line = line, .lines = lines, .unit = unit, .units = std::min(walk_.units, unit_end - unit)});
    }
  }

 private:
  float* slot(int64_t kd, int64_t line, int64_t kh) const {
    return scratch_.copies + (kd * walk_.slots(s_) + line * walk_.step + kh) * walk_.units * unit_stride_;
  }

  void find_rows() {
    const float** row = scratch_.rows;
    for (int64_t line = 0; line < walk_.lines; ++line)
      for (int64_t kd = 0; kd < s_.kernel[0]; ++kd)
        for (int64_t kh = 0; kh < s_.kernel[1]; ++kh) *row++ = slot(kd, line, kh);
  }

  void run_part(const Part& part) {
    copy_inputs(part);
    for (int64_t unit = 0; unit < part.units; ++unit)
      for (int64_t vector = 0; vector < of_.vectors; ++vector) multiply(part, unit, vector);
    const Epilogue& epilogue = c_.epilogue;
    if (!epilogue.function) return;
    int64_t end = std::min(s_.groups, (part.unit + part.units) * of_.groups);
    int64_t ranges[] = {part.line * s_.output[2], (part.line + part.lines) * s_.output[2],
                        part.unit * of_.groups * of_.outputs, end * of_.outputs};
    epilogue.function(epilogue.buffers, epilogue.sizes, ranges);
  }

  void copy_inputs(const Part& part) {
    int64_t image = part.line / s_.output[1] / s_.output[0];
    int64_t depth = part.line / s_.output[1] % s_.output[0];
    int64_t height = part.line % s_.output[1];
    for (int64_t line = 0; line < part.lines; ++line) {
      int64_t first = (height + line) * s_.stride[1] - s_.pad[1];
      scratch_.inside[line] = rows_inside(s_, first);
      for (int64_t kd = 0; kd < s_.kernel[0]; ++kd) {
        int64_t d = depth * s_.stride[0] - s_.pad[0] + kd * s_.dilation[0];
        bool inside = d >= 0 && d < s_.input[0];
        for (int64_t kh = line > 0 ? s_.kernel[1] - walk_.step : 0; kh < s_.kernel[1]; ++kh) {
          int64_t h = first + kh * s_.dilation[1];
          bool exists = inside && h >= 0 && h < s_.input[1];
          copy_line(exists ? std::optional((image * s_.input[0] + d) * s_.input[1] + h) : std::nullopt, part,
                    slot(kd, line, kh));
        }
      }
    }
  }

  // One input line, or zeros.
  void copy_line(std::optional<int64_t> line, const Part& part, float* to) const {
    int64_t left = std::min(s_.pad[2], walk_.row_pixels);
    int64_t pixels = line ? std::min(walk_.row_pixels - left, s_.input[2]) : 0;
    int64_t zeros_after = (walk_.row_pixels - left - pixels) * of_.lanes;
    const float* pixel = c_.input + line.value_or(0) * s_.input[2] * c_.input_pixel_stride;
    for (int64_t unit = part.unit; unit < part.unit + part.units; ++unit) {
      int64_t channels = of_.groups_of(unit, s_) * of_.inputs;
      for (int64_t chunk = 0; chunk < of_.chunks; ++chunk) {
        int64_t begin = chunk * of_.lanes;
        std::fill_n(to, left * of_.lanes, 0.0f);
        to += left * of_.lanes;
        if (pixels > 0)
          table_.copy_chunks(pixel + unit * of_.groups * of_.inputs + begin, c_.input_pixel_stride, pixels,
                             channels - begin, to);
        to += pixels * of_.lanes;
        std::fill_n(to, zeros_after, 0.0f);
        to += zeros_after;
      }
    }
  }

  void multiply(const Part& part, int64_t unit, int64_t vector) {
    int64_t at = part.unit + unit;
    int64_t column = at * of_.groups * of_.outputs + vector * of_.lanes;
    int64_t outputs = of_.groups_of(at, s_) * of_.outputs - vector * of_.lanes;
    if (outputs <= 0) return;
    GroupedArguments arguments{.lines = part.lines,
                               .rows = s_.kernel[0] * s_.kernel[1],
                               .inside = scratch_.inside,
                               .inputs = scratch_.rows,
                               .offset = unit * unit_stride_,
                               .depth = of_.inputs,
                               .chunk_stride = chunk_stride_,
                               .first_inputs = scratch_.first_inputs,
                               .weights = c_.packed_weights + (at * of_.vectors + vector) * of_.weights_of_vector(s_),
                               .taps = s_.kernel[2],
                               .pixel_step = s_.stride[2] * of_.lanes,
                               .tap_step = s_.dilation[2] * of_.lanes,
                               .columns = std::min(outputs, of_.lanes),
                               .bias = c_.bias ? c_.bias + column : nullptr,
                               .addend = nullptr,
                               .clamps = c_.finish.clamps(),
                               .low = c_.finish.low,
                               .high = c_.finish.high,
                               .output = nullptr,
                               .output_stride = c_.output_pixel_stride,
                               .output_line_stride = s_.output[2] * c_.output_pixel_stride};
    const GroupedFunction* functions = table_.grouped[kind_of(s_)][of_.groups > 1 ? several_groups : one_group];
    int64_t strips = ceil_divide(s_.output[2], most_grouped_pixels);
    int64_t place = part.line * s_.output[2] * c_.output_pixel_stride + column;
    for (int64_t strip = 0; strip < strips; ++strip) {
      int64_t pixels = s_.output[2] / strips + (strip < s_.output[2] % strips ? 1 : 0);
      arguments.output = c_.output + place;
      arguments.addend = c_.finish.addend ? c_.finish.addend + place : nullptr;
      functions[pixels - 1](arguments);
      arguments.offset += pixels * arguments.pixel_step;
      place += pixels * c_.output_pixel_stride;
    }
  }

  const KernelTable& table_;
  const Convolution& c_;
  const ConvolutionShape& s_;
  Units of_;
  Walk walk_;
  GroupedScratch scratch_;
  int64_t chunk_stride_;
  int64_t unit_stride_;
};

int64_t all_lines(const ConvolutionShape& s) { return s.batch * s.output[0] * s.output[1]; }

}  // namespace

bool takes_grouped(const KernelTable& table, const ConvolutionShape& shape) {
  if (shape.groups <= 1 || is_depthwise(shape)) return false;
  int64_t inputs = shape.input_channels / shape.groups;
  int64_t outputs = shape.output_channels / shape.groups;
  // The direct kernel's rows need no pointers where there is one tap.
  if (shape.taps() == 1) return 2 * std::max(inputs, outputs) <= table.lanes;
  // It makes two vectors with each input it loads, here one is made with three taps.
  return outputs <= table.lanes || (kind_of(shape) == grouped_three_by_one && outputs <= 4 * table.lanes);
}

size_t packed_grouped_elements(const KernelTable& table, const ConvolutionShape& shape) {
  Units of(table, shape);
  return static_cast<size_t>(of.count * of.vectors * of.weights_of_vector(shape));
}

void pack_grouped(const KernelTable& table, const ConvolutionShape& shape, const float* weights, float* packed) {
  Units of(table, shape);
  int64_t taps = shape.taps();
  int64_t width = shape.kernel[2];
  // Of the channels of one lane and one tap; 0 for lanes without an output.
  auto weight = [&](int64_t unit, int64_t output, int64_t channel, int64_t tap) {
    if (output >= of.groups_of(unit, shape) * of.outputs) return 0.0f;
    return weights[((unit * of.groups * of.outputs + output) * of.inputs + channel) * taps + tap];
  };
  for (int64_t unit = 0; unit < of.count; ++unit)
    for (int64_t vector = 0; vector < of.vectors; ++vector)
      for (int64_t row = 0; row < taps / width; ++row)
        for (int64_t channel = 0; channel < of.inputs; ++channel)
          for (int64_t tap = 0; tap < width; ++tap)
            for (int64_t i = 0; i < of.lanes; ++i)
              *packed++ = weight(unit, vector * of.lanes + i, channel, row * width + tap);
}

GroupedPlan plan_grouped(const KernelTable& table, const Convolution& convolution, int threads) {
  const ConvolutionShape& s = convolution.shape;
  GroupedPlan plan{};
  if (s.output_pixels() == 0 || s.output_channels == 0) return plan;
  Grouped grouped(table, convolution, nullptr);
  const Units& of = grouped.units();
  Cut cut = cut_tasks({.rows = all_lines(s),
                       .columns = of.count,
                       .row_step = grouped.walk().lines,
                       .least_rows = 1,
                       .column_step = 1,
                       .products = s.output[2] * of.groups * of.outputs * of.inputs * s.taps(),
                       .threads = threads});
  plan.lines_of_task = cut.rows;
  plan.units_of_task = cut.columns;
  plan.line_tasks = ceil_divide(all_lines(s), cut.rows);
  plan.unit_tasks = ceil_divide(of.count, cut.columns);
  plan.scratch_bytes = grouped.scratch_bytes();
  return plan;
}

void run_grouped(const KernelTable& table, const Convolution& convolution, const GroupedPlan& plan, int64_t task_begin,
                 int64_t task_end, void* scratch) {
  if (task_begin >= task_end) return;
  const ConvolutionShape& s = convolution.shape;
  Grouped grouped(table, convolution, scratch);
  for (int64_t task = task_begin; task < task_end; ++task) {
    int64_t line = task / plan.unit_tasks * plan.lines_of_task;
    int64_t unit = task % plan.unit_tasks * plan.units_of_task;
    grouped.run(line, std::min(all_lines(s), line + plan.lines_of_task), unit,
                std::min(grouped.units().count, unit + plan.units_of_task));
  }
}

}  // namespace selkie::kernels
