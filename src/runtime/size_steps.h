// Arithmetic on sizes.
#pragma once

#include "program/program.h"

namespace selkie::runtime {

// What a step gives for its operands. What leaves 64 bits stays at their end; a quotient by 0 is 0.
int64_t result_of(const program::SizeStep& step, int64_t a, int64_t b);

}  // namespace selkie::runtime
