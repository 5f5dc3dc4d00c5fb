// --dims: facts about the sizes of a model's inputs, which are then required of every input.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "ir/module.h"

namespace selkie::cli {

void add_dims_option(CLI::App& command, std::vector<std::string>& dims);

// "N in 1..512", "H % 32 == 0", and "N=4" for a number. A size that the model does not have is a user error.
void require_dims(ir::Function& main, const std::vector<std::string>& dims);

}  // namespace selkie::cli
