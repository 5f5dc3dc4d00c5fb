// Facts about the sizes of a model's inputs that a user gives: they are compiled in, and required of every input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace selkie::driver {

// The sizes that inputs have by name, sorted.
std::vector<std::string> names_of_sizes(const ir::Function& main);

// "N in 1..512", "H % 32 == 0", and "N=4" for a number. A size that the model does not have is a user error; `option`
// is what the user calls the place where the facts were given.
void require_dims(ir::Function& main, const std::vector<std::string>& dims, std::string_view option);

}  // namespace selkie::driver
