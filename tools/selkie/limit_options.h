// --trip-limit and the like: what a run may use at most.
#pragma once

#include <CLI/CLI.hpp>

#include "ir/eval_context.h"

namespace selkie::cli {

void add_limit_options(CLI::App& command, ir::RunLimits& limits);
// A number of bytes, or of K, M or G of them (powers of 1024).
void add_memory_option(CLI::App& command, int64_t& bytes);

}  // namespace selkie::cli
