// The pieces of a program that may not run, or run more than once, as its jumps show them.
#pragma once

#include "program/program.h"

namespace selkie::program {

struct CodeRegion {
  enum class Kind : uint8_t { whole, arm, loop };
  Kind kind;
  uint32_t begin, end;       // the instruction after the last
  size_t parent = SIZE_MAX;  // none of the whole program
  uint32_t branch = 0;       // arm: the instruction that decides; both arms of one branch have the same
};

// The whole program first; each region comes before those inside it.
std::vector<CodeRegion> regions(const Program& program);

// The innermost region around each instruction, and around the end.
std::vector<size_t> innermost_regions(const std::vector<CodeRegion>& regions, size_t instructions);

}  // namespace selkie::program
