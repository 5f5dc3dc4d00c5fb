// How far library calls reach into the memory of their operands, for runs that check it.
#pragma once

#include <functional>
#include <span>
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

// That they stay in the memory of their operands, of which there are so many bytes from a register's first one on.
void check_reaches(const program::Program& program, const program::Instruction& instruction,
                   std::span<const int64_t> slots, const std::function<int64_t(program::Register)>& bytes_behind);

}  // namespace selkie::runtime
