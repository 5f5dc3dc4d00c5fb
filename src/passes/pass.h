// What a pass is, and the table of all passes (passes.def).
#pragma once

#include <span>
#include <string_view>

#include "ir/module.h"

namespace selkie::passes {

// Rewrites a module in place and returns whether it changed anything. The module verifies before and after.
using PassFunction = bool (*)(ir::Module&);

struct Pass {
  std::string_view name;
  std::string_view contract;  // one sentence
  PassFunction run;
};

std::span<const Pass> all_passes();
const Pass* find_pass(std::string_view name);

// Runs a pass and verifies what it left; a module that does not verify is a bug of the pass.
bool run_pass(const Pass& pass, ir::Module& module);

}  // namespace selkie::passes
