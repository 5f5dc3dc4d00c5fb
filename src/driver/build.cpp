#include "driver/build.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "analysis/rdp.h"
#include "base/code_pages.h"
#include "base/memory.h"
#include "code_fingerprint.h"
#include "codegen/cpu/compile.h"
#include "compiler/compile.h"
#include "driver/cache.h"
#include "driver/functions.h"
#include "driver/host.h"
#include "ir/parse.h"
#include "kir/interpret.h"
#include "ops/registry.h"
#include "passes/pass.h"
#include "program/late_weights.h"

namespace selkie::driver {
namespace {

// In this order: calls first, since facts and kernels are found where their bodies stand; then loops that are none and
// decided arms, since what they leave is less; shapes before what only they used is removed.
constexpr std::string_view pipeline[] = {
    "inline_calls", "drop_identities",
    // Before constants are folded, since it makes some.
    "norms_by_plane", "fold_constants", "channel_scales", "unroll_loops",
    // Which order is less work, facts may tell.
    "products_before_gathers", "dead_arms", "fold_known",
    // Work moves to where it is needed, once: before shapes, since what moves brings its own.
    "merge_arms", "sink_into_arms", "hoist_invariants", "split_loops", "batch_levels", "shape_arithmetic",
    "static_attributes", "splits_as_slices", "fuse_attention",
    // What has library kernels in another form: small floats first, since they become f32.
    "widened_products", "plain_gemms", "transposed_convolutions", "convolutions_of_phases", "quantized_products",
    "pools_by_axis", "dead_code"};

// Kernels speak of symbols of the modules.
runtime::KernelInterpreter interpreter(std::vector<kir::Kernel> kernels,
                                       std::vector<std::shared_ptr<ir::Module>> modules) {
  return [kernels = std::make_shared<std::vector<kir::Kernel>>(std::move(kernels)), modules = std::move(modules)](
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

// What the analysis knows of the results is true, and says more than what the model declares.
std::unique_ptr<ir::Module> declaration(const ir::Module& module, const analysis::Rdp& rdp) {
  constexpr size_t longest = 200;  // of a type that still says something to people
  std::vector<ir::Type> results = module.main().result_types;
  for (size_t i = 0; i < results.size(); ++i) {
    const ir::Type& known = rdp.known(*module.main().body.yields[i]).type;
    if (known.is_tensor() && known.dims && to_string(known).size() <= longest) results[i] = known;
  }
  return ir::parse(signature(module, std::move(results)), ops::op_set(), "the inputs");
}

// Reading some of a file brings in what lies around it.
void release_files(const ir::Module& module) {
  std::set<const MappedFile*> files;
  for (const auto& constant : module.constants())
    if (constant->file != nullptr) files.insert(constant->file.get());
  for (const MappedFile* file : files) file->release(file->bytes());
}

// Leaves to the first call that reads them what only calls in arms of branches read. Null if there is nothing.
std::shared_ptr<runtime::LateWeights> late_weights(const program::Program& program, compiler::Packings& packings) {
  std::vector<uint32_t> constants = program::weights_of_arms(program);
  std::set<const std::byte*> tensors;
  for (uint32_t c : constants) tensors.insert(program.constants[c].bytes());
  compiler::Packings::Later later = packings.take(tensors);
  if (later.empty()) return nullptr;
  auto out = std::make_shared<runtime::LateWeights>(program.constants.size());
  for (uint32_t c : constants)
    if (auto at = later.find(program.constants[c].bytes()); at != later.end()) out->add(c, std::move(at->second));
  return out;
}

// All but the weights.
compiler::Compiled compile_code(ir::Module& module, std::vector<compiler::EntryCheck> checks,
                                const compiler::Options& options) {
  for (const std::string& name : options.without)
    if (passes::find_pass(name) == nullptr) fail("there is no pass '{}'; 'selkie passes' lists them", name);
  auto prepare = [&](ir::Module& prepared) {
    for (std::string_view name : pipeline)
      if (std::ranges::find(options.without, name) == options.without.end())
        passes::run_pass(*passes::find_pass(name), prepared);
  };
  prepare(module);
  Functions functions(module, options, prepare);
  compiler::Options own = options;
  own.functions = functions.names();
  analysis::Rdp rdp(module, own.functions);
  compiler::Compiled compiled = compiler::compile(module, rdp, std::move(checks), std::move(own));
  functions.link_to(compiled);
  return compiled;
}

}  // namespace

compiler::Compiled compile(ir::Module& module, const compiler::Options& options) {
  compiler::Compiled compiled = compile_code(module, compiler::entry_checks(analysis::Rdp(module)), options);
  compiled.packings.run(1);
  return compiled;
}

Code make_code(const std::vector<kir::Kernel>& kernels, const Options& options) {
  const codegen::cpu::Isa& isa = codegen::cpu::host_isa();
  std::optional<CodeCache> cache;
  std::string key;
  if (!options.cache_folder.empty() && !kernels.empty()) {
    cache.emplace(options.cache_folder, options.cache_bytes);
    key = cache_key(kernels, isa);
    if (std::optional<program::Image> image = cache->find(key)) return {.image = std::move(*image), .is_cached = true};
  }
  std::vector<const kir::Kernel*> pointers;
  for (const kir::Kernel& kernel : kernels) pointers.push_back(&kernel);
  Code code{.image = codegen::cpu::compile(pointers, isa, static_cast<unsigned>(std::max(options.threads, 1)))};
  if (cache) cache->store(key, code.image);
  return code;
}

void attach_code(const program::Image& image, const program::Program& program, runtime::Executable& executable) {
  auto loaded = std::make_shared<program::LoadedImage>(image);
  for (const std::string& kernel : program.kernels) executable.kernels.push_back(loaded->kernel(kernel));
  executable.code = std::move(loaded);
}

runtime::Limits run_limits(const interp::Options& how) {
  return {.loop_trips = how.limits.loop_trips,
          .call_depth = how.limits.call_depth,
          .sequence_items = how.limits.sequence_items,
          .memory_bytes = how.memory_limit,
          .seconds = how.limits.seconds};
}

size_t count_kernels(const program::Program& program, std::span<const program::Program> functions) {
  size_t sum = count(program, program::Opcode::launch) + program.products.size() + program.convolutions.size() +
               program.integer_products.size() + program.attentions.size() + program.recurrents.size();
  for (const program::Program& function : functions) sum += count_kernels(function);
  return sum;
}

Built build(std::shared_ptr<ir::Module> module, const Options& options) {
  CodePages code_pages;
  auto executable = std::make_shared<runtime::Executable>();
  Built built{.executable = executable};
  std::vector<compiler::EntryCheck> checks;
  {
    analysis::Rdp rdp(*module);
    built.declared = declaration(*module, rdp);
    checks = compiler::entry_checks(rdp);
  }
  compiler::Compiled compiled = compile_code(*module, std::move(checks), options.compiler);
  built.nodes = compiled.nodes;
  built.kernels = count_kernels(compiled.program, compiled.functions);
  built.host_calls = compiled.program.host_calls.size();
  executable->host_functions = host_functions(module, compiled.host_nodes, options.host);
  executable->limits = run_limits(options.host);
  release_files(*module);
  if (options.check_kernels) {
    std::vector<std::shared_ptr<ir::Module>> modules = compiled.modules;
    modules.push_back(module);
    executable->interpreter = interpreter(std::move(compiled.kernels), std::move(modules));
  } else {
    Code code = make_code(compiled.kernels, options);
    built.image = std::move(code.image);
    built.code_is_cached = code.is_cached;
    attach_code(built.image, compiled.program, *executable);
  }
  // Weights take the memory that compilation needed, instead of more.
  give_back_memory();
  code_pages.give_back_new_ones();
  release_files(*module);
  if (options.late_weights) executable->late_weights = late_weights(compiled.program, compiled.packings);
  compiled.packings.run(options.threads);
  release_files(*module);
  executable->program = std::move(compiled.program);
  executable->functions = std::move(compiled.functions);
  if (!compiled.host_nodes.empty()) built.module = std::move(module);
  built.host_nodes = std::move(compiled.host_nodes);
  module.reset();
  compiled = {};
  give_back_memory();
  return built;
}

}  // namespace selkie::driver
