// Convolutions that follow each other in a program, each the only one that reads the result of the one before, one of
// two neighbours depthwise: they may be made some lines at a time, all of them together.
#pragma once

#include <vector>

#include "program/program.h"

namespace selkie::program {

// Instructions first … last.
struct Chain {
  uint32_t first;
  uint32_t last;
  bool operator==(const Chain&) const = default;
};

// The longest ones, in order. All sizes are known at entry, and nothing jumps to the middle of one.
std::vector<Chain> find_chains(const Program& p);

}  // namespace selkie::program
