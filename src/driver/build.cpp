#include "driver/build.h"

#include <algorithm>

#include "analysis/rdp.h"
#include "codegen/cpu/compile.h"
#include "compiler/compile.h"
#include "interp/interp.h"
#include "kir/interpret.h"
#include "passes/pass.h"

namespace selkie::driver {
namespace {

// In this order: decided arms first, since what they leave is less; shapes before what only they used is removed.
constexpr std::string_view pipeline[] = {"fold_constants",          "dead_arms",         "fold_known",
                                         "shape_arithmetic",        "static_attributes", "fuse_attention",
                                         "transposed_convolutions", "dead_code"};

runtime::HostFunction host_function(std::shared_ptr<const ir::Module> module, const compiler::HostNode& host) {
  std::vector<const ir::Value*> values(host.node->operands.begin(), host.node->operands.end());
  values.insert(values.end(), host.captured.begin(), host.captured.end());
  return [module = std::move(module), node = host.node,
          values = std::move(values)](const runtime::HostArguments& arguments) {
    std::vector<std::pair<const ir::Value*, HostValue>> outside;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != nullptr) outside.emplace_back(values[i], arguments.operands[i]);
    return interp::run_node(*module, *node, outside, arguments.symbols);
  };
}

// Kernels speak of the module's symbols.
runtime::KernelInterpreter interpreter(std::vector<kir::Kernel> kernels, std::shared_ptr<const ir::Module> module) {
  return [kernels = std::make_shared<std::vector<kir::Kernel>>(std::move(kernels)), module = std::move(module)](
             uint32_t kernel, std::span<const runtime::CheckedBuffer> buffers, std::span<const int64_t> sizes,
             std::span<const int64_t> ranges) {
    std::vector<kir::BufferView> views;
    for (const runtime::CheckedBuffer& b : buffers) views.push_back({.data = b.data, .count = b.elements});
    kir::interpret((*kernels)[kernel], views, sizes, ranges);
  };
}

void load_code(const std::vector<kir::Kernel>& kernels, int threads, runtime::Executable& executable) {
  std::vector<const kir::Kernel*> pointers;
  for (const kir::Kernel& kernel : kernels) pointers.push_back(&kernel);
  program::Image image =
      codegen::cpu::compile(pointers, codegen::cpu::host_isa(), static_cast<unsigned>(std::max(threads, 1)));
  auto loaded = std::make_shared<program::LoadedImage>(image);
  for (const kir::Kernel& kernel : kernels) executable.kernels.push_back(loaded->kernel(kernel.name));
  executable.code = std::move(loaded);
}

}  // namespace

compiler::Compiled compile(ir::Module& module) {
  std::vector<compiler::EntryCheck> checks = compiler::entry_checks(analysis::Rdp(module));
  for (std::string_view name : pipeline) passes::run_pass(*passes::find_pass(name), module);
  analysis::Rdp rdp(module);
  return compiler::compile(module, rdp, std::move(checks));
}

Built build(std::shared_ptr<ir::Module> module, const Options& options) {
  compiler::Compiled compiled = compile(*module);
  auto executable = std::make_shared<runtime::Executable>();
  Built built{.nodes = compiled.nodes,
              .kernels = count(compiled.program, program::Opcode::launch) + compiled.program.products.size() +
                         compiled.program.convolutions.size() + compiled.program.attentions.size() +
                         compiled.program.recurrents.size(),
              .host_calls = compiled.program.host_calls.size()};
  for (const compiler::HostNode& host : compiled.host_nodes)
    executable->host_functions.push_back(host_function(module, host));
  if (options.check_kernels)
    executable->interpreter = interpreter(std::move(compiled.kernels), module);
  else
    load_code(compiled.kernels, options.threads, *executable);
  executable->program = std::move(compiled.program);
  built.executable = std::move(executable);
  return built;
}

}  // namespace selkie::driver
