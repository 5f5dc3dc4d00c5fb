// Winograd convolutions against nested loops, for every size of image and odd numbers of channels.
#include "kernels/winograd.h"

#include <gtest/gtest.h>

#include "kernels/convolution_reference.h"
#include "kernels/processor.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr float untouched = 12345.0f;

struct Case {
  ConvolutionShape shape;
  WinogradWeights weights = WinogradWeights::transformed;
  int64_t gap = 0;  // floats between pixels that belong to something else
  int threads = 1;
};

// Rounding is proportional to what the whole tile holds, not to the few products of a pixel at the border; so it is
// compared with the pixel that has the largest products.
void compare(const Case& t, const Convolution& convolution, const float* weights, const Guarded& output, double added) {
  const ConvolutionShape& s = t.shape;
  std::vector<double> errors;
  double largest = 1;
  for (int64_t pixel = 0; pixel < s.output_pixels(); ++pixel) {
    for (int64_t channel = 0; channel < s.output_channels; ++channel) {
      Reference want = reference_element(s, convolution.input, convolution.input_pixel_stride, weights,
                                         convolution.bias, pixel, channel);
      largest = std::max(largest, want.size);
      errors.push_back(std::abs(output[pixel * convolution.output_pixel_stride + channel] - want.value - added));
    }
    for (int64_t i = 0; i < t.gap && pixel + 1 < s.output_pixels(); ++i)
      ASSERT_EQ(output[pixel * convolution.output_pixel_stride + s.output_channels + i], untouched);
  }
  for (size_t i = 0; i < errors.size(); ++i)
    ASSERT_LE(errors[i], (is_for_six(t.weights) ? 5e-5 : 5e-6) * largest)
        << "pixel " << i / static_cast<size_t>(s.output_channels) << " channel "
        << i % static_cast<size_t>(s.output_channels);
}

void check(const KernelTable& table, const Case& t, Random& random) {
  const ConvolutionShape& s = t.shape;
  bool transformed = !is_packed(t.weights);
  SCOPED_TRACE(fmt::format("{} weights {} batch {} channels {} -> {} input {}x{} output {}x{} pad {} {} threads {}",
                           table.name, static_cast<int>(t.weights), s.batch, s.input_channels, s.output_channels,
                           s.input[1], s.input[2], s.output[1], s.output[2], s.pad[1], s.pad[2], t.threads));
  ASSERT_TRUE(winograd_applies(table, s));
  int64_t input_stride = s.input_channels + t.gap;
  int64_t output_stride = s.output_channels + t.gap;
  int64_t input_pixels = s.batch * s.input[1] * s.input[2];
  Guarded input(input_pixels == 0 ? 0 : input_pixels * input_stride - t.gap, random);
  Guarded weights(s.output_channels * s.input_channels * 9, random);
  Guarded bias(s.output_channels, random);
  Guarded output(s.output_pixels() == 0 ? 0 : s.output_pixels() * output_stride - t.gap);
  output.fill(untouched);
  Guarded packed(static_cast<int64_t>(transformed ? winograd_weight_elements(table, s, t.weights)
                                                  : packed_convolution_elements(table, s)));
  if (transformed)
    winograd_transform_weights(table, s, t.weights, weights.data(), packed.data());
  else
    pack_convolution(table, s, weights.data(), packed.data());
  void* buffers[] = {output.data()};
  int64_t sizes[] = {output_stride};
  bool epilogue = t.threads > 1;
  Convolution convolution{.shape = s,
                          .input = input.data(),
                          .input_pixel_stride = input_stride,
                          .packed_weights = packed.data(),
                          .bias = t.gap ? nullptr : bias.data(),
                          .output = output.data(),
                          .output_pixel_stride = output_stride,
                          .epilogue = {.function = epilogue ? add_one : nullptr, .buffers = buffers, .sizes = sizes}};
  WinogradPlan plan = plan_winograd(table, convolution, t.weights, t.threads);
  TestScratch memory(plan.memory_bytes);
  for (int64_t task = plan.weight_tasks; task-- > 0;)
    run_winograd_weights(table, convolution, plan, task, task + 1, memory.data());
  for (int64_t task = plan.tasks; task-- > 0;) {
    TestScratch scratch(plan.scratch_bytes);
    run_winograd(table, convolution, plan, task, task + 1, memory.data(), scratch.data());
  }
  compare(t, convolution, weights.data(), output, epilogue ? 1 : 0);
}

// All forms of weights.
void check_all(const KernelTable& table, Case t, Random& random) {
  for (WinogradWeights weights : {WinogradWeights::transformed, WinogradWeights::packed,
                                  WinogradWeights::transformed_for_six, WinogradWeights::packed_for_six}) {
    if (is_for_six(weights) && t.shape.stride[1] == 2) continue;
    t.weights = weights;
    check(table, t, random);
  }
}

Case image(int64_t height, int64_t width, int64_t channels, int64_t filters, int64_t pad, int64_t stride = 1) {
  Case t{.shape = {.input_channels = channels,
                   .output_channels = filters,
                   .input = {1, height, width},
                   .kernel = {1, 3, 3},
                   .stride = {1, stride, stride},
                   .pad = {0, pad, pad}}};
  set_output(t.shape, {0, pad, pad});
  return t;
}

TEST(Winograd, EverySizeOfImage) {
  Random random(21);
  for (const KernelTable* table : tested_tables())
    for (int64_t height = 0; height <= 9; ++height)
      for (int64_t width = 0; width <= 13; ++width) check_all(*table, image(height, width, 17, 21, 1), random);
}

TEST(Winograd, EverySizeOfImageWithStrideTwo) {
  Random random(23);
  for (const KernelTable* table : tested_tables())
    for (int64_t height = 0; height <= 19; ++height)
      for (int64_t width = 0; width <= 11; ++width) check_all(*table, image(height, width, 17, 21, 1, 2), random);
}

TEST(Winograd, RandomShapes) {
  Random random(22);
  for (int i = 0; i < 120; ++i) {
    Case t = image(pick(random, 1, 24), pick(random, 1, 24), pick(random, 16, 150), pick(random, 16, 70),
                   pick(random, 0, 3), pick(random, 1, 2));
    t.shape.batch = pick(random, 1, 3);
    t.gap = pick(random, 0, 2);
    t.threads = static_cast<int>(pick(random, 1, 4));
    for (const KernelTable* table : tested_tables()) check_all(*table, t, random);
  }
}

// Of images with several blocks of tiles.
TEST(Winograd, WeightsAreTransformedOnceForAllBlocks) {
  Random random(24);
  for (const KernelTable* table : tested_tables()) {
    for (int64_t stride : {1, 2}) {
      Case t = image(54 * stride, 54, 136, 17, 1, stride);
      t.threads = static_cast<int>(stride);
      for (WinogradWeights weights : {WinogradWeights::packed, WinogradWeights::packed_for_six}) {
        t.weights = weights;
        if (is_for_six(weights) && stride == 2) continue;
        EXPECT_GT(plan_winograd(*table, {.shape = t.shape}, weights, 1).weight_tasks, 0) << table->name;
        check(*table, t, random);
      }
    }
  }
}

TEST(Winograd, WeightsOfOneBlockOrManyChannelsAreTransformedByParts) {
  for (const KernelTable* table : tested_tables()) {
    for (const ConvolutionShape& shape : {image(14, 14, 256, 256, 1).shape, image(128, 128, 512, 512, 1).shape}) {
      WinogradPlan plan = plan_winograd(*table, {.shape = shape}, WinogradWeights::packed, 1);
      EXPECT_EQ(plan.weight_tasks, 0);
      EXPECT_EQ(plan.memory_bytes, 0u);
    }
  }
}

TEST(Winograd, OnlyWhereItApplies) {
  const KernelTable& kernels = table(best_isa());
  ConvolutionShape fits = image(56, 56, 64, 64, 1).shape;
  EXPECT_TRUE(winograd_applies(kernels, fits));
  EXPECT_TRUE(winograd_wins(kernels, fits, WinogradWeights::transformed));
  ConvolutionShape strided = fits;
  strided.stride = {1, 2, 1};
  EXPECT_FALSE(winograd_applies(kernels, strided));
  strided.stride = {1, 3, 3};
  EXPECT_FALSE(winograd_applies(kernels, strided));
  ConvolutionShape by_two = image(80, 80, 128, 128, 1, 2).shape;
  EXPECT_TRUE(winograd_applies(kernels, by_two));
  EXPECT_TRUE(winograd_wins(kernels, by_two, WinogradWeights::transformed));
  EXPECT_FALSE(winograd_wins(kernels, image(14, 14, 512, 512, 1, 2).shape, WinogradWeights::transformed));
  ConvolutionShape dilated = fits;
  dilated.dilation = {1, 2, 2};
  EXPECT_FALSE(winograd_applies(kernels, dilated));
  ConvolutionShape grouped = fits;
  grouped.groups = 2;
  EXPECT_FALSE(winograd_applies(kernels, grouped));
  EXPECT_FALSE(winograd_applies(kernels, image(56, 56, 3, 64, 1).shape));
  EXPECT_FALSE(winograd_wins(kernels, image(1, 1, 512, 512, 1).shape, WinogradWeights::transformed));
}

// With few pixels, reading four times the weights takes longer than transforming them; with many, their transform is
// repeated for each block of tiles.
TEST(Winograd, LargerTilesWhereTheyWin) {
  const KernelTable& kernels = table(best_isa());
  if (kernels.lanes < 16) GTEST_SKIP() << "the sizes below are those of 16 lanes";
  EXPECT_TRUE(wide_winograd_wins(kernels, image(256, 256, 64, 64, 1).shape));
  EXPECT_TRUE(wide_winograd_wins(kernels, image(128, 128, 64, 64, 1).shape));   // with caches of any size
  EXPECT_FALSE(wide_winograd_wins(kernels, image(16, 16, 64, 64, 1).shape));    // tiles reach over the edge
  EXPECT_FALSE(wide_winograd_wins(kernels, image(20, 20, 256, 256, 1).shape));  // weights come from memory
  EXPECT_FALSE(wide_winograd_wins(kernels, image(256, 256, 64, 64, 1, 2).shape));
}

TEST(Winograd, TransformsWeightsWhereThatWins) {
  const KernelTable& kernels = table(best_isa());
  // Where products take half the time, transforms of so many weights do not pay.
  bool is_intel = kernels.lanes == 16 && wide_units() == WideUnits::intel;
  EXPECT_EQ(winograd_wins(kernels, image(7, 7, 512, 512, 1).shape, WinogradWeights::packed), !is_intel);
  EXPECT_TRUE(winograd_wins(kernels, image(14, 14, 256, 256, 1).shape, WinogradWeights::packed));
  EXPECT_FALSE(winograd_wins(kernels, image(4, 4, 512, 512, 1).shape, WinogradWeights::packed));
}

}  // namespace
}  // namespace selkie::kernels
