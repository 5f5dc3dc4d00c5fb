// What the instructions of runs took, and how much they had to do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/versions.h"
#include "program/program.h"

namespace selkie::runtime {

// Sizes come from the slots of the run.
struct Work {
  std::string_view kind;  // kernel, product, direct convolution, …
  std::string node;
  std::string shape;
  double operations = 0;  // floating-point ones, as the definition counts them; 0 if unknown
  double bytes = 0;       // of operands and results, each once
};
// Of one instruction, or of a chain of convolutions.
Work work_of(const program::Program& program, std::span<const program::Instruction> instructions,
             std::span<const int64_t> slots);

// The place of an instruction among those of a program and of the functions behind it.
uint32_t place_of(const program::Instruction& i, const program::Program& program,
                  std::span<const program::Program> functions);

// What is known of a convolution before any run, of floats or integers.
template <class Convolution>
kernels::ConvolutionShape unsized_shape(const Convolution& c) {
  return {.input_channels = c.input_channels,
          .output_channels = c.output_channels,
          .groups = c.groups,
          .kernel = c.kernel,
          .stride = c.stride,
          .dilation = c.dilation};
}

// And with its sizes in a run.
template <class Convolution>
kernels::ConvolutionShape shape_of(const Convolution& c, std::span<const int64_t> slots) {
  auto sizes = [&](const std::array<program::Slot, 3>& of) {
    return std::array<int64_t, 3>{slots[of[0]], slots[of[1]], slots[of[2]]};
  };
  kernels::ConvolutionShape shape = unsized_shape(c);
  shape.batch = slots[c.batch];
  shape.input = sizes(c.input_dims);
  shape.output = sizes(c.output_dims);
  shape.pad = sizes(c.pads);
  return shape;
}

kernels::PackedFor packed_for(const program::Convolution& c);
// The kernel that does a convolution in a run, and the weights that it reads.
kernels::ConvolutionVersion version_of(const program::Convolution& c, std::span<const int64_t> slots);
program::Register weights_of(const program::Convolution& c, kernels::ConvolutionVersion version);

// Instructions that work on data, in the order in which they ran. Bounded: later runs are left out.
struct Profile {
  struct Event {
    int64_t begin_ns;  // since some fixed time
    int64_t end_ns;
    uint32_t instruction;
    Work work;
  };
  static constexpr size_t most_events = 1'000'000;
  std::vector<Event> events;
};

// As Chrome's trace viewer and Perfetto read it.
std::string chrome_trace(const Profile& profile);

// A line per kernel and shape, the longest first; `roof` is the processor's, in operations per second.
std::string profile_table(const Profile& profile, double roof);

}  // namespace selkie::runtime
