// Convolutions in groups against nested loops: the widths and strides with loops of their own, every number of channels
// of a group, and random others.
#include "kernels/grouped.h"

#include <gtest/gtest.h>

#include "kernels/convolution_reference.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr float untouched = 12345.0f;

// `gap` floats between pixels belong to something else.
void check(const KernelTable& table, const ConvolutionShape& s, int64_t gap, int threads, Random& random) {
  SCOPED_TRACE(
      fmt::format("{} {} groups, channels {} to {}, input {}x{}x{} kernel {}x{}x{} stride {} dilation {} pad {} "
                  "threads {}",
                  table.name, s.groups, s.input_channels, s.output_channels, s.input[0], s.input[1], s.input[2],
                  s.kernel[0], s.kernel[1], s.kernel[2], s.stride[2], s.dilation[2], s.pad[2], threads));
  int64_t input_stride = s.input_channels + gap;
  int64_t stride = s.output_channels + gap;
  int64_t input_pixels = s.batch * s.input[0] * s.input[1] * s.input[2];
  Guarded input(input_pixels == 0 ? 0 : input_pixels * input_stride - gap, random,
                threads > 1 ? Guarded::Side::begin : Guarded::Side::end);
  Guarded weights(s.output_channels * (s.input_channels / s.groups) * s.taps(), random);
  Guarded bias(s.output_channels, random);
  Guarded output(s.output_pixels() == 0 ? 0 : s.output_pixels() * stride - gap);
  output.fill(untouched);
  Guarded packed(static_cast<int64_t>(packed_grouped_elements(table, s)));
  pack_grouped(table, s, weights.data(), packed.data());
  void* buffers[] = {output.data()};
  int64_t sizes[] = {stride};
  bool epilogue = threads > 1;
  Convolution convolution{.shape = s,
                          .input = input.data(),
                          .input_pixel_stride = input_stride,
                          .packed_weights = packed.data(),
                          .bias = gap ? nullptr : bias.data(),
                          .output = output.data(),
                          .output_pixel_stride = stride,
                          .epilogue = {.function = epilogue ? add_one : nullptr, .buffers = buffers, .sizes = sizes}};
  GroupedPlan plan = plan_grouped(table, convolution, threads);
  for (int64_t task = plan.tasks(); task-- > 0;) {
    TestScratch scratch(plan.scratch_bytes);
    run_grouped(table, convolution, plan, task, task + 1, scratch.data());
  }
  for (int64_t pixel = 0; pixel < s.output_pixels(); ++pixel) {
    for (int64_t channel = 0; channel < s.output_channels; ++channel) {
      Reference want =
          reference_element(s, input.data(), input_stride, weights.data(), convolution.bias, pixel, channel);
      ASSERT_NEAR(output[pixel * stride + channel], want.value + (epilogue ? 1 : 0), 1e-6 * (want.size + 1))
          << "pixel " << pixel << " channel " << channel;
    }
    for (int64_t i = 0; i < gap && pixel + 1 < s.output_pixels(); ++i)
      ASSERT_EQ(output[pixel * stride + s.output_channels + i], untouched);
  }
}

struct Groups {
  int64_t count;
  int64_t inputs;   // of each
  int64_t outputs;  // of each
};

ConvolutionShape shape_of(const Groups& groups, int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
  ConvolutionShape shape{.input_channels = groups.count * groups.inputs,
                         .output_channels = groups.count * groups.outputs,
                         .groups = groups.count,
                         .input = {1, size, size},
                         .kernel = {1, kernel, kernel},
                         .stride = {1, stride, stride},
                         .pad = {0, pad, pad}};
  set_output(shape, {0, pad, pad});
  return shape;
}

TEST(Grouped, EveryWidthOfImage) {
  Random random(51);
  for (const KernelTable* table : tested_tables())
    for (int64_t kernel : {1, 2, 3, 5})
      for (int64_t stride : {1, 2, 3})
        for (int64_t size = 0; size <= 19; ++size)
          check(*table, shape_of({5, 4, 4}, size, kernel, stride, kernel / 2), size % 3, 1, random);
}

TEST(Grouped, EveryNumberOfChannels) {
  Random random(52);
  for (const KernelTable* table : tested_tables())
    for (int64_t inputs = 1; inputs <= 35; ++inputs)
      for (int64_t outputs : {int64_t{1}, int64_t{2}, int64_t{7}, inputs, int64_t{33}})
        check(*table, shape_of({3 + inputs % 4, inputs, outputs}, 5, 3, 1 + inputs % 2, 1), inputs % 2, 1, random);
}

TEST(Grouped, SeveralBlocksOfUnitsAndLines) {
  Random random(53);
  for (const KernelTable* table : tested_tables())
    for (int64_t channels : {4, 8, 32})
      check(*table, shape_of({256 / channels, channels, channels}, 37, 3, 1, 1), channels % 3, 1 + channels % 3,
            random);
}

TEST(Grouped, RandomShapes) {
  Random random(54);
  for (int i = 0; i < 500; ++i) {
    ConvolutionShape s;
    s.batch = pick(random, 1, 2);
    s.groups = pick(random, 1, 12);
    s.input_channels = s.groups * pick(random, 1, 20);
    s.output_channels = s.groups * pick(random, 1, 20);
    std::array<int64_t, 3> after = {0, 0, 0};
    for (auto axis = static_cast<size_t>(pick(random, 0, 2)); axis < 3; ++axis) {
      s.input[axis] = pick(random, 1, 9);
      s.kernel[axis] = pick(random, 1, 5);
      s.stride[axis] = pick(random, 1, 3);
      s.dilation[axis] = pick(random, 1, 2);
      s.pad[axis] = pick(random, 0, 5);
      after[axis] = pick(random, 0, 5);
    }
    set_output(s, after);
    for (const KernelTable* table : tested_tables()) check(*table, s, pick(random, 0, 2), 1 + i % 3, random);
  }
}

}  // namespace
}  // namespace selkie::kernels
