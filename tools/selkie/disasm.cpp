// selkie disasm: the program that a model compiles to, as text, with its kernels.
#include "commands.h"
#include "compile_options.h"
#include "driver/build.h"
#include "program/file.h"

namespace selkie::cli {
namespace {

int disasm(const std::string& model, bool kernels, const CompileOptions& options) {
  if (program::is_artifact(model)) {
    if (kernels) fail("'{}' is compiled: it has the code of its kernels, but not their text", model);
    if (options.compiler.exact) fail("'{}' is compiled: --exact needs the model", model);
    if (!options.compiler.without.empty()) fail("'{}' is compiled: --without needs the model", model);
    program::Artifact artifact = program::read_artifact(model);
    fmt::print("{}", program::disassemble(artifact.program, artifact.functions));
    return 0;
  }
  auto module = load_model(model);
  compiler::Compiled compiled = driver::compile(*module, options.compiler);
  fmt::print("{}", program::disassemble(compiled.program, compiled.functions));
  if (kernels)
    for (const kir::Kernel& kernel : compiled.kernels) fmt::print("\n{}", kir::print(kernel));
  return 0;
}

}  // namespace

void add_disasm(CLI::App& app, Action& action) {
  auto model = std::make_shared<std::string>();
  auto kernels = std::make_shared<bool>(false);
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command = app.add_subcommand("disasm", "Print the program that a model compiles to");
  command->add_option("MODEL", *model, "An ONNX model, text IR (.sk), or a compiled model")->required();
  command->add_flag("--kernels", *kernels, "Print the kernels, too, in the kernel IR");
  add_program_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  selkie disasm model.selkie\n"
      "  selkie disasm model.onnx --kernels");
  command->callback([=, &action] { action = [=] { return disasm(*model, *kernels, *options); }; });
}

}  // namespace selkie::cli
