// What a processor does per cycle, where instruction sets do not tell.
#pragma once

namespace selkie::kernels {

// Those that begin two multiply-adds of 512 bits in a cycle; others make them of halves, or have one unit. What is no
// multiply-add then takes a larger share of the time: how much larger is not the same for all.
enum class WideUnits { fewer, zen5, intel };
WideUnits wide_units();

}  // namespace selkie::kernels
