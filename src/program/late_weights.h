// Which constants a run may never read: weights of library calls in arms that it may not take.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace selkie::program {

// Those that nothing else reads, in ascending order.
std::vector<uint32_t> weights_of_arms(const Program& program);

}  // namespace selkie::program
