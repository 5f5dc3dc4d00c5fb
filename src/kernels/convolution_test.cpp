// Convolutions against nested loops: random shapes of one to three axes with strides, dilations, pads and groups.
#include "kernels/convolution.h"

#include <gtest/gtest.h>

#include "kernels/convolution_reference.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr float untouched = 12345.0f;

struct Case {
  ConvolutionShape shape;
  int64_t input_gap = 0;  // floats between pixels that belong to something else
  int64_t output_gap = 0;
  bool bias = true;
  int threads = 1;
};

int64_t strided_size(int64_t pixels, int64_t stride, int64_t channels) {
  return pixels == 0 ? 0 : (pixels - 1) * stride + channels;
}

std::string text(const KernelTable& table, const ConvolutionShape& s) {
  return fmt::format(
      "{} batch {} channels {} -> {} groups {} input {}x{}x{} kernel {}x{}x{} stride {} {} {} dilation {} {} {} pad {} "
      "{} {}",
      table.name, s.batch, s.input_channels, s.output_channels, s.groups, s.input[0], s.input[1], s.input[2],
      s.kernel[0], s.kernel[1], s.kernel[2], s.stride[0], s.stride[1], s.stride[2], s.dilation[0], s.dilation[1],
      s.dilation[2], s.pad[0], s.pad[1], s.pad[2]);
}

void check(const KernelTable& table, const Case& t, Random& random) {
  const ConvolutionShape& s = t.shape;
  SCOPED_TRACE(text(table, s));
  int64_t input_stride = s.input_channels + t.input_gap;
  int64_t output_stride = s.output_channels + t.output_gap;
  int64_t input_pixels = s.batch * s.input[0] * s.input[1] * s.input[2];
  Guarded input(strided_size(input_pixels, input_stride, s.input_channels), random);
  Guarded weights(s.output_channels * (s.input_channels / s.groups) * s.taps(), random);
  Guarded bias(s.output_channels, random);
  Guarded output(strided_size(s.output_pixels(), output_stride, s.output_channels));
  output.fill(untouched);
  Guarded packed(static_cast<int64_t>(packed_convolution_elements(table, s)));
  pack_convolution(table, s, weights.data(), packed.data());
  void* buffers[] = {output.data()};
  int64_t sizes[] = {output_stride};
  bool epilogue = t.threads > 1;
  Convolution convolution{.shape = s,
                          .input = input.data(),
                          .input_pixel_stride = input_stride,
                          .packed_weights = packed.data(),
                          .bias = t.bias ? bias.data() : nullptr,
                          .output = output.data(),
                          .output_pixel_stride = output_stride,
                          .epilogue = {.function = epilogue ? add_one : nullptr, .buffers = buffers, .sizes = sizes}};
  ConvolutionPlan plan = plan_convolution(table, convolution, t.threads);
  for (int64_t task = plan.tasks(); task-- > 0;) {
    TestScratch scratch(plan.scratch_bytes);
    run_convolution(table, convolution, plan, task, task + 1, scratch.data());
  }
  for (int64_t pixel = 0; pixel < s.output_pixels(); ++pixel) {
    for (int64_t channel = 0; channel < s.output_channels; ++channel) {
      Reference want =
          reference_element(s, input.data(), input_stride, weights.data(), convolution.bias, pixel, channel);
      ASSERT_NEAR(output[pixel * output_stride + channel], want.value + (epilogue ? 1 : 0), 1e-6 * (want.size + 1))
          << "pixel " << pixel << " channel " << channel;
    }
    for (int64_t gap = 0; gap < t.output_gap && pixel + 1 < s.output_pixels(); ++gap)
      ASSERT_EQ(output[pixel * output_stride + s.output_channels + gap], untouched);
  }
}

Case random_case(Random& random) {
  Case t;
  ConvolutionShape& s = t.shape;
  int64_t axes = pick(random, 1, 3);
  s.groups = pick(random, 0, 2) ? 1 : pick(random, 1, 4);
  s.batch = pick(random, 1, 2);
  s.input_channels = s.groups * pick(random, 1, pick(random, 0, 1) ? 5 : 45);
  s.output_channels = s.groups * pick(random, 1, 40);
  std::array<int64_t, 3> after = {0, 0, 0};
  for (auto axis = static_cast<size_t>(3 - axes); axis < 3; ++axis) {
    s.input[axis] = pick(random, 1, axes == 1 ? 60 : axes == 2 ? 12 : 6);
    s.kernel[axis] = pick(random, 1, axes == 3 ? 3 : 7);
    s.stride[axis] = pick(random, 1, 3);
    s.dilation[axis] = pick(random, 0, 2) ? 1 : pick(random, 2, 3);
    s.pad[axis] = pick(random, 0, 4);
    after[axis] = pick(random, 0, 4);
  }
  set_output(s, after);
  t.input_gap = pick(random, 0, 3) ? 0 : 3;
  t.output_gap = pick(random, 0, 3) ? 0 : 5;
  t.bias = pick(random, 0, 1) == 1;
  t.threads = pick(random, 0, 1) ? 1 : 3;
  return t;
}

TEST(Convolution, RandomShapes) {
  Random random(7);
  for (int i = 0; i < 1500; ++i) {
    Case t = random_case(random);
    for (const KernelTable* table : tested_tables()) check(*table, t, random);
  }
}

Case square(int64_t size, int64_t channels, int64_t filters, int64_t kernel, int64_t stride, int64_t pad) {
  Case t{.shape = {.input_channels = channels,
                   .output_channels = filters,
                   .input = {1, size, size},
                   .kernel = {1, kernel, kernel},
                   .stride = {1, stride, stride},
                   .pad = {0, pad, pad}}};
  set_output(t.shape, {0, pad, pad});
  return t;
}

TEST(Convolution, ShapesOfNetworks) {
  Random random(8);
  for (const KernelTable* table : tested_tables()) {
    check(*table, square(24, 3, 16, 7, 2, 3), random);
    check(*table, square(14, 64, 40, 1, 1, 0), random);
    check(*table, square(14, 40, 33, 1, 2, 0), random);
    check(*table, square(13, 33, 24, 3, 1, 1), random);
    check(*table, square(3, 600, 8, 3, 1, 1), random);  // more products than one part of the depth
  }
}

TEST(Convolution, EmptyImagesAndWindows) {
  Random random(9);
  for (const KernelTable* table : tested_tables()) {
    check(*table, square(0, 3, 8, 3, 1, 1), random);  // no pixel in, none out
    check(*table, square(2, 3, 8, 5, 1, 0), random);  // no window fits
    check(*table, square(1, 5, 8, 3, 1, 1), random);
    check(*table, square(1, 5, 8, 3, 1, 5), random);  // windows of zeros only
  }
}

}  // namespace
}  // namespace selkie::kernels
