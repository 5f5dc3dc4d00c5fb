#include "driver/artifact.h"

#include <algorithm>

#include "codegen/cpu/compile.h"
#include "driver/host.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "kernels/integer_table.h"
#include "kernels/table.h"
#include "ops/registry.h"

namespace selkie::driver {
namespace {

// What the weights that this machine's library kernels read are packed for.
std::string packed_layout() {
  return fmt::format("{} and {}", kernels::table(kernels::best_isa()).name, kernels::best_integer_table().name);
}

void check_machine(const program::Artifact& artifact, const std::string& path) {
  const auto isas = codegen::cpu::all_isas();
  auto isa = std::ranges::find(isas, artifact.image.isa, &codegen::cpu::Isa::name);
  if (isa == isas.end()) fail("'{}' has code for '{}', which is not known", path, artifact.image.isa);
  if (!codegen::cpu::host_runs(*isa))
    fail("'{}' has code for {}, which this machine does not run: compile the model here", path, artifact.image.isa);
  if (artifact.layout != packed_layout())
    fail("'{}' has weights packed for {}, but this machine's kernels are for {}: compile the model here", path,
         artifact.layout, packed_layout());
}

}  // namespace

uint64_t save(const Built& built, const std::string& path) {
  const program::Program& program = built.executable->program;
  if (built.executable->late_weights) built.executable->late_weights->ensure_all();
  CHECK(built.image.entries.size() == program.kernels.size(), "a model without code is to be saved");
  program::Artifact artifact{.program = program,
                             .functions = built.executable->functions,
                             .image = built.image,
                             .layout = packed_layout(),
                             .signature = signature(*built.declared),
                             .nodes = built.nodes,
                             .host_module = {},
                             .host_entries = {},
                             .host_constants = {}};
  if (built.module != nullptr) save_host_nodes(*built.module, built.host_nodes, artifact);
  return program::write_artifact(artifact, path);
}

Built load(const std::string& path, const interp::Options& how) {
  program::Artifact artifact = program::read_artifact(path);
  check_machine(artifact, path);
  std::unique_ptr<ir::Module> declared = ir::parse(artifact.signature, ops::op_set(), "the inputs of " + path);
  if (declared->main().body.parameters.size() != artifact.program.inputs.size() ||
      declared->main().result_names.size() != artifact.program.outputs.size())
    fail("'{}' is damaged: its inputs and outputs are not those of its program", path);
  HostNodes host = load_host_nodes(artifact, path);
  auto executable = std::make_shared<runtime::Executable>();
  executable->host_functions = host_functions(host.module, host.nodes, how);
  executable->limits = run_limits(how);
  attach_code(artifact.image, artifact.program, *executable);
  executable->program = std::move(artifact.program);
  executable->functions = std::move(artifact.functions);
  return {.executable = executable,
          .declared = std::move(declared),
          .nodes = artifact.nodes,
          .kernels = count_kernels(executable->program, executable->functions),
          .host_calls = executable->program.host_calls.size(),
          .image = std::move(artifact.image),
          .module = std::move(host.module),
          .host_nodes = std::move(host.nodes)};
}

}  // namespace selkie::driver
