#include "kernels/chain.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "kernels/block.h"
#include "kernels/depthwise.h"

namespace selkie::kernels {
namespace {

// Lines of an image from `begin` to before `end`.
struct Lines {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

// The input lines that these output lines read.
Lines inputs_of(const ConvolutionShape& s, const Lines& output) {
  int64_t begin = output.begin * s.stride[1] - s.pad[1];
  int64_t end = (output.end - 1) * s.stride[1] - s.pad[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  begin = std::clamp<int64_t>(begin, 0, s.input[1]);
  return {.begin = begin, .end = std::clamp(end, begin, s.input[1])};
}

int64_t most_inputs_of(const ConvolutionShape& s, int64_t lines) {
  return std::min(s.input[1], (lines - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1);
}

int64_t line_bytes(const ConvolutionShape& s) { return s.output[2] * s.output_channels * int64_t{sizeof(float)}; }

int64_t output_bytes(const ConvolutionShape& s) {
  return s.output_pixels() * s.output_channels * int64_t{sizeof(float)};
}

int64_t weight_bytes(const ConvolutionShape& s) {
  return s.taps() * s.input_channels / s.groups * s.output_channels * int64_t{sizeof(float)};
}

// What lies between links while the last makes so many lines at a time.
int64_t held_bytes(std::span<const ConvolutionShape> shapes, int64_t lines) {
  int64_t bytes = 0;
  for (size_t i = shapes.size(); i-- > 1;) {
    lines = most_inputs_of(shapes[i], lines);
    bytes += lines * line_bytes(shapes[i - 1]);
  }
  return bytes;
}

// Half of the second-level cache is for what is held; the rest for weights and for what comes and goes.
int64_t most_held_bytes() { return cache_sizes().l2 / 2; }
int64_t most_weight_bytes() { return cache_sizes().l2 / 4; }

// As many lines as fit; 0 if not one does.
int64_t lines_at_once(std::span<const ConvolutionShape> shapes) {
  int64_t fitting = 0;
  int64_t height = shapes.back().output[1];
  while (fitting < height && held_bytes(shapes, fitting + 1) <= most_held_bytes()) ++fitting;
  if (fitting == 0) return 0;
  return ceil_divide(height, ceil_divide(height, fitting));
}

bool can_be_link(const ConvolutionShape& s, ConvolutionVersion version) {
  bool is_known = version == ConvolutionVersion::direct || version == ConvolutionVersion::depthwise;
  return is_known && s.kernel[0] == 1 && s.input[0] == 1 && s.output[0] == 1 && s.output_pixels() > 0 &&
         s.input[1] > 0 && s.input[2] > 0 && weight_bytes(s) <= most_weight_bytes();
}

// With fewer pixels at a time, what a call of a kernel takes besides multiplying shows.
constexpr int64_t least_pixels = 96;

// Whether what lies between two convolutions should not be stored.
bool is_worth_joining(const ConvolutionShape& before, ConvolutionVersion before_version, ConvolutionVersion version) {
  // Products alone have enough to do for each element that they read.
  bool has_depthwise = before_version == ConvolutionVersion::depthwise || version == ConvolutionVersion::depthwise;
  return has_depthwise && output_bytes(before) > cache_sizes().l2;
}

// Each thread makes the lines between links anew where its part begins, which must not be much of it.
constexpr int64_t least_lines_of_thread = 48;

bool fits(std::span<const ConvolutionShape> shapes, int threads) {
  const ConvolutionShape& last = shapes.back();
  if (threads > 1 && last.batch * last.output[1] < threads * least_lines_of_thread) return false;
  int64_t lines = lines_at_once(shapes);
  return lines == last.output[1] || lines * last.output[2] >= least_pixels;
}

}  // namespace

std::vector<size_t> cut_into_chains(std::span<const ConvolutionShape> shapes,
                                    std::span<const ConvolutionVersion> versions, int threads) {
  size_t count = shapes.size();
  // From each convolution on: bytes that are stored between chains, and links of the first chain.
  std::vector<int64_t> stored(count + 1, 0);
  std::vector<size_t> links(count, 1);
  for (size_t begin = count; begin-- > 0;) {
    auto stored_with = [&](size_t end) { return stored[end] + (end < count ? output_bytes(shapes[end - 1]) : 0); };
    stored[begin] = stored_with(begin + 1);
    if (!can_be_link(shapes[begin], versions[begin])) continue;
    for (size_t end = begin + 2; end <= std::min(count, begin + most_links); ++end) {
      if (!can_be_link(shapes[end - 1], versions[end - 1]) ||
          !is_worth_joining(shapes[end - 2], versions[end - 2], versions[end - 1]) ||
          !fits(shapes.subspan(begin, end - begin), threads))
        break;
      if (stored_with(end) >= stored[begin]) continue;
      stored[begin] = stored_with(end);
      links[begin] = end - begin;
    }
  }
  std::vector<size_t> out;
  for (size_t begin = 0; begin < count; begin += out.back()) out.push_back(links[begin]);
  return out;
}

namespace {

ConvolutionPlan direct_plan(const KernelTable& table, const Convolution& whole, int64_t lines) {
  Convolution part = whole;
  part.shape.batch = 1;
  part.shape.output[1] = lines;
  part.shape.input[1] = most_inputs_of(whole.shape, lines);
  return plan_convolution(table, part, 1);
}

// What each thread has for itself.
struct Memory {
  std::array<float*, most_links> held{};     // lines between a link and the next one
  std::array<void**, most_links> buffers{};  // of epilogues
  void* kernels = nullptr;
  size_t bytes = 0;

  Memory(const KernelTable& table, std::span<const ChainLink> links, const ChainPlan& plan, void* base) {
    Scratch scratch(base);
    size_t most = 0;
    for (size_t i = 0; i < links.size(); ++i) {
      const Convolution& c = links[i].convolution;
      if (i + 1 < links.size()) {
        held[i] = scratch.take<float>(plan.most_lines[i] * c.shape.output[2] * c.shape.output_channels);
        buffers[i] = scratch.take<void*>(static_cast<int64_t>(links[i].epilogue_buffers));
      }
      bool is_depthwise = links[i].version == ConvolutionVersion::depthwise;
      most = std::max(most, is_depthwise ? plan_depthwise(c, 1).scratch_bytes
                                         : direct_plan(table, c, plan.most_lines[i]).scratch_bytes);
    }
    kernels = scratch.take<std::byte>(static_cast<int64_t>(most));
    bytes = scratch.used();
  }
};

class Chain {
 public:
  Chain(const KernelTable& table, std::span<const ChainLink> links, const ChainPlan& plan, void* scratch)
      : table_(table), links_(links), memory_(table, links, plan, scratch) {
    for (size_t i = 0; i < links.size(); ++i)
      if (links[i].version != ConvolutionVersion::depthwise)
        direct_[i] = direct_plan(table, links[i].convolution, plan.most_lines[i]);
  }

  // A new image, or a part of one that does not follow what was made before.
  void begin(int64_t image) {
    image_ = image;
    held_ = {};
  }

  // Lines of the output of a link.
  void make(size_t link, const Lines& lines) {
    Lines read = inputs_of(links_[link].convolution.shape, lines);
    if (link > 0 && read.count() > 0) hold(link - 1, read);
    run(link, part(link, lines, read), lines);
  }

 private:
  int64_t line_floats(size_t link) const {
    const ConvolutionShape& s = links_[link].convolution.shape;
    return s.output[2] * s.output_channels;
  }

  // Makes these lines of a link's output be what is held, of which some may be there.
  void hold(size_t link, const Lines& lines) {
    Lines& held = held_[link];
    int64_t floats = line_floats(link);
    Lines kept{.begin = lines.begin, .end = std::max(held.end, lines.begin)};
    if (kept.count() > 0 && kept.begin > held.begin)
      std::memmove(memory_.held[link], memory_.held[link] + (kept.begin - held.begin) * floats,
                   static_cast<size_t>(kept.count() * floats) * sizeof(float));
    held = {.begin = lines.begin, .end = std::max(kept.end, lines.end)};
    if (kept.end < lines.end) make(link, {.begin = kept.end, .end = lines.end});
  }

  // The convolution that makes only these lines, from those input lines.
  Convolution part(size_t link, const Lines& lines, const Lines& read) {
    const Convolution& whole = links_[link].convolution;
    Convolution out = whole;
    ConvolutionShape& s = out.shape;
    s.batch = 1;
    s.input[1] = read.count();
    s.output[1] = lines.count();
    s.pad[1] = read.begin - (lines.begin * s.stride[1] - s.pad[1]);
    int64_t input_line = image_ * whole.shape.input[1] + read.begin;
    out.input = link > 0 ? memory_.held[link - 1] : whole.input + input_line * s.input[2] * whole.input_pixel_stride;
    out.fetches_input = link == 0 && is_beyond_cache(whole.shape.output_pixels() * whole.shape.input_channels);
    out.first_row = (image_ * whole.shape.output[1] + lines.begin) * s.output[2];
    if (out.finish.addend) out.finish.addend += out.first_row * whole.output_pixel_stride;
    if (link + 1 == links_.size()) {
      out.output = whole.output + out.first_row * whole.output_pixel_stride;
      return out;
    }
    out.output = memory_.held[link] + (lines.begin - held_[link].begin) * line_floats(link);
    // Epilogues count rows from the first of the whole output, which would be before what is held.
    float* first = out.output - out.first_row * whole.output_pixel_stride;
    for (size_t i = 0; i < links_[link].epilogue_buffers; ++i) {
      bool is_output = (links_[link].output_buffers >> i & 1) != 0;
      memory_.buffers[link][i] = is_output ? first : whole.epilogue.buffers[i];
    }
    out.epilogue.buffers = memory_.buffers[link];
    return out;
  }

  void run(size_t link, const Convolution& made, const Lines& lines) {
    if (links_[link].version == ConvolutionVersion::depthwise) {
      DepthwisePlan plan{.lines_of_task = lines.count(), .tasks = 1, .scratch_bytes = 0};
      return run_depthwise(table_, made, plan, 0, 1, memory_.kernels);
    }
    ConvolutionPlan plan = direct_[link];
    plan.row_tasks = ceil_divide(lines.count() * made.shape.output[2], plan.rows_of_task);
    run_convolution(table_, made, plan, 0, plan.tasks(), memory_.kernels);
  }

  const KernelTable& table_;
  std::span<const ChainLink> links_;
  Memory memory_;
  std::array<ConvolutionPlan, most_links> direct_{};
  std::array<Lines, most_links> held_{};
  int64_t image_ = 0;
};

}  // namespace

ChainPlan plan_chain(const KernelTable& table, std::span<const ChainLink> links, int threads) {
  std::array<ConvolutionShape, most_links> shapes;
  std::ranges::transform(links, shapes.begin(), [](const ChainLink& link) { return link.convolution.shape; });
  return plan_chain(table, links, threads, std::max<int64_t>(1, lines_at_once({shapes.data(), links.size()})));
}

ChainPlan plan_chain(const KernelTable& table, std::span<const ChainLink> links, int threads, int64_t lines) {
  CHECK(!links.empty() && links.size() <= most_links, "a chain of {} convolutions", links.size());
  const ConvolutionShape& last = links.back().convolution.shape;
  ChainPlan plan{};
  plan.lines = std::min(lines, last.output[1]);
  plan.most_lines[links.size() - 1] = plan.lines;
  for (size_t i = links.size() - 1; i-- > 0;)
    plan.most_lines[i] = most_inputs_of(links[i + 1].convolution.shape, plan.most_lines[i + 1]);
  int64_t total = last.batch * last.output[1];
  // Threads that come late get less.
  constexpr int64_t tasks_of_thread = 3;
  plan.lines_of_task = ceil_divide(total, threads == 1 ? 1 : threads * tasks_of_thread);
  plan.tasks = ceil_divide(total, plan.lines_of_task);
  plan.scratch_bytes = Memory(table, links, plan, nullptr).bytes;
  return plan;
}

void run_chain(const KernelTable& table, std::span<const ChainLink> links, const ChainPlan& plan, int64_t task_begin,
               int64_t task_end, void* scratch) {
  Chain chain(table, links, plan, scratch);
  const ConvolutionShape& last = links.back().convolution.shape;
  int64_t height = last.output[1];
  int64_t end = std::min(last.batch * height, task_end * plan.lines_of_task);
  int64_t begin = task_begin * plan.lines_of_task;
  for (int64_t line = begin, count = 0; line < end; line += count) {
    int64_t first = line % height;
    count = std::min({plan.lines, height - first, end - line});
    if (first == 0 || line == begin) chain.begin(line / height);
    chain.make(links.size() - 1, {.begin = first, .end = first + count});
  }
}

}  // namespace selkie::kernels
