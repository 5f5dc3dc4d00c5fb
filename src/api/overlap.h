// Whether a result of a run lies in memory of its inputs, which the caller may free or change.
#pragma once

#include <span>

#include "base/host_value.h"

namespace selkie::api {

bool contains(std::span<const HostValue> values, const std::byte* at);

}  // namespace selkie::api
