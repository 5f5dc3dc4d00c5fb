// Values that outlive the memory they lie in.
#pragma once

#include "base/host_value.h"
#include "runtime/arena_memory.h"
#include "runtime/buffers.h"

namespace selkie::runtime {

// Whether it points into the arena, which the next kernel may overwrite.
bool is_attached(const HostValue& value, const ArenaMemory& arena);

// A value that does not.
HostValue detached(HostValue value, const ArenaMemory& arena, Buffers& buffers);

}  // namespace selkie::runtime
