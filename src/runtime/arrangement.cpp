#include "runtime/arrangement.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace selkie::runtime {
namespace {

// Statements "the first lies below the second" about pairs, some of which are known to be equal or opposite.
class Statements {
 public:
  explicit Statements(size_t count) : parent_(count), is_opposite_(count, false) {
    std::iota(parent_.begin(), parent_.end(), uint32_t{0});
  }

  // Of whose class it is one, and whether it is the opposite of that.
  std::pair<uint32_t, bool> root(uint32_t statement) {
    uint32_t top = statement;
    bool is_opposite = false;
    for (; parent_[top] != top; top = parent_[top]) is_opposite ^= is_opposite_[top];
    // All on the way point there from now on.
    bool rest = is_opposite;
    while (parent_[statement] != top && statement != top) {
      uint32_t next = parent_[statement];
      bool own = is_opposite_[statement];
      parent_[statement] = top;
      is_opposite_[statement] = rest;
      rest ^= own;
      statement = next;
    }
    return {top, is_opposite};
  }

  // False if they are known to be otherwise.
  bool relate(uint32_t a, uint32_t b, bool are_opposite) {
    auto [a_root, a_opposite] = root(a);
    auto [b_root, b_opposite] = root(b);
    bool difference = a_opposite ^ b_opposite ^ are_opposite;
    if (a_root == b_root) return !difference;
    parent_[b_root] = a_root;
    is_opposite_[b_root] = difference;
    return true;
  }

 private:
  std::vector<uint32_t> parent_;
  std::vector<bool> is_opposite_;
};

class Orientation {
 public:
  Orientation(std::span<const Lifetime> lifetimes, const Neighbours& neighbours)
      : lifetimes_(lifetimes), neighbours_(neighbours), pairs_(neighbours.all.size()) {
    number_pairs();
  }

  std::optional<std::vector<uint32_t>> find() {
    Statements statements(count_);
    for (uint32_t i = 0; i < lifetimes_.size(); ++i)
      if (!decide_around(i, statements)) return std::nullopt;
    choose(statements);
    return sorted();
  }

 private:
  // The statement about a pair is that the one of lower number lies below.
  void number_pairs() {
    std::vector<uint32_t> next(neighbours_.begin.begin(), neighbours_.begin.end());
    // Neighbours are in order of their numbers, so that those before a tensor are met in that order.
    for (uint32_t i = 0; i < lifetimes_.size(); ++i)
      for (uint32_t at = neighbours_.begin[i]; at < neighbours_.begin[i + 1]; ++at) {
        uint32_t other = neighbours_.all[at];
        if (other < i) continue;
        pairs_[at] = pairs_[next[other]++] = count_++;
      }
  }

  // Neighbours that are not in use together lie on one side of a tensor. All that are in such a pair are linked by two
  // of them: the one that ends first and the one that begins last.
  bool decide_around(uint32_t tensor, Statements& statements) {
    std::span<const uint32_t> others = neighbours_.of(tensor);
    if (others.empty()) return true;
    auto first = std::ranges::min_element(others, {}, [&](uint32_t n) { return lifetimes_[n].last; });
    auto last = std::ranges::max_element(others, {}, [&](uint32_t n) { return lifetimes_[n].first; });
    if (lifetimes_[*first].last >= lifetimes_[*last].first) return true;
    auto relate = [&](auto a, auto b) {
      uint32_t begin = neighbours_.begin[tensor];
      return statements.relate(pairs_[begin + static_cast<uint32_t>(a - others.begin())],
                               pairs_[begin + static_cast<uint32_t>(b - others.begin())],
                               (*a < tensor) != (*b < tensor));
    };
    for (auto other = others.begin(); other != others.end(); ++other) {
      if (lifetimes_[*other].last < lifetimes_[*last].first && !relate(other, last)) return false;
      if (lifetimes_[*other].first > lifetimes_[*first].last && !relate(other, first)) return false;
    }
    return true;
  }

  // Each class as most of its pairs would like it.
  void choose(Statements& statements) {
    std::vector<int> votes(count_, 0);
    auto for_each_pair = [&](auto fn) {
      for (uint32_t i = 0; i < lifetimes_.size(); ++i)
        for (uint32_t at = neighbours_.begin[i]; at < neighbours_.begin[i + 1]; ++at)
          if (neighbours_.all[at] > i) fn(i, neighbours_.all[at], pairs_[at]);
    };
    auto length = [&](uint32_t i) { return lifetimes_[i].last - lifetimes_[i].first; };
    for_each_pair([&](uint32_t a, uint32_t b, uint32_t pair) {
      auto [root, is_opposite] = statements.root(pair);
      votes[root] += (length(a) >= length(b)) != is_opposite ? 1 : -1;
    });
    is_below_.resize(count_);
    for_each_pair([&](uint32_t, uint32_t, uint32_t pair) {
      auto [root, is_opposite] = statements.root(pair);
      is_below_[pair] = (votes[root] >= 0) != is_opposite;
    });
  }

  bool lies_below(uint32_t tensor, uint32_t other, uint32_t pair) const { return is_below_[pair] == (tensor < other); }

  // Nothing if the choices contradict each other.
  std::optional<std::vector<uint32_t>> sorted() const {
    std::vector<uint32_t> below(lifetimes_.size(), 0);  // that are not placed yet
    auto for_each_above = [&](uint32_t tensor, auto fn) {
      for (uint32_t at = neighbours_.begin[tensor]; at < neighbours_.begin[tensor + 1]; ++at)
        if (lies_below(tensor, neighbours_.all[at], pairs_[at])) fn(neighbours_.all[at]);
    };
    for (uint32_t i = 0; i < lifetimes_.size(); ++i) for_each_above(i, [&](uint32_t other) { ++below[other]; });
    std::queue<uint32_t> ready;
    for (uint32_t i = 0; i < lifetimes_.size(); ++i)
      if (below[i] == 0) ready.push(i);
    std::vector<uint32_t> out;
    while (!ready.empty()) {
      uint32_t next = ready.front();
      ready.pop();
      out.push_back(next);
      for_each_above(next, [&](uint32_t other) {
        if (--below[other] == 0) ready.push(other);
      });
    }
    return out.size() == lifetimes_.size() ? std::optional(std::move(out)) : std::nullopt;
  }

  std::span<const Lifetime> lifetimes_;
  const Neighbours& neighbours_;
  std::vector<uint32_t> pairs_;  // numbers of the pairs, beside the neighbours
  uint32_t count_ = 0;
  std::vector<bool> is_below_;
};

}  // namespace

std::optional<std::vector<uint32_t>> arrangement_for_all_sizes(std::span<const Lifetime> lifetimes,
                                                               const Neighbours& neighbours) {
  return Orientation(lifetimes, neighbours).find();
}

}  // namespace selkie::runtime
