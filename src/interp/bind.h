// Holds inputs against the parameters of a function: number, kind, dtype, rank, and dims that must agree.
#pragma once

#include <span>

#include "base/host_value.h"
#include "ir/module.h"

namespace selkie::interp {

// Throws Error that names the input, what it is and what it must be.
void bind_inputs(const ir::Function& function, std::span<const HostValue> inputs);

}  // namespace selkie::interp
