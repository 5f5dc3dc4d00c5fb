// Chains of convolutions against the same convolutions one by one, and where they are chosen.
#include "kernels/chain.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <deque>

#include "kernels/convolution_reference.h"
#include "kernels/depthwise.h"

namespace selkie::kernels {
namespace {

using namespace testing;
using Version = ConvolutionVersion;

struct Layer {
  int64_t filters;  // 0: depthwise
  int64_t kernel, stride = 1, dilation = 1, pad = 0;
};

struct Image {
  int64_t batch, channels, height, width;
};

std::vector<ConvolutionShape> shapes_of(const Image& image, std::span<const Layer> layers) {
  std::vector<ConvolutionShape> out;
  ConvolutionShape before{
      .batch = image.batch, .output_channels = image.channels, .output = {1, image.height, image.width}};
  for (const Layer& layer : layers) {
    ConvolutionShape s{.batch = image.batch,
                       .input_channels = before.output_channels,
                       .output_channels = layer.filters ? layer.filters : before.output_channels,
                       .groups = layer.filters ? 1 : before.output_channels,
                       .input = before.output,
                       .kernel = {1, layer.kernel, layer.kernel},
                       .stride = {1, layer.stride, layer.stride},
                       .dilation = {1, layer.dilation, layer.dilation},
                       .pad = {0, layer.pad, layer.pad}};
    set_output(s, s.pad);
    out.push_back(s);
    before = s;
  }
  return out;
}

Version version_of(const ConvolutionShape& s) { return is_depthwise(s) ? Version::depthwise : Version::direct; }

// Each link has its weights, a bias, bounds and an epilogue; the last one an addend besides.
class Chained {
 public:
  Chained(const KernelTable& table, std::span<const ConvolutionShape> shapes, Random& random)
      : table_(table), input_(floats_of(shapes[0].batch, shapes[0].input, shapes[0].input_channels), random) {
    const float* from = input_.data();
    for (const ConvolutionShape& s : shapes) {
      bool is_last = &s == &shapes.back();
      Made& made = made_.emplace_back(s, random);
      Guarded weights(s.output_channels * s.input_channels / s.groups * s.taps(), random);
      bool depthwise = is_depthwise(s);
      made.packed.resize(depthwise ? packed_depthwise_elements(s) : packed_convolution_elements(table, s));
      depthwise ? pack_depthwise(s, weights.data(), made.packed.data())
                : pack_convolution(table, s, weights.data(), made.packed.data());
      made.buffers[0] = made.output.data();
      made.buffers[1] = made.shifts.data();
      made.sizes[0] = s.output_channels;
      Convolution c{.shape = s,
                    .input = from,
                    .input_pixel_stride = s.input_channels,
                    .packed_weights = made.packed.data(),
                    .bias = made.bias.data(),
                    .output = made.output.data(),
                    .output_pixel_stride = s.output_channels,
                    .finish = {.addend = is_last && !depthwise ? made.addend.data() : nullptr, .low = -0.7f},
                    .epilogue = {.function = shift_rows, .buffers = made.buffers, .sizes = made.sizes}};
      links_.push_back({.convolution = c, .version = version_of(s), .epilogue_buffers = 2, .output_buffers = 1});
      from = made.output.data();
    }
  }

  // The last output, one convolution after the other.
  std::vector<float> one_by_one() {
    for (const ChainLink& link : links_) {
      const Convolution& c = link.convolution;
      if (link.version == Version::depthwise) {
        DepthwisePlan plan = plan_depthwise(c, 1);
        TestScratch scratch(plan.scratch_bytes);
        run_depthwise(table_, c, plan, 0, plan.tasks, scratch.data());
      } else {
        ConvolutionPlan plan = plan_convolution(table_, c, 1);
        TestScratch scratch(plan.scratch_bytes);
        run_convolution(table_, c, plan, 0, plan.tasks(), scratch.data());
      }
    }
    return taken();
  }

  std::vector<float> together(int threads, int64_t lines) {
    ChainPlan plan = plan_chain(table_, links_, threads, lines);
    for (int64_t task = plan.tasks; task-- > 0;) {
      TestScratch scratch(plan.scratch_bytes);
      run_chain(table_, links_, plan, task, task + 1, scratch.data());
    }
    for (size_t i = 0; i + 1 < made_.size(); ++i)
      for (int64_t j = 0; j < made_[i].output.size(); ++j)
        if (made_[i].output[j] != untouched) ADD_FAILURE() << "link " << i << " wrote to memory that it does not have";
    return taken();
  }

 private:
  static constexpr float untouched = 12345.0f;
  struct Made {
    Guarded bias, output, addend, shifts;
    std::vector<float> packed;
    void* buffers[2];
    int64_t sizes[1];

    Made(const ConvolutionShape& s, Random& random)
        : bias(s.output_channels, random),
          output(floats_of(s.batch, s.output, s.output_channels)),
          addend(floats_of(s.batch, s.output, s.output_channels), random),
          shifts(s.output_pixels(), random) {
      output.fill(untouched);
    }
  };

  static int64_t floats_of(int64_t batch, const std::array<int64_t, 3>& size, int64_t channels) {
    return batch * size[0] * size[1] * size[2] * channels;
  }

  // Adds one number to each row: it must be that of the whole output.
  static void shift_rows(void* const* buffers, const int64_t* sizes, const int64_t* ranges) {
    auto* c = static_cast<float*>(buffers[0]);
    const auto* shifts = static_cast<const float*>(buffers[1]);
    for (int64_t i = ranges[0]; i < ranges[1]; ++i)
      for (int64_t j = ranges[2]; j < ranges[3]; ++j) c[i * sizes[0] + j] += shifts[i];
  }

  std::vector<float> taken() {
    Guarded& last = made_.back().output;
    std::vector<float> out(last.data(), last.data() + last.size());
    for (Made& made : made_) made.output.fill(untouched);
    return out;
  }

  const KernelTable& table_;
  Guarded input_;
  std::deque<Made> made_;
  std::vector<ChainLink> links_;
};

void check(const Image& image, std::span<const Layer> layers, Random& random) {
  std::vector<ConvolutionShape> shapes = shapes_of(image, layers);
  for (const ConvolutionShape& s : shapes)
    if (s.output_pixels() == 0) return;
  for (const KernelTable* table : tested_tables()) {
    Chained chained(*table, shapes, random);
    std::vector<float> want = chained.one_by_one();
    for (int threads : {1, 3}) {
      int64_t lines = pick(random, 1, shapes.back().output[1] + 1);
      SCOPED_TRACE(fmt::format("{}: {} layers on {} images of {}x{}x{}, {} lines, {} threads", table->name,
                               layers.size(), image.batch, image.height, image.width, image.channels, lines, threads));
      std::vector<float> got = chained.together(threads, lines);
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::abs(want[i]))) << "element " << i;
    }
  }
}

TEST(Chain, SeparableBlocks) {
  Random random(1);
  Layer inverted[] = {{.filters = 20, .kernel = 1}, {.filters = 0, .kernel = 3, .pad = 1}, {.filters = 9, .kernel = 1}};
  Layer strided[] = {
      {.filters = 33, .kernel = 1}, {.filters = 0, .kernel = 5, .stride = 2, .pad = 2}, {.filters = 16, .kernel = 1}};
  Layer stem[] = {{.filters = 16, .kernel = 3, .stride = 2, .pad = 1},
                  {.filters = 0, .kernel = 3, .pad = 1},
                  {.filters = 24, .kernel = 1},
                  {.filters = 0, .kernel = 3, .stride = 2, .pad = 1},
                  {.filters = 40, .kernel = 1}};
  check({.batch = 1, .channels = 7, .height = 12, .width = 9}, inverted, random);
  check({.batch = 3, .channels = 8, .height = 13, .width = 10}, inverted, random);
  check({.batch = 2, .channels = 5, .height = 17, .width = 21}, strided, random);
  check({.batch = 2, .channels = 3, .height = 37, .width = 30}, stem, random);
  check({.batch = 1, .channels = 3, .height = 1, .width = 1}, stem, random);
}

TEST(Chain, RandomLayers) {
  Random random(2);
  for (int i = 0; i < 60; ++i) {
    std::vector<Layer> layers(static_cast<size_t>(pick(random, 2, 5)));
    for (Layer& layer : layers)
      layer = {.filters = pick(random, 0, 1) ? pick(random, 1, 40) : 0,
               .kernel = pick(random, 1, 4),
               .stride = pick(random, 1, 5),
               .dilation = pick(random, 1, 2),
               .pad = pick(random, 0, 6)};
    Image image{.batch = pick(random, 1, 3),
                .channels = pick(random, 1, 36),
                .height = pick(random, 1, 24),
                .width = pick(random, 1, 18)};
    check(image, layers, random);
  }
}

std::vector<size_t> cut(const Image& image, std::span<const Layer> layers, int threads = 1) {
  std::vector<ConvolutionShape> shapes = shapes_of(image, layers);
  std::vector<Version> versions;
  for (const ConvolutionShape& s : shapes) versions.push_back(version_of(s));
  return cut_into_chains(shapes, versions, threads);
}

// An image whose 96 channels leave the second-level cache.
int64_t large_side() {
  int64_t side = 16;
  while (side * side * 96 * 4 <= cache_sizes().l2) side *= 2;
  return side;
}

TEST(Chain, WhereResultsLeaveTheCache) {
  using Links = std::vector<size_t>;
  int64_t side = large_side();
  Layer block[] = {{.filters = 96, .kernel = 1}, {.filters = 0, .kernel = 3, .pad = 1}, {.filters = 24, .kernel = 1}};
  Layer products[] = {{.filters = 96, .kernel = 1}, {.filters = 96, .kernel = 1}};
  Layer heavy[] = {{.filters = 0, .kernel = 3, .pad = 1}, {.filters = 4096, .kernel = 1}};
  EXPECT_EQ(cut({.batch = 1, .channels = 16, .height = side, .width = side}, block), Links{3});
  EXPECT_EQ(cut({.batch = 1, .channels = 16, .height = 8, .width = 8}, block), (Links{1, 1, 1}));
  EXPECT_EQ(cut({.batch = 1, .channels = 16, .height = side, .width = side}, products), (Links{1, 1}));
  EXPECT_EQ(cut({.batch = 1, .channels = 4096, .height = side, .width = side}, heavy), (Links{1, 1}));
}

TEST(Chain, NotWhereThreadsHaveFewLines) {
  using Links = std::vector<size_t>;
  Layer block[] = {{.filters = 96, .kernel = 1}, {.filters = 0, .kernel = 3, .pad = 1}};
  Image low{.batch = 1, .channels = 16, .height = 60, .width = cache_sizes().l2 / (60 * 96 * 4) + 1};
  EXPECT_EQ(cut(low, block, 1), Links{2});
  EXPECT_EQ(cut(low, block, 2), (Links{1, 1}));
  low.batch = 2;
  EXPECT_EQ(cut(low, block, 2), Links{2});
}

TEST(Chain, CutWhereLeastIsStored) {
  // What the second convolution makes is the largest of all; lines of all three would not fit.
  int64_t width = cache_sizes().l2 / 2 / (4 * 4 * 64);
  Layer layers[] = {{.filters = 0, .kernel = 3, .pad = 1},
                    {.filters = 64, .kernel = 1},
                    {.filters = 0, .kernel = 3, .stride = 2, .pad = 1}};
  EXPECT_EQ(cut({.batch = 1, .channels = 32, .height = 64, .width = width}, layers), (std::vector<size_t>{1, 2}));
}

TEST(Chain, NotOfOtherKernels) {
  int64_t side = large_side();
  Layer block[] = {{.filters = 96, .kernel = 1}, {.filters = 0, .kernel = 3, .pad = 1}};
  std::vector<ConvolutionShape> shapes = shapes_of({.batch = 1, .channels = 16, .height = side, .width = side}, block);
  std::vector<size_t> alone{1, 1};
  EXPECT_EQ(cut_into_chains(shapes, std::array{Version::strassen, Version::depthwise}, 1), alone);
  EXPECT_EQ(cut_into_chains(shapes, std::array{Version::direct, Version::grouped}, 1), alone);
}

}  // namespace
}  // namespace selkie::kernels
