// How far library calls reach into the memory of their operands, for runs that check it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace selkie::runtime {

struct Reach {
  program::Register value;
  int64_t elements;  // from the register's first one; 0 if the call touches none
};

// Of every operand and result of a product, a convolution, attention or a recurrent layer; none for other instructions.
std::vector<Reach> reaches_of(const program::Program& program, const program::Instruction& instruction,
                              std::span<const int64_t> slots);

}  // namespace selkie::runtime
