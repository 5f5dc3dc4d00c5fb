#include "compiler/winograd_layers.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

// Bytes more than if the layer kept only the weights of the direct kernel.
size_t more_bytes(const WinogradLayer& layer, const KeptWeights& kept) {
  size_t bytes = bytes_of(layer, *kept.transformed);
  if (!kept.direct)
    bytes -= std::min(bytes, kernels::packed_convolution_elements(table(), layer.shape) * sizeof(float));
  return bytes;
}

// Cycles of a run that a byte more saves, at usual sizes where they are not known: layers of many filters tend to have
// small images.
double saving_per_byte(const WinogradLayer& layer, const KeptWeights& wish) {
  constexpr int64_t usual_pixels = int64_t{1} << 19;  // times input channels
  kernels::ConvolutionShape shape = layer.shape;
  auto usual_side = static_cast<int64_t>(std::sqrt(usual_pixels / shape.input_channels));
  for (size_t i = 1; i < 3; ++i)
    shape.output[i] = shape.input[i] = layer.output[i].value_or(std::clamp<int64_t>(usual_side, 8, 128));
  double saving = kernels::winograd_saving(table(), shape, *wish.transformed);
  return saving / static_cast<double>(std::max<size_t>(more_bytes(layer, wish), 1));
}

struct Wish {
  size_t layer;
  KeptWeights weights;
  double saving_per_byte;
};

// Of all layers, what saves most per byte first, and nothing that saves none.
std::vector<Wish> by_savings(std::span<const WinogradLayer> layers) {
  std::vector<Wish> out;
  for (size_t i = 0; i < layers.size(); ++i)
    for (const KeptWeights& wish : wishes(layers[i]))
      out.push_back({.layer = i, .weights = wish, .saving_per_byte = saving_per_byte(layers[i], wish)});
  std::erase_if(out, [](const Wish& wish) { return wish.saving_per_byte <= 0; });
  std::ranges::stable_sort(out, std::greater(), &Wish::saving_per_byte);
  return out;
}

// A bound on memory, and what has been taken of it.
class Budget {
 public:
  Budget(std::span<const WinogradLayer> layers, size_t bytes) : layers_(layers), left_(bytes) {}

  // Layers that share their weights pay for a form of them once.
  bool pays_for(const Wish& wish) {
    const WinogradLayer& layer = layers_[wish.layer];
    size_t bytes = more_bytes(layer, wish.weights);
    std::pair key(layer.weights, *wish.weights.transformed);
    if (paid_.contains(key)) return true;
    if (bytes > left_) return false;
    left_ -= bytes;
    paid_.insert(key);
    return true;
  }
  // Instead of a smaller form, which no other layer may need.
  bool pays_for_larger(const Wish& wish, const KeptWeights& before) {
    const WinogradLayer& layer = layers_[wish.layer];
    if (std::ranges::count(layers_, layer.weights, &WinogradLayer::weights) > 1) return false;
    size_t bytes = more_bytes(layer, wish.weights);
    size_t freed = more_bytes(layer, before);
    if (bytes < freed || bytes - freed > left_) return false;
    left_ -= bytes - freed;
    return true;
  }

 private:
  std::span<const WinogradLayer> layers_;
  size_t left_;
  std::set<std::pair<const ir::Constant*, Form>> paid_;
};

}  // namespace

std::vector<KeptWeights> choose_winograd(std::span<const WinogradLayer> layers, size_t most_bytes) {
  std::vector<KeptWeights> kept(layers.size());
  Budget budget(layers, most_bytes);
  for (const Wish& wish : by_savings(layers)) {
    KeptWeights& chosen = kept[wish.layer];
    if (chosen.transformed ? budget.pays_for_larger(wish, chosen) : budget.pays_for(wish)) chosen = wish.weights;
  }
  return kept;
}

}  // namespace selkie::compiler
