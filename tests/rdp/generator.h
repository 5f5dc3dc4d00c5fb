// Random programs of the tensor IR that run on at least one input: operators, shape arithmetic, branches and loops.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/host_value.h"
#include "ir/module.h"

namespace selkie::tests {

struct RandomProgram {
  std::unique_ptr<ir::Module> module;
  std::vector<HostValue> inputs;  // on which it runs
};

// What programs are made of: a bit of everything, or mostly regions in each other, with sequences, early exits, states
// that grow, swap places and change their shape.
enum class Mix : uint8_t { everything, regions };

// `nodes` is about how many there are, those inside regions included.
RandomProgram random_program(uint64_t seed, int nodes, Mix mix = Mix::everything);

// Other inputs for the same program: the symbols in the types of its parameters get new sizes, 0 and 1 included.
std::vector<HostValue> random_inputs(const ir::Module& module, std::mt19937_64& random);

}  // namespace selkie::tests
