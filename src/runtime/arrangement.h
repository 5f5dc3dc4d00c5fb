// Which tensor of the arena lies below which, such that no sizes need another plan.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/arena.h"

namespace selkie::runtime {

// Pairs of tensors that are in use together, as lists per tensor.
struct Neighbours {
  std::vector<uint32_t> begin;  // of each tensor's list, and the end of the last one
  std::vector<uint32_t> all;

  std::span<const uint32_t> of(size_t tensor) const {
    return std::span(all).subspan(begin[tensor], begin[tensor + 1] - begin[tensor]);
  }
};

// The tensors from the lowest to the highest, such that each pile of tensors that lie on top of each other is in use at
// one time. Then its height is what some instruction needs at least, at all sizes. Nothing if there is none, or none is
// found.
//
// A tensor with neighbours that are not in use together must lie above both or below both: this is a transitive
// orientation of a comparability graph (Golumbic, Algorithmic Graph Theory and Perfect Graphs, chapter 5). Pairs that
// decide each other form classes; where a class is free to choose, what lives longer lies below.
std::optional<std::vector<uint32_t>> arrangement_for_all_sizes(std::span<const Lifetime> lifetimes,
                                                               const Neighbours& neighbours);

}  // namespace selkie::runtime
