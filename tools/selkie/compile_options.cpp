#include "compile_options.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "cpu_run.h"

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

// Empty if there is none.
std::string cache_folder(const CompileOptions& options) {
  if (options.no_cache) return {};
  if (options.cache_folder.empty()) return user_cache_folder();
  std::error_code error;
  // What it holds is run, so it is for its owner alone.
  const std::string& folder = options.cache_folder;
  if (fs::create_directories(folder, error)) fs::permissions(folder, fs::perms::owner_all, error);
  if (error || !fs::is_directory(folder, error)) fail("cannot use '{}' as a cache folder", folder);
  return folder;
}

}  // namespace

void add_program_options(CLI::App& command, CompileOptions& options) {
  command.add_flag("--exact", options.compiler.exact,
                   "No faster algorithm whose error is larger (Winograd's for convolutions); on cpu");
  command.add_option("--without", options.compiler.without, "A pass that is left out ('selkie passes' lists them)")
      ->type_name("PASS")
      ->allow_extra_args(false);
}

void add_order_option(CLI::App& command, CompileOptions& options) {
  command.add_flag("--plain-order", options.compiler.plain_order,
                   "Steps in the order of the model's nodes, even if another one needs less memory; on cpu");
}

void add_compile_options(CLI::App& command, CompileOptions& options) {
  add_program_options(command, options);
  auto* folder = command.add_option("--cache-dir", options.cache_folder,
                                    "Folder to keep compiled code in (default: selkie in the user's cache folder)");
  command.add_flag("--no-cache", options.no_cache, "Compile all code, and keep none")->excludes(folder);
}

driver::Options driver_options(const CompileOptions& options) {
  return {.compiler = options.compiler, .threads = core_count(), .cache_folder = cache_folder(options)};
}

}  // namespace selkie::cli
