// --exact, --without, --cache-dir and --no-cache: how models are compiled, and where their code is kept between runs of
// the tool.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "driver/build.h"

namespace selkie::cli {

struct CompileOptions {
  compiler::Options compiler;
  std::string cache_folder;
  bool no_cache = false;
  bool pack_all = false;
};

// --exact and --without: what the program is.
void add_program_options(CLI::App& command, CompileOptions& options);
void add_order_option(CLI::App& command, CompileOptions& options);
// The first, the options of the cache and --pack-all.
void add_compile_options(CLI::App& command, CompileOptions& options);

// Compiles on all cores. Code is kept in the user's cache folder (XDG) unless another is given, which must be one that
// can be used.
driver::Options driver_options(const CompileOptions& options);

}  // namespace selkie::cli
