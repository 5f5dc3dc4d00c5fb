#include "plan/order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace selkie::plan {
namespace {

// Sets of steps that are followed at a time.
constexpr size_t most_sets = 256;
// Looks at a step per step of the problem: sets become fewer as these are used up, and then the search is given up.
// About a quarter of a millisecond.
constexpr size_t most_looks = 20'000;
constexpr size_t looks_of_a_set = 32;  // that making one takes as long as
constexpr double least_gain = 0.05;

using Bits = std::vector<uint64_t>;
bool has(const Bits& bits, size_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
void set(Bits& bits, size_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }

// How many steps of an order have not used each block yet.
std::vector<uint32_t> count_uses(const OrderProblem& p) {
  std::vector<uint32_t> uses(p.blocks.size(), 0);
  for (const auto& step : p.steps)
    for (size_t b : step.uses) ++uses[b];
  return uses;
}

// The peaks of an order, at all sizes.
std::vector<int64_t> peaks_of(const OrderProblem& p, const std::vector<size_t>& order) {
  size_t sizes = p.blocks.empty() ? 0 : p.blocks[0].bytes.size();
  std::vector<int64_t> now(sizes, 0);
  std::vector<uint32_t> left = count_uses(p);
  std::vector<bool> is_there(p.blocks.size());
  auto add = [&](size_t block, int64_t sign) {
    for (size_t s = 0; s < sizes; ++s) now[s] += sign * p.blocks[block].bytes[s];
  };
  for (size_t b = 0; b < p.blocks.size(); ++b)
    if (p.blocks[b].from_beginning && left[b] > 0) {
      is_there[b] = true;
      add(b, 1);
    }
  std::vector<int64_t> peaks = now;
  for (size_t step : order) {
    for (size_t b : p.steps[step].uses)
      if (!is_there[b]) {
        is_there[b] = true;
        add(b, 1);
      }
    for (size_t s = 0; s < sizes; ++s) peaks[s] = std::max(peaks[s], now[s]);
    for (size_t b : p.steps[step].uses)
      if (--left[b] == 0 && !p.blocks[b].to_end) add(b, -1);
  }
  return peaks;
}

// Where in the given order a block is used first and last, if it is.
struct Span {
  size_t first = SIZE_MAX, last = 0;
};
std::vector<Span> spans(const OrderProblem& p) {
  std::vector<Span> out(p.blocks.size());
  for (size_t i = 0; i < p.steps.size(); ++i)
    for (size_t b : p.steps[i].uses) out[b] = {.first = std::min(out[b].first, i), .last = i};
  return out;
}

// Orders the steps `begin` … `end` − 1, at the first sizes.
class Piece {
 public:
  Piece(const OrderProblem& problem, const std::vector<Span>& spans, size_t begin, size_t end, int64_t in_use)
      : p_(problem), begin_(begin), count_(end - begin), in_use_(in_use) {
    std::map<size_t, size_t> numbers;
    for (size_t i = begin; i < end; ++i) {
      std::vector<size_t>& uses = uses_.emplace_back();
      for (size_t b : p_.steps[i].uses) {
        auto [at, is_new] = numbers.try_emplace(b, blocks_.size());
        if (is_new)
          blocks_.push_back({.bytes = p_.blocks[b].bytes[0],
                             .is_there = spans[b].first < begin || p_.blocks[b].from_beginning,
                             .dies = spans[b].last < end && !p_.blocks[b].to_end});
        blocks_[at->second].users.push_back(i - begin);
        uses.push_back(at->second);
      }
    }
  }

  size_t begin() const { return begin_; }
  int64_t plain_peak() const {
    State state = first();
    for (size_t i = 0; i < count_; ++i) run(state, i);
    return state.peak;
  }

  struct Found {
    std::vector<size_t> order;
    int64_t peak;
  };
  // Nothing if no order is found whose peak is below `most`, in so many looks.
  std::optional<Found> below(int64_t most, size_t& looks, bool& is_exact) const {
    std::vector<std::vector<State>> levels{{first()}};
    for (size_t level = 0; level < count_; ++level) {
      size_t before = looks;
      std::vector<State> next = following(levels.back(), most, looks);
      if (looks == 0) is_exact = false;
      if (looks == 0 || next.empty()) return std::nullopt;
      size_t looks_of_the_rest = (before - looks) / levels.back().size() * (count_ - level);
      size_t sets = std::clamp<size_t>(looks / std::max<size_t>(looks_of_the_rest, 1), 1, most_sets);
      if (next.size() > sets) {
        is_exact = false;
        std::ranges::stable_sort(
            next, [](const State& a, const State& b) { return a.peak != b.peak ? a.peak < b.peak : a.now < b.now; });
        next.resize(sets);
      }
      levels.push_back(std::move(next));
    }
    Found found{.order = {}, .peak = levels.back()[0].peak};
    size_t at = 0;
    for (size_t level = count_; level > 0; --level) {
      found.order.push_back(begin_ + levels[level][at].last);
      at = levels[level][at].from;
    }
    std::ranges::reverse(found.order);
    return found;
  }

 private:
  struct Block {
    int64_t bytes;
    bool is_there;  // before the piece
    bool dies;      // in the piece
    std::vector<size_t> users = {};
  };
  struct State {
    Bits done;
    int64_t now, peak;
    size_t from = 0, last = 0;
  };

  State first() const { return {.done = Bits(count_ / 64 + 1, 0), .now = in_use_, .peak = in_use_}; }

  bool is_ready(const State& state, size_t step) const {
    return !has(state.done, step) && std::ranges::all_of(p_.steps[begin_ + step].after, [&](size_t other) {
      return other < begin_ || has(state.done, other - begin_);
    });
  }

  void run(State& state, size_t step) const {
    auto is_done = [&](size_t user) { return has(state.done, user); };
    for (size_t b : uses_[step])
      if (!blocks_[b].is_there && std::ranges::none_of(blocks_[b].users, is_done)) state.now += blocks_[b].bytes;
    state.peak = std::max(state.peak, state.now);
    set(state.done, step);
    for (size_t b : uses_[step])
      if (blocks_[b].dies && std::ranges::all_of(blocks_[b].users, is_done)) state.now -= blocks_[b].bytes;
    state.last = step;
  }

  // What can come next, one per set of steps. A step after which no more is in use than before comes at once, if it
  // needs no new peak: no order is better for letting it wait.
  std::vector<State> following(const std::vector<State>& states, int64_t most, size_t& looks) const {
    std::map<Bits, State> best;
    for (size_t from = 0; from < states.size() && looks > 0; ++from) {
      std::vector<State> here;
      for (size_t step = 0; step < count_; ++step) {
        if (!is_ready(states[from], step)) continue;
        State next = states[from];
        run(next, step);
        next.from = from;
        bool is_free = next.now <= states[from].now && next.peak == states[from].peak;
        if (is_free) here.clear();
        here.push_back(std::move(next));
        if (is_free) break;
      }
      looks -= std::min(looks, count_ + looks_of_a_set * here.size());
      for (State& next : here) {
        if (next.peak >= most) continue;
        auto [at, is_new] = best.try_emplace(next.done, next);
        if (!is_new && next.peak < at->second.peak) at->second = std::move(next);
      }
    }
    std::vector<State> out;
    for (auto& [done, state] : best) out.push_back(std::move(state));
    return out;
  }

  const OrderProblem& p_;
  size_t begin_, count_;
  int64_t in_use_;
  std::vector<Block> blocks_;
  std::vector<std::vector<size_t>> uses_;
};

// Where pieces begin: before and after each step that all others come before or after, which is so if each one before
// it leads to it or to another one before it, and each one behind it follows from it or from another one behind it.
std::vector<size_t> piece_borders(const OrderProblem& p) {
  size_t count = p.steps.size();
  std::vector<size_t> first_after(count, SIZE_MAX);
  std::vector<size_t> last_before(count, 0);
  std::vector<bool> follows(count, false);
  for (size_t i = 0; i < count; ++i)
    for (size_t other : p.steps[i].after) {
      first_after[other] = std::min(first_after[other], i);
      last_before[i] = std::max(last_before[i], other);
      follows[i] = true;
    }
  std::vector<size_t> latest(count + 1, 0);        // of first_after, of those before
  std::vector<size_t> earliest(count + 1, count);  // of last_before, of those behind
  for (size_t i = 0; i < count; ++i) latest[i + 1] = std::max(latest[i], first_after[i]);
  std::vector<bool> all_follow(count + 1, true);
  for (size_t i = count; i-- > 0;) {
    earliest[i] = std::min(earliest[i + 1], last_before[i]);
    all_follow[i] = all_follow[i + 1] && follows[i];
  }
  std::vector<size_t> borders{0};
  for (size_t i = 0; i < count; ++i) {
    if (latest[i] > i || !all_follow[i + 1] || earliest[i + 1] < i) continue;
    if (borders.back() != i) borders.push_back(i);
    borders.push_back(i + 1);
  }
  if (borders.back() != count) borders.push_back(count);
  return borders;
}

std::vector<Piece> pieces(const OrderProblem& p) {
  std::vector<Span> used = spans(p);
  std::vector<int64_t> change(p.steps.size() + 1, 0);  // of the bytes in use before a step
  for (size_t b = 0; b < p.blocks.size(); ++b) {
    int64_t bytes = p.blocks[b].bytes[0];
    if (used[b].first == SIZE_MAX) continue;
    change[p.blocks[b].from_beginning ? 0 : used[b].first + 1] += bytes;
    if (!p.blocks[b].to_end) change[used[b].last + 1] -= bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  std::vector<size_t> borders = piece_borders(p);
  std::vector<Piece> out;
  for (size_t i = 0; i + 1 < borders.size(); ++i)
    out.emplace_back(p, used, borders[i], borders[i + 1], change[borders[i]]);
  return out;
}

}  // namespace

Order best_order(const OrderProblem& problem) {
  Order out{.steps = std::vector<size_t>(problem.steps.size()), .peaks = {}, .plain = {}};
  std::iota(out.steps.begin(), out.steps.end(), size_t{0});
  out.plain = out.peaks = peaks_of(problem, out.steps);
  if (problem.steps.empty() || problem.blocks.empty()) return out;
  std::vector<Piece> all = pieces(problem);
  std::vector<std::pair<int64_t, size_t>> by_peak;
  for (size_t i = 0; i < all.size(); ++i) by_peak.emplace_back(-all[i].plain_peak(), i);
  std::ranges::sort(by_peak);
  std::vector<size_t> order = out.steps;
  // From the highest peak down, as long as that is above what cannot be lowered.
  int64_t least = 0;
  size_t looks = most_looks * problem.steps.size();
  for (auto [negative_peak, i] : by_peak) {
    const Piece& piece = all[i];
    int64_t plain = -negative_peak;
    if (plain <= least) break;
    std::optional<Piece::Found> found = piece.below(plain, looks, out.is_exact);
    least = std::max(least, found ? found->peak : plain);
    if (found) std::ranges::copy(found->order, order.begin() + static_cast<std::ptrdiff_t>(piece.begin()));
  }
  std::vector<int64_t> peaks = peaks_of(problem, order);
  bool is_gain = static_cast<double>(peaks[0]) <= (1 - least_gain) * static_cast<double>(out.plain[0]);
  for (size_t s = 0; s < peaks.size(); ++s) is_gain &= peaks[s] <= out.plain[s];
  if (!is_gain) return out;
  out.steps = std::move(order);
  out.peaks = std::move(peaks);
  return out;
}

}  // namespace selkie::plan
