#include "runtime/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace selkie::runtime {
namespace {

TEST(Workers, EachTaskIsDoneOnce) {
  for (int threads : {1, 2, 3, 16}) {
    Workers workers(threads);
    for (int64_t tasks : {0, 1, 2, 7, 100}) {
      for (int round = 0; round < 200; ++round) {
        std::vector<int> done(static_cast<size_t>(tasks), 0);
        workers.run(tasks, 64, [&](int64_t begin, int64_t end, std::byte* scratch) {
          scratch[0] = std::byte{1};
          for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
        });
        ASSERT_EQ(std::ranges::count(done, 1), tasks) << threads << " threads, " << tasks << " tasks";
      }
    }
  }
}

// As if its core did something else in the middle of a task.
TEST(Workers, WhatAThreadHasBegunIsWaitedFor) {
  Workers workers(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> done{0};
    workers.run(64, 0, [&](int64_t begin, int64_t end, std::byte*) {
      if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::microseconds(300));
      done += static_cast<int>(end - begin);
    });
    ASSERT_EQ(done, 64);
  }
}

}  // namespace
}  // namespace selkie::runtime
