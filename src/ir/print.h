// Tensor IR to text. `parse` reads it back to an equal module.
#pragma once

#include <string>

#include "ir/module.h"

namespace selkie::ir {

std::string print(const Module& module);
std::string print(const Function& function);

}  // namespace selkie::ir
