#include "compiler/winograd_layers.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace selkie::compiler {
namespace {

using Form = kernels::WinogradWeights;

const kernels::KernelTable& table() { return kernels::table(kernels::best_isa()); }

// Transformed weights that are larger than this would be read from memory, not from a cache, each time.
constexpr size_t most_winograd_bytes = size_t{1} << 24;

// Weights of this size are kept for one kernel only, if that one wins nearly everywhere.
constexpr size_t least_single_bytes = size_t{1} << 18;
// And transformed ones of this size are not kept at all if they win only somewhere.
constexpr size_t most_second_bytes = size_t{1} << 23;

// Where Winograd's algorithm wins: at the given sizes, or where they are not known at those of common images.
struct WinogradWins {
  bool somewhere = false;
  bool everywhere = true;
  bool wide = true;  // wherever it wins, tiles of 6x6 outputs are faster than those of 4x4
};
WinogradWins winograd_wins(kernels::ConvolutionShape shape, const std::array<std::optional<int64_t>, 3>& output) {
  auto bytes = [&](Form form) { return kernels::winograd_weight_elements(table(), shape, form) * sizeof(float); };
  if (!kernels::winograd_applies(table(), shape) || bytes(Form::transformed) > most_winograd_bytes)
    return {.somewhere = false, .everywhere = false, .wide = false};
  WinogradWins wins{.wide = bytes(Form::transformed_for_six) <= most_winograd_bytes};
  for (int64_t side : {8, 16, 32, 64, 128}) {
    for (size_t i = 1; i < 3; ++i) shape.output[i] = shape.input[i] = output[i].value_or(side);
    bool here = kernels::winograd_wins(table(), shape, Form::transformed);
    wins.somewhere |= here;
    wins.everywhere &= here;
    wins.wide &= here && kernels::wide_winograd_wins(table(), shape);
  }
  if (bytes(Form::transformed) > most_second_bytes) wins.somewhere = wins.everywhere;
  return wins;
}

size_t bytes_of(const WinogradLayer& layer, Form form) {
  return kernels::winograd_weight_elements(table(), layer.shape, form) * sizeof(float);
}

// What a layer would keep if there were no bound, best first.
std::vector<KeptWeights> wishes(const WinogradLayer& layer) {
  WinogradWins wins = winograd_wins(layer.shape, layer.output);
  if (!wins.somewhere) return {};
  size_t direct = kernels::packed_convolution_elements(table(), layer.shape) * sizeof(float);
  bool both = !wins.everywhere || direct < least_single_bytes;
  std::vector<KeptWeights> out;
  if (wins.wide) out.push_back({.direct = both, .transformed = Form::transformed_for_six});
  out.push_back({.direct = both, .transformed = Form::transformed});
  return out;
}

// Layers by what a byte of their transformed weights saves, which grows with the pixels. Where these are not known,
// layers of fewer weights tend to have more.
std::vector<size_t> by_savings(std::span<const WinogradLayer> layers) {
  constexpr int64_t usual_side = 64;
  auto rank = [&](size_t i) {
    const WinogradLayer& layer = layers[i];
    int64_t pixels = layer.output[1].value_or(usual_side) * layer.output[2].value_or(usual_side);
    return std::pair(-pixels, element_count(layer.weights->dims));
  };
  std::vector<size_t> order(layers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

}  // namespace

std::vector<KeptWeights> choose_winograd(std::span<const WinogradLayer> layers, size_t most_bytes) {
  std::vector<KeptWeights> kept(layers.size());
  std::set<std::pair<const ir::Constant*, Form>> paid;  // by another layer with the same weights
  for (size_t i : by_savings(layers)) {
    const WinogradLayer& layer = layers[i];
    for (const KeptWeights& wish : wishes(layer)) {
      std::pair key(layer.weights, *wish.transformed);
      size_t bytes = paid.contains(key) ? 0 : bytes_of(layer, *wish.transformed);
      if (!wish.direct)
        bytes -= std::min(bytes, kernels::packed_convolution_elements(table(), layer.shape) * sizeof(float));
      if (bytes > most_bytes) continue;
      most_bytes -= bytes;
      paid.insert(key);
      kept[i] = wish;
      break;
    }
  }
  return kept;
}

}  // namespace selkie::compiler
