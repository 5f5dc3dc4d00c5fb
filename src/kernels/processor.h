// What a processor does per cycle, where instruction sets do not tell.
#pragma once

namespace selkie::kernels {

// Whether it begins two multiply-adds of 512 bits in a cycle. Others make them of halves, or have one unit: what is no
// multiply-add then takes a smaller share of the time.
bool has_two_wide_units();

}  // namespace selkie::kernels
