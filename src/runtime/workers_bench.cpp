// What a second thread gains, and what it costs where something else has its core: kernels of 50 µs, one after the
// other.
#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/benches.h"
#include "runtime/workers.h"

namespace selkie::runtime {
namespace {

using Clock = std::chrono::steady_clock;

void compute(std::chrono::nanoseconds time) {
  for (Clock::time_point end = Clock::now() + time; Clock::now() < end;) {
  }
}

// Median of the microseconds that 20 kernels take.
double median_time(int threads) {
  constexpr int64_t tasks = 50;
  Workers workers(threads);
  std::vector<double> times;
  for (int round = 0; round < 200; ++round) {
    Clock::time_point begin = Clock::now();
    for (int kernel = 0; kernel < 20; ++kernel)
      workers.run(tasks, 0,
                  [](int64_t first, int64_t end, std::byte*) { compute(std::chrono::microseconds(end - first)); });
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + 100);
  return times[100];
}

}  // namespace

void bench_workers() {
  fmt::print("two threads ÷ one, {} cores: {:.2f}\n", std::thread::hardware_concurrency(),
             median_time(2) / median_time(1));
  std::atomic<bool> is_over{false};
  std::vector<std::jthread> others;  // on all cores but one
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&, i] {
      cpu_set_t cores;
      CPU_ZERO(&cores);
      CPU_SET(i, &cores);
      sched_setaffinity(0, sizeof cores, &cores);
      while (!is_over) compute(std::chrono::microseconds(10));
    });
  fmt::print("the same with another program on all cores but one: {:.2f}\n", median_time(2) / median_time(1));
  is_over = true;
}

}  // namespace selkie::runtime
