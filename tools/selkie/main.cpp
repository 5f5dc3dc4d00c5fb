// The command line of Selkie. Errors of the user's end with exit code 1, bugs of ours with 70.
#include <cstdio>
#include <new>

#include "commands.h"

namespace selkie::cli {

void check_target(const std::string& target) {
  if (target != "ref" && target != "cpu" && target != "cpu-checked")
    fail("unknown target '{}': known are ref, cpu and cpu-checked", target);
}

namespace {

int run(int argc, char** argv) {
  CLI::App app("Selkie: a compiler and runtime for dynamic neural networks", "selkie");
  app.set_version_flag("--version", "selkie " SELKIE_VERSION);
  app.require_subcommand(1);
  Action action;
  add_run(app, action);
  add_verify(app, action);
  add_bench(app, action);
  add_check(app, action);
  add_compile(app, action);
  add_disasm(app, action);
  add_explain(app, action);
  add_plan(app, action);
  add_opt(app, action);
  add_ops(app, action);
  add_passes(app, action);
  // Last, since commands would take it over for their own help.
  app.footer(
      "Examples:\n"
      "  selkie run model.onnx --input x=random:1x3x224x224\n"
      "  selkie compile model.onnx -o model.selkie\n"
      "  selkie check model.onnx\n"
      "  selkie explain model.onnx --html model.html\n"
      "  selkie plan model.onnx --dims N=1,S=128 --svg arena.svg\n"
      "  selkie opt model.onnx --pass fold_constants --pass dead_code\n"
      "  selkie verify path/to/onnx/backend/test/data/node --jobs 2\n"
      "\n"
      "'selkie COMMAND --help' has those of a command.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help to stdout and complaints to stderr; its own codes become ours.
    return app.exit(error) == 0 ? 0 : 1;
  }
  return action();
}

}  // namespace
}  // namespace selkie::cli

int main(int argc, char** argv) {
  try {
    return selkie::cli::run(argc, argv);
  } catch (const selkie::Error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "selkie: error: {}\n", error.what());
    return 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "selkie: error: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "selkie: internal error: {}\nThis is a bug in Selkie. Please report it.\n", error.what());
    return selkie::bug_exit_code;
  }
}
