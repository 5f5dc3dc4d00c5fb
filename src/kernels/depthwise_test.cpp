// Depthwise convolutions against nested loops: the widths and strides with loops of their own, and random others.
#include "kernels/depthwise.h"

#include <gtest/gtest.h>

#include "kernels/convolution_reference.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr float untouched = 12345.0f;

// `gap` floats between pixels belong to something else.
void check(const KernelTable& table, const ConvolutionShape& s, int64_t gap, int threads, Random& random) {
  SCOPED_TRACE(fmt::format("{} channels {} input {}x{}x{} kernel {}x{}x{} stride {} dilation {} pad {} threads {}",
                           table.name, s.input_channels, s.input[0], s.input[1], s.input[2], s.kernel[0], s.kernel[1],
                           s.kernel[2], s.stride[2], s.dilation[2], s.pad[2], threads));
  int64_t stride = s.input_channels + gap;
  int64_t input_pixels = s.batch * s.input[0] * s.input[1] * s.input[2];
  Guarded input(input_pixels == 0 ? 0 : input_pixels * stride - gap, random,
                threads > 1 ? Guarded::Side::begin : Guarded::Side::end);
  Guarded weights(s.output_channels * s.taps(), random);
  Guarded bias(s.output_channels, random);
  Guarded output(s.output_pixels() == 0 ? 0 : s.output_pixels() * stride - gap);
  output.fill(untouched);
  Guarded packed(static_cast<int64_t>(packed_depthwise_elements(s)));
  pack_depthwise(s, weights.data(), packed.data());
  void* buffers[] = {output.data()};
  int64_t sizes[] = {stride};
  bool epilogue = threads > 1;
  Convolution convolution{.shape = s,
                          .input = input.data(),
                          .input_pixel_stride = stride,
                          .packed_weights = packed.data(),
                          .bias = gap ? nullptr : bias.data(),
                          .output = output.data(),
                          .output_pixel_stride = stride,
                          .epilogue = {.function = epilogue ? add_one : nullptr, .buffers = buffers, .sizes = sizes}};
  DepthwisePlan plan = plan_depthwise(convolution, threads);
  for (int64_t task = plan.tasks; task-- > 0;) {
    TestScratch scratch(plan.scratch_bytes);
    run_depthwise(table, convolution, plan, task, task + 1, scratch.data());
  }
  for (int64_t pixel = 0; pixel < s.output_pixels(); ++pixel) {
    for (int64_t channel = 0; channel < s.output_channels; ++channel) {
      Reference want = reference_element(s, input.data(), stride, weights.data(), convolution.bias, pixel, channel);
      ASSERT_NEAR(output[pixel * stride + channel], want.value + (epilogue ? 1 : 0), 1e-6 * (want.size + 1))
          << "pixel " << pixel << " channel " << channel;
    }
    for (int64_t i = 0; i < gap && pixel + 1 < s.output_pixels(); ++i)
      ASSERT_EQ(output[pixel * stride + s.output_channels + i], untouched);
  }
}

ConvolutionShape shape_of(int64_t channels, int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
  ConvolutionShape shape{.input_channels = channels,
                         .output_channels = channels,
                         .groups = channels,
                         .input = {1, size, size},
                         .kernel = {1, kernel, kernel},
                         .stride = {1, stride, stride},
                         .pad = {0, pad, pad}};
  set_output(shape, {0, pad, pad});
  return shape;
}

TEST(Depthwise, EveryWidthOfImage) {
  Random random(11);
  for (const KernelTable* table : tested_tables())
    for (int64_t kernel : {1, 2, 3, 5, 7})
      for (int64_t stride : {1, 2, 3})
        for (int64_t size = 0; size <= 21; ++size)
          check(*table, shape_of(17, size, kernel, stride, kernel / 2), size % 3, 1, random);
}

TEST(Depthwise, EveryNumberOfChannels) {
  Random random(12);
  for (const KernelTable* table : tested_tables())
    for (int64_t channels = 1; channels <= 40; ++channels)
      for (int64_t kernel : {3, 4, 5}) check(*table, shape_of(channels, 6, kernel, 1, 1), channels % 2, 1, random);
}

TEST(Depthwise, SeveralBlocksOfChannelsAndLines) {
  Random random(14);
  for (const KernelTable* table : tested_tables())
    for (int64_t kernel : {3, 5})
      check(*table, shape_of(211, 37, kernel, 1, kernel / 2), kernel % 2, kernel - 2, random);
}

// Pixels that are a power of two apart fall into the same sets of a cache, and are copied.
TEST(Depthwise, PixelsAPowerOfTwoApart) {
  Random random(15);
  for (const KernelTable* table : tested_tables())
    for (int64_t kernel : {3, 5, 7})
      for (int64_t stride : {1, 2})
        for (int64_t gap : {0, 13}) check(*table, shape_of(512 - gap, 15, kernel, stride, 1), gap, 1 + gap % 3, random);
}

TEST(Depthwise, RandomShapes) {
  Random random(13);
  for (int i = 0; i < 600; ++i) {
    ConvolutionShape s;
    s.batch = pick(random, 1, 2);
    s.groups = s.input_channels = s.output_channels = pick(random, 1, 40);
    std::array<int64_t, 3> after = {0, 0, 0};
    for (auto axis = static_cast<size_t>(pick(random, 0, 2)); axis < 3; ++axis) {
      s.input[axis] = pick(random, 1, 14);
      s.kernel[axis] = pick(random, 1, 6);
      s.stride[axis] = pick(random, 1, 3);
      s.dilation[axis] = pick(random, 1, 2);
      s.pad[axis] = pick(random, 0, 6);
      after[axis] = pick(random, 0, 6);
    }
    set_output(s, after);
    for (const KernelTable* table : tested_tables()) check(*table, s, pick(random, 0, 2), 1 + i % 3, random);
  }
}

}  // namespace
}  // namespace selkie::kernels
