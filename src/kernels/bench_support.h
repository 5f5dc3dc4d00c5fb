// Times for the kernels' benchmark: the best of many repetitions, since other work on the machine only ever adds time,
// and the roofs of one core (FMA rate, read bandwidth) that the kernels are held against.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/table.h"

namespace selkie::kernels::bench {

// Processor time of this thread: what others on the machine do is not counted.
inline double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Function>
double best_seconds(Function function, double budget = 0.06) {
  double start = thread_seconds();
  function();
  double best = thread_seconds() - start;
  int inner = best > 1e-4 ? 1 : static_cast<int>(1e-4 / (best + 1e-8)) + 1;
  for (int repetition = 0; repetition < 3 || thread_seconds() - start < budget; ++repetition) {
    double begin = thread_seconds();
    for (int i = 0; i < inner; ++i) function();
    best = std::min(best, (thread_seconds() - begin) / inner);
  }
  return best;
}

// The sum of each task's best time: a long kernel is interrupted too often to be timed as a whole.
template <class Function>
double best_of_tasks(int64_t tasks, Function function, double budget = 0.08) {
  double sum = 0;
  for (int64_t task = 0; task < tasks; ++task)
    sum += best_seconds([&] { function(task); }, budget / static_cast<double>(tasks));
  return sum;
}

std::vector<float> random_floats(int64_t count, uint32_t seed);

// GFLOP/s of independent multiply-adds in registers.
double fma_roof(Isa isa);
// GB/s of reading `bytes` again and again.
double read_roof(Isa isa, int64_t bytes);

}  // namespace selkie::kernels::bench
