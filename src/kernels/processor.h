// What a processor does per cycle and how its first cache is made, where instruction sets do not tell.
#pragma once

#include <cstdint>

namespace selkie::kernels {

// Those that begin two multiply-adds of 512 bits in a cycle; others make them of halves, or have one unit. What is no
// multiply-add then takes a larger share of the time: how much larger is not the same for all.
enum class WideUnits { fewer, zen5, intel };
WideUnits wide_units();

// The first-level data cache: addresses that are a multiple of `way_bytes` apart share a set, which holds `ways` lines.
struct FirstCache {
  int64_t ways;
  int64_t way_bytes;
};
const FirstCache& first_cache();

}  // namespace selkie::kernels
