// selkie compile: a model as a file that runs without being compiled again.
#include "base/text.h"
#include "commands.h"
#include "compile_options.h"
#include "cpu_run.h"
#include "dims_option.h"
#include "driver/artifact.h"
#include "program/file.h"

namespace selkie::cli {
namespace {

struct Options {
  std::string model;
  std::string output;
  std::vector<std::string> dims;
  int threads = core_count();
  CompileOptions compile;
  bool json = false;
};

int compile(const Options& options) {
  if (program::is_artifact(options.model)) fail("'{}' is compiled already", options.model);
  driver::Options how = driver_options(options.compile);
  how.threads = options.threads;
  CpuModel model = load_cpu_model(options.model, how, options.dims);
  uint64_t bytes = driver::save(model.built, options.output);
  const program::Program& program = model.built.executable->program;
  if (options.json) {
    fmt::print(R"({{"file": {}, "bytes": {}, "code_bytes": {}, "nodes": {}, "kernels": {}, "distinct_kernels": {}, )"
               R"("host_calls": {}, "import_ms": {:.1f}, "compile_ms": {:.1f}, "code_is_cached": {}}})"
               "\n",
               json_quote(options.output), bytes, model.built.image.code.size(), model.built.nodes, model.built.kernels,
               program.kernels.size(), model.built.host_calls, model.load_ms, model.compile_ms,
               model.built.code_is_cached);
    return 0;
  }
  fmt::print("{}: {} bytes, of which {} are code for {}\n", options.output, bytes, model.built.image.code.size(),
             model.built.image.isa);
  fmt::print("{} nodes as {} kernels ({} different generated ones) and {} host calls\n", model.built.nodes,
             model.built.kernels, program.kernels.size(), model.built.host_calls);
  fmt::print("imported in {:.1f} ms, compiled in {:.1f} ms{}\n", model.load_ms, model.compile_ms,
             model.built.code_is_cached ? ", with code from the cache" : "");
  return 0;
}

}  // namespace

void add_compile(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("compile", "Compile a model to a file that run, bench and disasm take");
  command->add_option("MODEL", options->model, "An ONNX model, or text IR (.sk)")->required();
  command->add_option("-o,--output", options->output, "The file to write, by convention NAME.selkie")->required();
  add_dims_option(*command, options->dims);
  command->add_option("--threads", options->threads, "Threads that compile (default: all cores)")
      ->check(CLI::PositiveNumber);
  add_compile_options(*command, options->compile);
  command->add_flag("--json", options->json, "Machine-readable output");
  command->footer(
      "Examples:\n"
      "  selkie compile model.onnx -o model.selkie\n"
      "  selkie compile model.onnx --dims S=128 -o model-128.selkie\n"
      "  selkie run model.selkie --input x=random:1x3x224x224");
  command->callback([=, &action] { action = [=] { return compile(*options); }; });
}

}  // namespace selkie::cli
