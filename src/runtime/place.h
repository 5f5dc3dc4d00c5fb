// Which processor a thread runs on.
#pragma once

namespace selkie::runtime {

// That of the calling thread; -1 where the system does not say.
int present_processor();

// If the calling thread is on this processor and may run on another one, it goes on there. Where it may run stays as it
// was.
void leave_processor(int processor);

}  // namespace selkie::runtime
