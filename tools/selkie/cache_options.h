// --cache-dir and --no-cache: where the code of compiled models is kept between runs of the tool.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace selkie::cli {

struct CacheOptions {
  std::string folder;
  bool off = false;
};

void add_cache_options(CLI::App& command, CacheOptions& options);

// Empty if there is none: the user's cache folder (XDG) unless another is given, which must be one that can be used.
std::string cache_folder(const CacheOptions& options);

}  // namespace selkie::cli
