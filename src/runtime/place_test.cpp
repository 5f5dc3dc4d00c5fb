#include "runtime/place.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sched.h>

#include <thread>

namespace selkie::runtime {
namespace {

// What a thread does that runs on `processor`, and may run where this one may.
template <class Body>
void run_on(int processor, const cpu_set_t& allowed, Body body) {
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    ASSERT_EQ(present_processor(), processor);
    ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
    body();
  }).join();
}

TEST(Place, AThreadLeavesAProcessor) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) != 2) GTEST_SKIP() << "for two processors, where there is one place to go";
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    run_on(processor, allowed, [&] {
      // The system may move the thread between two lines, but not each time.
      int left = 0;
      for (int i = 0; i < 20; ++i) {
        int before = present_processor();
        leave_processor(before);
        left += present_processor() != before ? 1 : 0;
      }
      EXPECT_GE(left, 10);
      cpu_set_t after;
      ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
      EXPECT_TRUE(CPU_EQUAL(&after, &allowed));
    });
  }
}

TEST(Place, AThreadWithOnePlaceStays) {
  int processor = present_processor();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  run_on(processor, one, [&] {
    leave_processor(processor);
    EXPECT_EQ(present_processor(), processor);
  });
}

}  // namespace
}  // namespace selkie::runtime
#endif
