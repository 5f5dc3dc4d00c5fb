#include "cache_options.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace selkie::cli {
namespace {

namespace fs = std::filesystem;

// The XDG base directory specification: a relative path is to be ignored.
std::string user_cache_folder() {
  const char* given = std::getenv("XDG_CACHE_HOME");
  if (given != nullptr && fs::path(given).is_absolute()) return fs::path(given) / "selkie";
  const char* home = std::getenv("HOME");
  if (home != nullptr && fs::path(home).is_absolute()) return fs::path(home) / ".cache" / "selkie";
  return {};
}

}  // namespace

void add_cache_options(CLI::App& command, CacheOptions& options) {
  auto* folder = command.add_option("--cache-dir", options.folder,
                                    "Folder to keep compiled code in (default: selkie in the user's cache folder)");
  command.add_flag("--no-cache", options.off, "Compile all code, and keep none")->excludes(folder);
}

std::string cache_folder(const CacheOptions& options) {
  if (options.off) return {};
  if (options.folder.empty()) return user_cache_folder();
  std::error_code error;
  // What it holds is run, so it is for its owner alone.
  if (fs::create_directories(options.folder, error)) fs::permissions(options.folder, fs::perms::owner_all, error);
  if (error || !fs::is_directory(options.folder, error)) fail("cannot use '{}' as a cache folder", options.folder);
  return options.folder;
}

}  // namespace selkie::cli
