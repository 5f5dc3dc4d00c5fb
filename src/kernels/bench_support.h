// Times for the kernels' benchmark: the best of many repetitions, since other work on the machine only ever adds time.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/table.h"

namespace selkie::kernels::bench {

template <class Function>
double best_seconds(Function function, double budget = 0.06) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  auto start = Clock::now();
  function();
  double best = since(start);
  int inner = best > 1e-4 ? 1 : static_cast<int>(1e-4 / (best + 1e-8)) + 1;
  for (int repetition = 0; repetition < 3 || since(start) < budget; ++repetition) {
    auto begin = Clock::now();
    for (int i = 0; i < inner; ++i) function();
    best = std::min(best, since(begin) / inner);
  }
  return best;
}

// The sum of each task's best time: a long kernel is interrupted too often to be timed as a whole.
template <class Function>
double best_of_tasks(int64_t tasks, Function function, double budget = 0.5) {
  double sum = 0;
  for (int64_t task = 0; task < tasks; ++task)
    sum += best_seconds([&] { function(task); }, budget / static_cast<double>(tasks));
  return sum;
}

// The same of two kernels, run by turns: where other work slows the machine down for seconds, it slows both.
template <class First, class Second>
std::pair<double, double> best_of_turns(int64_t tasks, First first, Second second, double budget = 1) {
  std::pair<double, double> sum{0, 0};
  constexpr int turns = 8;
  double budget_of_turn = budget / static_cast<double>(2 * turns * tasks);
  for (int64_t task = 0; task < tasks; ++task) {
    std::pair<double, double> best{1e30, 1e30};
    for (int turn = 0; turn < turns; ++turn) {
      best.first = std::min(best.first, best_seconds([&] { first(task); }, budget_of_turn));
      best.second = std::min(best.second, best_seconds([&] { second(task); }, budget_of_turn));
    }
    sum.first += best.first;
    sum.second += best.second;
  }
  return sum;
}

// Stages that follow each other, with what they leave in the caches: the first one's best time, and the sum of the
// others'.
template <class Function>
std::pair<double, double> best_of_stages(int64_t stages, Function function, double budget = 1) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::vector<double> best(static_cast<size_t>(stages), 1e30);
  auto start = Clock::now();
  for (int repetition = 0; repetition < 3 || since(start) < budget; ++repetition) {
    for (size_t stage = 0; stage < best.size(); ++stage) {
      auto begin = Clock::now();
      function(static_cast<int64_t>(stage));
      best[stage] = std::min(best[stage], since(begin));
    }
  }
  return {best[0], std::accumulate(best.begin() + 1, best.end(), 0.0)};
}

// Memory aligned to cache lines.
class Aligned {
 public:
  explicit Aligned(size_t floats) : values_(floats + 16) {}
  explicit Aligned(const std::vector<float>& values) : Aligned(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() { return values_.data() + (64 - reinterpret_cast<uintptr_t>(values_.data()) % 64) / 4 % 16; }

 private:
  std::vector<float> values_;
};

std::vector<float> random_floats(int64_t count, uint32_t seed);

struct Bench {
  const KernelTable& table;
  double roof;

  void report(const std::string& name, double flops, double bytes, double seconds) const {
    double rate = flops / seconds * 1e-9;
    fmt::print("{:36} {:10.1f} us {:8.1f} GFLOP/s {:5.1f} % of FMA roof {:7.1f} GB/s\n", name, seconds * 1e6, rate,
               100 * rate / roof, bytes / seconds * 1e-9);
    std::fflush(stdout);
  }
};

// Sections of kernels_bench that have a file of their own.
void convolutions(const Bench& bench);
void strassens(const Bench& bench);
void stems(const Bench& bench);
void depthwises(const Bench& bench);
void groupeds(const Bench& bench);
void winograds(const Bench& bench);
void integers(const Bench& bench);
void halves(const Bench& bench);

}  // namespace selkie::kernels::bench
