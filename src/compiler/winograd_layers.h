// Which convolutions of a model keep weights that are transformed for Winograd's kernel. These are four or seven times
// as many, so that all of a model's share a bound; a layer without them transforms its weights as it runs.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/module.h"
#include "kernels/winograd.h"

namespace selkie::compiler {

struct WinogradLayer {
  const ir::Constant* weights;
  kernels::ConvolutionShape shape;               // without the sizes of images
  std::array<std::optional<int64_t>, 3> output;  // these, as far as they are known
};

struct KeptWeights {
  bool direct = true;  // for the direct kernel, and to be transformed in a run
  std::optional<kernels::WinogradWeights> transformed = {};

  bool operator==(const KeptWeights&) const = default;
};

// For each layer. What they keep is at most so many bytes more than if all kept only those of the direct kernel.
std::vector<KeptWeights> choose_winograd(std::span<const WinogradLayer> layers, size_t most_bytes);

}  // namespace selkie::compiler
