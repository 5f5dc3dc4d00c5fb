// The rules that a module of the tensor IR keeps. Every pass leaves a module that verifies.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace selkie::ir {

// Each broken rule as one message that names function, node and operand; empty if all hold. Stops at `limit` messages.
std::vector<std::string> problems(const Module& module, size_t limit = 20);

// Throws Error with all of `problems` if there are any.
void verify(const Module& module);

}  // namespace selkie::ir
