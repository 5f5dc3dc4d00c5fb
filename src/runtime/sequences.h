// Items of sequences.
#pragma once

#include <string>

#include "base/host_value.h"

namespace selkie::runtime {

// A position in a sequence: counted from the end if negative. Fails beyond `last`, in the name of a node.
size_t position(int64_t index, size_t size, size_t last, const std::string& node);

// A sequence with one item more. One that nobody else refers to is not copied.
HostValue with_item(HostValue sequence, bool is_own, size_t at, HostValue item);

}  // namespace selkie::runtime
