// --trip-limit and the like: what a run may use at most.
#pragma once

#include <CLI/CLI.hpp>

#include "ir/eval_context.h"

namespace selkie::cli {

void add_limit_options(CLI::App& command, ir::RunLimits& limits);

}  // namespace selkie::cli
