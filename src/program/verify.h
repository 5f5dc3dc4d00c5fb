// Whether a program is well formed: what it runs, reads and writes is there.
#pragma once

#include <span>

#include "program/program.h"

namespace selkie::program {

// Operands of a kernel: what a frame has room for.
inline constexpr size_t most_kernel_operands = 64;

// A user error says what is wrong. A program that passes does not make the virtual machine read or write a register,
// size, table, constant or function that is not there; what a kernel does with the sizes it is given cannot be seen
// here.
void verify(const Program& program, std::span<const Program> functions = {});

}  // namespace selkie::program
