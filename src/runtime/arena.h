// Where the tensors of a run lie in one block of memory: tensors that are never in use together may share addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace selkie::runtime {

struct Neighbours;

// The instructions between which a tensor is in use, both inclusive.
struct Lifetime {
  uint32_t first;
  uint32_t last;
};

// The instruction at which most bytes are in use, and how many: no plan needs less.
struct ArenaBound {
  int64_t bytes = 0;
  uint32_t at = 0;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // multiples of the alignment
  int64_t bytes = 0;
  ArenaBound bound;
  int searches = 0;  // orders in which tensors were placed; 0: an earlier arrangement served again
};

inline constexpr int64_t arena_alignment = 64;
inline int64_t aligned_bytes(int64_t bytes) {
  return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
}

// Plans for tensors whose lifetimes stay and whose sizes change. What follows from lifetimes is found once.
//
// Where an arrangement is found that reaches the bound at all sizes (arrangement.h), there is nothing to search: each
// tensor lies on top of those below it. Elsewhere tensors are placed in some order, each at the lowest place that is
// free while it lives, in several orders until one reaches the bound. That arrangement is kept, and taken at other
// sizes if it is nearly as good as can be there.
class ArenaPlanner {
 public:
  explicit ArenaPlanner(std::vector<Lifetime> lifetimes);

  ArenaPlan plan(std::span<const int64_t> bytes);
  ArenaBound bound(std::span<const int64_t> bytes) const;
  bool is_best_at_all_sizes() const { return is_best_at_all_sizes_; }

 private:
  class Search;
  bool is_together(size_t a, size_t b) const {
    return lifetimes_[a].first <= lifetimes_[b].last && lifetimes_[b].first <= lifetimes_[a].last;
  }
  template <class Function>
  void for_each_neighbour(size_t tensor, Function fn) const;
  void find_neighbours();
  std::optional<ArenaPlan> arranged_again(std::span<const int64_t> bytes, const ArenaBound& bound) const;
  void keep_arrangement(const ArenaPlan& plan, std::span<const int64_t> bytes);

  std::vector<Lifetime> lifetimes_;
  std::vector<uint32_t> by_first_, by_last_;
  std::shared_ptr<const Neighbours> neighbours_;  // null if these are so many that they are looked for each time
  std::vector<uint32_t> arrangement_;             // from the lowest to the highest; empty before the first plan
  bool is_best_at_all_sizes_ = false;
};

ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::span<const int64_t> bytes);

}  // namespace selkie::runtime
