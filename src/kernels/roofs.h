// The roofs of one core, measured: multiply-adds in registers, and reads from each cache and from memory.
#pragma once

#include <cstdint>

#include "kernels/table.h"

namespace selkie::kernels {

// GFLOP/s of independent multiply-adds in registers.
double fma_roof(Isa isa);
// GB/s of reading `bytes` again and again.
double read_roof(Isa isa, int64_t bytes);

}  // namespace selkie::kernels
