// The subcommands of the CLI. Each adds itself to the application and leaves what to do in `action`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "api/load_model.h"

namespace selkie::cli {

// Returns the exit code.
using Action = std::function<int()>;

void add_bench(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_compile(CLI::App& app, Action& action);
void add_disasm(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_ops(CLI::App& app, Action& action);
void add_opt(CLI::App& app, Action& action);
void add_passes(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);

using api::load_model;

// Fails unless the target is one that this build has.
void check_target(const std::string& target);

}  // namespace selkie::cli
