#include "runtime/arena.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "runtime/arrangement.h"

namespace selkie::runtime {
namespace {

// An arrangement of other sizes serves again if it needs at most this much more than the bound.
constexpr double most_waste = 1.01;
// Of neighbours per tensor that are kept, on average.
constexpr size_t most_neighbours = 128;
// A search ends after so many looks at a neighbour, per tensor.
constexpr size_t most_visits = 10;
constexpr int64_t nowhere = -1;

std::vector<uint32_t> sorted_indices(size_t count, auto less) {
  std::vector<uint32_t> out(count);
  std::iota(out.begin(), out.end(), uint32_t{0});
  std::ranges::stable_sort(out, less);
  return out;
}

// Sorts numbers of tensors by keys, those of equal keys as they were. Sizes and offsets have few different bytes, which
// takes less time than comparisons.
class StableSort {
 public:
  template <class Key>
  void operator()(std::vector<uint32_t>& order, Key key) {
    items_.clear();
    uint64_t all = 0;
    for (uint32_t i : order) {
      items_.push_back({.key = key(i), .tensor = i});
      all |= items_.back().key;
    }
    if (items_.size() < least_counted) {
      insert_each();
    } else {
      for (int shift = 0; shift < 64 && all >> shift != 0; shift += 8)
        if ((all >> shift & 255) != 0) sort_by_byte(shift);
    }
    std::ranges::transform(items_, order.begin(), &Item::tensor);
  }

 private:
  static constexpr size_t least_counted = 64;
  struct Item {
    uint64_t key;
    uint32_t tensor;
  };

  void insert_each() {
    for (size_t i = 1; i < items_.size(); ++i) {
      Item item = items_[i];
      size_t at = i;
      for (; at > 0 && items_[at - 1].key > item.key; --at) items_[at] = items_[at - 1];
      items_[at] = item;
    }
  }
  void sort_by_byte(int shift) {
    std::array<uint32_t, 257> begin{};
    for (const Item& item : items_) ++begin[(item.key >> shift & 255) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    sorted_.resize(items_.size());
    for (const Item& item : items_) sorted_[begin[item.key >> shift & 255]++] = item;
    std::swap(items_, sorted_);
  }

  std::vector<Item> items_, sorted_;
};

}  // namespace

ArenaPlanner::ArenaPlanner(std::vector<Lifetime> lifetimes) : lifetimes_(std::move(lifetimes)) {
  by_first_ = sorted_indices(lifetimes_.size(),
                             [&](uint32_t a, uint32_t b) { return lifetimes_[a].first < lifetimes_[b].first; });
  by_last_ = sorted_indices(lifetimes_.size(),
                            [&](uint32_t a, uint32_t b) { return lifetimes_[a].last < lifetimes_[b].last; });
  find_neighbours();
  if (!neighbours_) return;
  if (auto found = arrangement_for_all_sizes(lifetimes_, *neighbours_)) {
    arrangement_ = std::move(*found);
    is_best_at_all_sizes_ = true;
  }
}

void ArenaPlanner::find_neighbours() {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  std::vector<uint32_t> alive;
  for (uint32_t i : by_first_) {
    std::erase_if(alive, [&](uint32_t other) { return lifetimes_[other].last < lifetimes_[i].first; });
    for (uint32_t other : alive) {
      pairs.emplace_back(i, other);
      pairs.emplace_back(other, i);
    }
    if (pairs.size() > most_neighbours * lifetimes_.size()) return;
    alive.push_back(i);
  }
  auto found = std::make_shared<Neighbours>();
  found->begin.assign(lifetimes_.size() + 1, 0);
  for (auto [a, b] : pairs) ++found->begin[a + 1];
  std::partial_sum(found->begin.begin(), found->begin.end(), found->begin.begin());
  std::ranges::sort(pairs);
  for (auto [a, b] : pairs) found->all.push_back(b);
  neighbours_ = std::move(found);
}

template <class Function>
void ArenaPlanner::for_each_neighbour(size_t tensor, Function fn) const {
  if (neighbours_) {
    for (uint32_t other : neighbours_->of(tensor)) fn(other);
    return;
  }
  for (uint32_t other = 0; other < lifetimes_.size(); ++other)
    if (other != tensor && is_together(tensor, other)) fn(other);
}

ArenaBound ArenaPlanner::bound(std::span<const int64_t> bytes) const {
  ArenaBound best;
  int64_t sum = 0;
  size_t ended = 0;
  for (uint32_t i : by_first_) {
    uint32_t at = lifetimes_[i].first;
    while (lifetimes_[by_last_[ended]].last < at) sum -= aligned_bytes(bytes[by_last_[ended++]]);
    sum += aligned_bytes(bytes[i]);
    if (sum > best.bytes) best = {.bytes = sum, .at = at};
  }
  return best;
}

// Places tensors in one order after another; each tells whether the bound is reached.
class ArenaPlanner::Search {
 public:
  Search(const ArenaPlanner& planner, std::span<const int64_t> bytes, const ArenaBound& bound)
      : planner_(planner), bytes_(bytes), places_(bytes.size()), taken_(bytes.size()) {
    best_.bound = bound;
    best_.offsets.reserve(bytes.size());
    sizes_.reserve(bytes.size());
    for (int64_t b : bytes) sizes_.push_back(aligned_bytes(b));
  }

  bool largest_first() {
    by_size_.resize(bytes_.size());
    std::iota(by_size_.begin(), by_size_.end(), uint32_t{0});
    int64_t largest = *std::ranges::max_element(sizes_);
    sort_(by_size_, [&](uint32_t i) { return static_cast<uint64_t>(largest - sizes_[i]) / arena_alignment; });
    order_ = by_size_;
    return place();
  }
  bool from_peak_outwards() {
    return place_by([&](uint32_t i) {
      auto [first, last] = planner_.lifetimes_[i];
      uint32_t peak = best_.bound.at;
      return first > peak ? first - peak : last < peak ? peak - last : 0;
    });
  }
  bool longest_first() {
    auto length = [&](uint32_t i) { return planner_.lifetimes_[i].last - planner_.lifetimes_[i].first; };
    uint32_t longest = 0;
    for (uint32_t i : by_size_) longest = std::max(longest, length(i));
    return place_by([&](uint32_t i) { return longest - length(i); });
  }
  // What lies highest comes first.
  bool repair() {
    auto at = std::ranges::find(order_, highest_);
    std::rotate(order_.begin(), at, at + 1);
    return place();
  }
  ArenaPlan take_best() { return std::move(best_); }

 private:
  // Of those of equal keys, the largest first.
  template <class Key>
  bool place_by(Key key) {
    order_ = by_size_;
    sort_(order_, key);
    return place();
  }

  bool place() {
    std::ranges::fill(places_, Place{.begin = nowhere, .end = nowhere});
    int64_t height = 0;
    for (uint32_t i : order_) {
      int64_t offset = lowest_place(i);
      places_[i] = {.begin = offset, .end = offset + sizes_[i]};
      if (places_[i].end <= height) continue;
      height = places_[i].end;
      highest_ = i;
    }
    if (best_.searches++ == 0 || height < best_.bytes) {
      best_.bytes = height;
      best_.offsets.clear();
      for (const Place& place : places_) best_.offsets.push_back(place.begin);
    }
    return best_.bytes == best_.bound.bytes;
  }

  // Each conflict moves it up to the end of what is in its way, below which there is no place. Conflicts are few, so
  // that looking at all again takes less than sorting them.
  int64_t lowest_place(uint32_t tensor) {
    size_t count = 0;
    planner_.for_each_neighbour(tensor, [&](uint32_t n) {
      taken_[count] = places_[n];
      count += places_[n].begin != nowhere ? 1 : 0;
    });
    int64_t size = sizes_[tensor];
    int64_t offset = 0;
    for (bool is_free = false; !is_free;) {
      is_free = true;
      for (const Place& taken : std::span(taken_).first(count)) {
        if (taken.begin >= offset + size || taken.end <= offset) continue;
        offset = taken.end;
        is_free = false;
      }
    }
    return offset;
  }

  struct Place {
    int64_t begin, end;
  };
  const ArenaPlanner& planner_;
  std::span<const int64_t> bytes_;
  ArenaPlan best_;
  std::vector<int64_t> sizes_;
  std::vector<uint32_t> order_, by_size_;
  StableSort sort_;
  uint32_t highest_ = 0;
  std::vector<Place> places_, taken_;
};

ArenaPlan ArenaPlanner::plan(std::span<const int64_t> bytes) {
  if (bytes.empty()) return {};
  ArenaBound least = bound(bytes);
  if (std::optional<ArenaPlan> again = arranged_again(bytes, least)) return std::move(*again);
  CHECK(!is_best_at_all_sizes_, "an arrangement for all sizes needs more than {} bytes", least.bytes);
  Search search(*this, bytes, least);
  using Order = bool (Search::*)();
  constexpr Order orders[] = {&Search::largest_first, &Search::from_peak_outwards,
                              &Search::longest_first, &Search::repair,
                              &Search::repair,        &Search::repair};
  size_t visits = 0;
  for (Order order : orders) {
    if ((search.*order)()) break;
    visits += neighbours_ ? neighbours_->all.size() : lifetimes_.size() * lifetimes_.size();
    if (visits > most_visits * lifetimes_.size()) break;
  }
  ArenaPlan plan = search.take_best();
  keep_arrangement(plan, bytes);
  return plan;
}

std::optional<ArenaPlan> ArenaPlanner::arranged_again(std::span<const int64_t> bytes, const ArenaBound& bound) const {
  if (arrangement_.empty()) return std::nullopt;
  ArenaPlan plan{.offsets = std::vector<int64_t>(bytes.size(), nowhere), .bytes = 0, .bound = bound};
  for (uint32_t i : arrangement_) {
    int64_t offset = 0;
    for_each_neighbour(i, [&](uint32_t n) {
      if (plan.offsets[n] != nowhere) offset = std::max(offset, plan.offsets[n] + aligned_bytes(bytes[n]));
    });
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + aligned_bytes(bytes[i]));
  }
  bool is_good = static_cast<double>(plan.bytes) <= most_waste * static_cast<double>(bound.bytes);
  return is_good ? std::optional(std::move(plan)) : std::nullopt;
}

// Of two at one place, one has no bytes here; it lies below, wherever it has some.
void ArenaPlanner::keep_arrangement(const ArenaPlan& plan, std::span<const int64_t> bytes) {
  arrangement_.resize(bytes.size());
  std::iota(arrangement_.begin(), arrangement_.end(), uint32_t{0});
  StableSort()(arrangement_, [&](uint32_t i) {
    return static_cast<uint64_t>(plan.offsets[i]) / arena_alignment * 2 + (bytes[i] > 0 ? 1 : 0);
  });
}

ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::span<const int64_t> bytes) {
  return ArenaPlanner({lifetimes.begin(), lifetimes.end()}).plan(bytes);
}

}  // namespace selkie::runtime
