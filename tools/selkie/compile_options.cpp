#include "compile_options.h"

#include "cpu_run.h"
#include "driver/cache.h"

namespace selkie::cli {
namespace {

// Empty if there is none.
std::string cache_folder(const CompileOptions& options) {
  if (options.no_cache) return {};
  return options.cache_folder.empty() ? driver::user_cache_folder() : driver::usable_cache_folder(options.cache_folder);
}

}  // namespace

void add_program_options(CLI::App& command, CompileOptions& options) {
  command.add_flag(
      "--exact", options.compiler.exact,
      "No faster algorithm whose error is larger (Winograd's for convolutions, Strassen's for products); on cpu");
  command
      .add_option("--winograd-share", options.compiler.winograd_share,
                  "Memory for weights transformed for Winograd's kernel, as a share of the model's weights; on cpu")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
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
  command.add_flag("--pack-all", options.pack_all,
                   "Pack all weights before the first run, those of branches that no run may take, too");
}

driver::Options driver_options(const CompileOptions& options) {
  return {.compiler = options.compiler,
          .threads = core_count(),
          .cache_folder = cache_folder(options),
          .late_weights = !options.pack_all};
}

}  // namespace selkie::cli
