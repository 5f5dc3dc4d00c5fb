#include "driver/build.h"

#include <algorithm>

#include "analysis/rdp.h"
#include "code_fingerprint.h"
#include "codegen/cpu/compile.h"
#include "compiler/compile.h"
#include "driver/cache.h"
#include "driver/host.h"
#include "ir/parse.h"
#include "kir/interpret.h"
#include "ops/registry.h"
#include "passes/pass.h"

namespace selkie::driver {
namespace {

// In this order: decided arms first, since what they leave is less; shapes before what only they used is removed.
constexpr std::string_view pipeline[] = {
    "fold_constants", "dead_arms", "fold_known", "shape_arithmetic", "static_attributes", "fuse_attention",
    // What has library kernels in another form: small floats first, since they become f32.
    "widened_products", "plain_gemms", "transposed_convolutions", "quantized_products", "dead_code"};

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

// All that code depends on: the kernels, the machine and what compiles. The kernels of a model are one entry, since
// that is read at once when the model is compiled again.
std::string cache_key(const std::vector<kir::Kernel>& kernels, const codegen::cpu::Isa& isa) {
  std::string key =
      fmt::format("{}\n{} {} {} {}\n", SELKIE_CODE_FINGERPRINT, isa.name, isa.triple, isa.cpu, isa.features);
  for (const kir::Kernel& kernel : kernels) key += kir::print(kernel);
  return key;
}

void compile_kernels(const std::vector<kir::Kernel>& kernels, const Options& options, Built& built) {
  const codegen::cpu::Isa& isa = codegen::cpu::host_isa();
  std::optional<CodeCache> cache;
  std::string key;
  if (!options.cache_folder.empty() && !kernels.empty()) {
    cache.emplace(options.cache_folder, options.cache_bytes);
    key = cache_key(kernels, isa);
    if (std::optional<program::Image> image = cache->find(key)) {
      built.image = std::move(*image);
      built.code_is_cached = true;
      return;
    }
  }
  std::vector<const kir::Kernel*> pointers;
  for (const kir::Kernel& kernel : kernels) pointers.push_back(&kernel);
  built.image = codegen::cpu::compile(pointers, isa, static_cast<unsigned>(std::max(options.threads, 1)));
  if (cache) cache->store(key, built.image);
}

}  // namespace

compiler::Compiled compile(ir::Module& module) {
  std::vector<compiler::EntryCheck> checks = compiler::entry_checks(analysis::Rdp(module));
  for (std::string_view name : pipeline) passes::run_pass(*passes::find_pass(name), module);
  analysis::Rdp rdp(module);
  return compiler::compile(module, rdp, std::move(checks));
}

void attach_code(const program::Image& image, const program::Program& program, runtime::Executable& executable) {
  auto loaded = std::make_shared<program::LoadedImage>(image);
  for (const std::string& kernel : program.kernels) executable.kernels.push_back(loaded->kernel(kernel));
  executable.code = std::move(loaded);
}

size_t count_kernels(const program::Program& program) {
  return count(program, program::Opcode::launch) + program.products.size() + program.convolutions.size() +
         program.integer_products.size() + program.attentions.size() + program.recurrents.size();
}

Built build(std::shared_ptr<ir::Module> module, const Options& options) {
  auto executable = std::make_shared<runtime::Executable>();
  Built built{.executable = executable, .declared = ir::parse(signature(*module), ops::op_set(), "the inputs")};
  compiler::Compiled compiled = compile(*module);
  built.nodes = compiled.nodes;
  built.kernels = count_kernels(compiled.program);
  built.host_calls = compiled.program.host_calls.size();
  for (const compiler::HostNode& host : compiled.host_nodes)
    executable->host_functions.push_back(host_function(module, host));
  if (options.check_kernels) {
    executable->interpreter = interpreter(std::move(compiled.kernels), module);
  } else {
    compile_kernels(compiled.kernels, options, built);
    attach_code(built.image, compiled.program, *executable);
  }
  executable->program = std::move(compiled.program);
  if (!compiled.host_nodes.empty()) built.module = std::move(module);
  built.host_nodes = std::move(compiled.host_nodes);
  return built;
}

}  // namespace selkie::driver
