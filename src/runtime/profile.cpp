#include "runtime/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"

namespace selkie::runtime {

using program::Instruction;
using program::no_register;
using program::Opcode;
using program::Program;
using program::Register;

namespace {

class Counter {
 public:
  Counter(const Program& program, std::span<const int64_t> slots) : program_(program), slots_(slots) {}

  Work work_of(const Instruction& i) const {
    switch (i.op) {
      case Opcode::launch:
        return kernel(program_.launches[i.a]);
      case Opcode::product:
        return product(program_.products[i.a]);
      case Opcode::convolution:
        return convolution(program_.convolutions[i.a]);
      case Opcode::integer:
        return integer_product(program_.integer_products[i.a]);
      case Opcode::attention:
        return attention(program_.attentions[i.a]);
      case Opcode::recurrent:
        return recurrent(program_.recurrents[i.a]);
      case Opcode::host:
        return host(program_.host_calls[i.a]);
      default:
        return {};
    }
  }

  // Of convolutions that are made together.
  Work chain(std::span<const Instruction> instructions) const {
    Work out{.kind = "chain"};
    for (const Instruction& i : instructions) {
      const program::Convolution& c = program_.convolutions[i.a];
      Work link = convolution(c);
      if (out.node.empty()) out.node = link.node;
      out.shape += fmt::format("{}{}", out.shape.empty() ? "" : "; ", link.shape);
      out.operations += link.operations;
      // What lies between two links is neither written to memory nor read from it.
      out.bytes += link.bytes;
      if (&i != &instructions.front()) out.bytes -= bytes({c.input});
      if (&i != &instructions.back()) out.bytes -= bytes({c.output});
    }
    return out;
  }

 private:
  double elements(Register r) const {
    double count = 1;
    for (program::Slot slot : program_.registers[r].dims) count *= static_cast<double>(slots_[slot]);
    return count;
  }

  double bytes(std::initializer_list<Register> registers) const {
    double sum = 0;
    for (Register r : registers)
      if (r != no_register) sum += elements(r) * info(program_.registers[r].dtype).bits / 8;
    return sum;
  }

  std::string dims(Register r) const {
    std::string text;
    for (program::Slot slot : program_.registers[r].dims)
      text += fmt::format("{}{}", text.empty() ? "" : "x", slots_[slot]);
    return text;
  }

  double bytes_of_epilogue(std::optional<uint32_t> launch) const {
    double sum = 0;
    if (launch)
      for (Register r : program_.launches[*launch].buffers) sum += bytes({r});
    return sum;
  }

  Work kernel(const program::Launch& l) const {
    double sum = 0;
    for (Register r : l.buffers) sum += bytes({r});
    return {.kind = "kernel", .node = l.node, .shape = l.buffers.empty() ? "" : dims(l.buffers[0]), .bytes = sum};
  }

  Work product(const program::MatrixProduct& p) const {
    double matrices = 1;
    for (program::Slot slot : p.batch) matrices *= static_cast<double>(slots_[slot]);
    std::string shape = fmt::format("{}x{}x{}", slots_[p.m], slots_[p.k], slots_[p.n]);
    return {.kind = "product",
            .node = p.node,
            .shape = p.batch.empty() ? shape : fmt::format("{} of {}", matrices, shape),
            .operations = 2 * matrices * static_cast<double>(slots_[p.m]) * static_cast<double>(slots_[p.n]) *
                          static_cast<double>(slots_[p.k]),
            .bytes = bytes({p.a.value, p.b.value, p.c.value, p.bias, p.finish.addend}) + bytes_of_epilogue(p.epilogue)};
  }

  // Of a convolution of floats or integers.
  template <class Convolution>
  Work window_sums(const Convolution& c, std::string_view kind, Register weights) const {
    kernels::ConvolutionShape shape = shape_of(c, slots_);
    std::string window;
    for (int64_t size : shape.kernel)
      if (!window.empty() || size > 1) window += fmt::format("{}{}", window.empty() ? "" : "x", size);
    Register addend = program::no_register;
    if constexpr (requires { c.finish; }) addend = c.finish.addend;
    return {.kind = kind,
            .node = c.node,
            .shape = fmt::format("{} pixels, {} to {}, window {}{}", shape.output_pixels(), c.input_channels,
                                 c.output_channels, window.empty() ? "1" : window,
                                 shape.stride[2] > 1 ? fmt::format(", stride {}", shape.stride[2]) : ""),
            .operations = 2 * static_cast<double>(shape.output_pixels()) * static_cast<double>(shape.taps()) *
                          static_cast<double>(c.input_channels) / static_cast<double>(c.groups) *
                          static_cast<double>(c.output_channels),
            .bytes = bytes({c.input, c.output, weights, addend}) + bytes_of_epilogue(c.epilogue)};
  }

  static std::string_view kind_of(kernels::ConvolutionVersion version) {
    using Version = kernels::ConvolutionVersion;
    if (version == Version::depthwise) return "depthwise";
    if (version == Version::grouped) return "grouped";
    return version == Version::direct || version == Version::strassen ? "convolution" : "winograd";
  }

  Work convolution(const program::Convolution& c) const {
    kernels::ConvolutionVersion version = version_of(c, slots_);
    return window_sums(c, kind_of(version), weights_of(c, version));
  }

  Work integer_product(const program::IntegerProduct& p) const { return window_sums(p, "integer", p.weights); }

  Work attention(const program::Attention& a) const {
    double rows = static_cast<double>(slots_[a.batch]) * static_cast<double>(slots_[a.heads]) *
                  static_cast<double>(slots_[a.queries]);
    return {.kind = "attention",
            .node = a.node,
            .shape = fmt::format("{} x {} heads, {} of {} keys, depth {}", slots_[a.batch], slots_[a.heads],
                                 slots_[a.queries], slots_[a.keys], slots_[a.depth]),
            .operations = 2 * rows * static_cast<double>(slots_[a.keys]) *
                          static_cast<double>(slots_[a.depth] + slots_[a.columns]),
            .bytes = bytes({a.query.value, a.key.value, a.value.value, a.output.value, a.mask})};
  }

  Work recurrent(const program::Recurrent& r) const {
    using Cell = program::Recurrent::Cell;
    double gates = r.cell == Cell::lstm ? 4 : r.cell == Cell::gru ? 3 : 1;
    return {.kind = "recurrent",
            .node = r.node,
            .shape = fmt::format("{} steps of {}, {} to {}", slots_[r.steps], slots_[r.batch], r.input, r.hidden),
            .operations = 2 * gates * static_cast<double>(slots_[r.steps] * slots_[r.batch] * r.directions) *
                          static_cast<double>((r.input + r.hidden) * r.hidden),
            .bytes = bytes({r.x, r.weights, r.initial_h, r.initial_c, r.y, r.y_h, r.y_c})};
  }

  Work host(const program::HostCall& h) const {
    double sum = 0;
    for (Register r : h.operands)
      if (r != no_register && program_.registers[r].is_tensor) sum += bytes({r});
    return {.kind = "host call", .node = h.node, .shape = {}, .bytes = sum};
  }

  const Program& program_;
  std::span<const int64_t> slots_;
};

// A node's name without its place in the source, cut to what a line has room for.
std::string short_name(const std::string& node) {
  constexpr size_t most = 48;
  return node.size() <= most ? node : node.substr(0, most - 3) + "...";
}

}  // namespace

kernels::PackedFor packed_for(const program::Convolution& c) {
  return {.depthwise = c.depthwise,
          .grouped = c.grouped,
          .direct = c.weights != no_register,
          .winograd = c.winograd != no_register,
          .wide_winograd = c.wide_winograd,
          .exact = c.exact};
}

kernels::ConvolutionVersion version_of(const program::Convolution& c, std::span<const int64_t> slots) {
  return kernels::convolution_version(kernels::table(kernels::best_isa()), shape_of(c, slots), packed_for(c));
}

Register weights_of(const program::Convolution& c, kernels::ConvolutionVersion version) {
  using Version = kernels::ConvolutionVersion;
  return version == Version::winograd || version == Version::wide_winograd ? c.winograd : c.weights;
}

Work work_of(const Program& program, std::span<const Instruction> instructions, std::span<const int64_t> slots) {
  Counter counter(program, slots);
  return instructions.size() == 1 ? counter.work_of(instructions[0]) : counter.chain(instructions);
}

uint32_t place_of(const Instruction& i, const Program& program, std::span<const Program> functions) {
  auto in = [&](const Program& p) { return &i >= p.code.data() && &i < p.code.data() + p.code.size(); };
  const Program* at = &program;
  size_t before = 0;
  for (size_t f = 0; !in(*at) && f < functions.size(); ++f) {
    before += at->code.size();
    at = &functions[f];
  }
  return static_cast<uint32_t>(before + static_cast<size_t>(&i - at->code.data()));
}

std::string chrome_trace(const Profile& profile) {
  std::string events;
  int64_t start = profile.events.empty() ? 0 : profile.events.front().begin_ns;
  for (const Profile::Event& e : profile.events) {
    auto nanoseconds = static_cast<double>(std::max<int64_t>(e.end_ns - e.begin_ns, 1));
    events += fmt::format(
        R"({}{{"name": {}, "cat": "{}", "ph": "X", "pid": 1, "tid": 1, "ts": {:.3f}, "dur": {:.3f}, "args": )"
        R"({{"shape": {}, "instruction": {}, "GFLOP/s": {:.2f}, "GB/s": {:.2f}}}}})",
        events.empty() ? "" : ",\n", json_quote(e.work.node), e.work.kind,
        static_cast<double>(e.begin_ns - start) / 1e3, nanoseconds / 1e3, json_quote(e.work.shape), e.instruction,
        e.work.operations / nanoseconds, e.work.bytes / nanoseconds);
  }
  return fmt::format("{{\"traceEvents\": [\n{}\n], \"displayTimeUnit\": \"ms\"}}\n", events);
}

std::string profile_table(const Profile& profile, double roof) {
  struct Line {
    const Work* work = nullptr;
    size_t calls = 0;
    double nanoseconds = 0;
  };
  std::map<std::pair<uint32_t, std::string_view>, Line> lines;
  double total = 0;
  for (const Profile::Event& e : profile.events) {
    Line& line = lines[{e.instruction, e.work.shape}];
    line.work = &e.work;
    ++line.calls;
    line.nanoseconds += static_cast<double>(e.end_ns - e.begin_ns);
    total += static_cast<double>(e.end_ns - e.begin_ns);
  }
  std::vector<Line> sorted;
  for (const auto& [key, line] : lines) sorted.push_back(line);
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &Line::nanoseconds);
  std::string text = fmt::format("{:>6} {:>10} {:>6} {:>9} {:>6} {:>7}  {}\n", "share", "us a call", "calls", "GFLOP/s",
                                 "roof", "GB/s", "what");
  for (const Line& line : sorted) {
    double seconds = std::max(line.nanoseconds, 1.0) * 1e-9 / static_cast<double>(line.calls);
    bool counted = line.work->operations > 0;
    double rate = line.work->operations / seconds;
    text += fmt::format("{:>5.1f}% {:>10.1f} {:>6} {:>9} {:>6} {:>7.1f}  {:<11} {} [{}]\n",
                        100 * line.nanoseconds / std::max(total, 1.0), seconds * 1e6, line.calls,
                        counted ? fmt::format("{:.1f}", rate * 1e-9) : "-",
                        counted ? fmt::format("{:.0f}%", 100 * rate / roof) : "-", line.work->bytes / seconds * 1e-9,
                        line.work->kind, short_name(line.work->node), line.work->shape);
  }
  return text;
}

}  // namespace selkie::runtime
