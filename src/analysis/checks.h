// Entry checks: what inputs must satisfy for a model to run, with the text that a user reads if they do not.
#pragma once

#include <span>

#include "analysis/rdp.h"
#include "base/host_value.h"

namespace selkie::analysis {

// "dim 1 of 'mask' == dim 1 of 'ids' (required by Add_37)".
std::string to_string(const Check& check, const Rdp& rdp);

// Throws Error for the first entry check that inputs do not satisfy; they fit the declared types already:
// "input 'mask' dim 1 is 17, but must equal dim 1 of 'ids' (12): required by Add_37".
void check_inputs(const Rdp& rdp, std::span<const HostValue> inputs);

}  // namespace selkie::analysis
