#include "runtime/place.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace selkie::runtime {

#if defined(__linux__)
int present_processor() { return sched_getcpu(); }

void leave_processor(int processor) {
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getcpu() != processor) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(allowed), &allowed);
}
#else
int present_processor() { return -1; }

void leave_processor(int) {}
#endif

}  // namespace selkie::runtime
