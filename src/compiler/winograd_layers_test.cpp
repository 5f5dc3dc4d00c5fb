// Which layers keep transformed weights, under several bounds.
#include "compiler/winograd_layers.h"

#include <gtest/gtest.h>

namespace selkie::compiler {
namespace {

struct Layers {
  ir::Constant small_weights, large_weights;
  std::vector<WinogradLayer> all;

  static WinogradLayer layer(ir::Constant& weights, int64_t channels, int64_t side) {
    weights.dims = {channels, channels, 3, 3};
    return {.weights = &weights,
            .shape = {.input_channels = channels, .output_channels = channels, .kernel = {1, 3, 3}, .pad = {0, 1, 1}},
            .output = {1, side, side}};
  }
  Layers() : all{layer(large_weights, 128, 16), layer(small_weights, 64, 64)} {}
};

TEST(WinogradLayers, AllThatPayWithoutABound) {
  Layers layers;
  for (const KeptWeights& kept : choose_winograd(layers.all, size_t{1} << 40)) EXPECT_TRUE(kept.transformed);
}

TEST(WinogradLayers, NoneWithoutMemory) {
  Layers layers;
  for (const KeptWeights& kept : choose_winograd(layers.all, 0)) EXPECT_EQ(kept, KeptWeights{});
}

TEST(WinogradLayers, ThoseThatSaveMostPerByteFirst) {
  Layers layers;
  std::vector<KeptWeights> kept = choose_winograd(layers.all, size_t{64} * 64 * 64 * sizeof(float));
  EXPECT_FALSE(kept[0].transformed);
  EXPECT_TRUE(kept[1].transformed);
}

// Larger tiles need more memory. Where they save more time, the processor decides.
TEST(WinogradLayers, LargerTilesOnlyWithMemoryForThem) {
  using Form = kernels::WinogradWeights;
  int found = 0;
  for (auto [channels, side] : {std::pair<int64_t, int64_t>{64, 64}, {128, 24}, {128, 36}, {128, 40}}) {
    ir::Constant weights;
    std::vector<WinogradLayer> one{Layers::layer(weights, channels, side)};
    auto chosen = [&](size_t bytes) { return choose_winograd(one, bytes)[0].transformed; };
    if (chosen(size_t{1} << 40) == Form::transformed_for_six) ++found;
    EXPECT_NE(chosen(static_cast<size_t>(channels * channels) * 40 * sizeof(float)), Form::transformed_for_six);
  }
  EXPECT_GT(found, 0);
}

TEST(WinogradLayers, WeightsOfTwoLayersArePaidOnce) {
  Layers layers;
  std::vector<WinogradLayer> twice{layers.all[1], layers.all[1]};
  std::vector<KeptWeights> kept = choose_winograd(twice, size_t{64} * 64 * 64 * sizeof(float));
  EXPECT_TRUE(kept[0].transformed);
  EXPECT_EQ(kept[0], kept[1]);
}

}  // namespace
}  // namespace selkie::compiler
