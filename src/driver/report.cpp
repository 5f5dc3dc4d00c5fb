#include "driver/report.h"

#include <algorithm>
#include <set>
#include <span>

namespace selkie::driver {
namespace {

using program::Program;
using Storage = program::RegisterInfo::Storage;

// The symbols of the inputs' dims.
std::vector<sym::Expr> input_symbols(const analysis::Rdp& rdp) {
  std::vector<sym::Expr> symbols;
  for (const auto& parameter : rdp.module().main().body.parameters)
    for (sym::Expr dim : rdp.known(*parameter).type.dims.value_or(ir::SymDims{})) sym::collect_symbols(dim, symbols);
  return symbols;
}

class Summation {
 public:
  Summation(sym::Context& symbols, const std::vector<sym::Expr>& inputs, const Sizes& sizes)
      : total_(symbols.constant(0)), inputs_(inputs), sizes_(sizes) {
    sum_.bytes = 0;
  }

  // Null: nothing is known of the size.
  void add(sym::Expr bytes) {
    ++sum_.values;
    if (!bytes || !follows_from_inputs(bytes)) {
      ++sum_.open;
      return;
    }
    std::optional<int64_t> here = value_of(bytes, sizes_);
    int64_t total = 0;
    bool fits = sum_.bytes && here && !__builtin_add_overflow(*sum_.bytes, *here, &total);
    sum_.bytes = fits ? std::optional(total) : std::nullopt;
    try {
      if (total_) total_ = total_ + bytes;
    } catch (const LimitError&) {
      total_ = {};
    }
  }

  ByteSum result() {
    if (total_) sum_.expression = sym::to_string(total_);
    return sum_;
  }

 private:
  bool follows_from_inputs(sym::Expr bytes) const {
    std::vector<sym::Expr> used;
    sym::collect_symbols(bytes, used);
    return std::ranges::all_of(used, [&](sym::Expr s) { return std::ranges::find(inputs_, s) != inputs_.end(); });
  }

  sym::Expr total_;
  const std::vector<sym::Expr>& inputs_;
  const Sizes& sizes_;
  ByteSum sum_;
};

ByteSum results_of(const analysis::Rdp& rdp, sym::Context& symbols, Summation sum) {
  const ir::Region& body = rdp.module().main().body;
  std::set<const ir::Value*> outputs(body.yields.begin(), body.yields.end());
  for (const auto& node : body.nodes)
    for (const auto& result : node->results)
      if (!outputs.contains(result.get()))
        sum.add(compiler::bytes_of(rdp.known(*result).type, symbols).value_or(sym::Expr()));
  return sum.result();
}

ByteSum stored_by(const compiler::Compiled& compiled, Summation sum) {
  const Program& program = compiled.program;
  for (program::Register r = 0; r < program.registers.size(); ++r) {
    Storage storage = program.registers[r].storage;
    bool returned = std::ranges::find(program.results, r) != program.results.end();
    if ((storage == Storage::arena || storage == Storage::heap) && !returned) sum.add(compiled.stored_bytes[r]);
  }
  return sum.result();
}

// Whether inputs of these sizes pass what is checked of them.
bool are_allowed(const analysis::Rdp& rdp, std::span<const compiler::EntryCheck> checks, const Sizes& sizes) {
  for (const compiler::EntryCheck& check : checks) {
    std::optional<int64_t> a = value_of(check.a, sizes);
    std::optional<int64_t> b = value_of(check.b, sizes);
    if (a && b && (check.equal ? *a != *b : *a > *b)) return false;
  }
  auto binding = [&](std::string_view name) { return size_of(name, sizes); };
  size_t checked = 0;
  return !rdp.region(rdp.module().main().body).facts.violated(binding, checked);
}

// One sample for all symbols that are not given, the first that is allowed: small ones of models that bound their
// sizes, large ones of those that need them.
Sizes with_samples(const analysis::Rdp& rdp, const std::vector<sym::Expr>& symbols, const Sizes& given) {
  std::vector<int64_t> samples;
  for (int64_t sample = 64; sample > 0; --sample) samples.push_back(sample);
  for (int64_t sample = 128; sample <= 4096; sample *= 2) samples.push_back(sample);
  std::vector<compiler::EntryCheck> checks = compiler::entry_checks(rdp);
  for (int64_t sample : samples) {
    Sizes sizes = given;
    for (sym::Expr symbol : symbols)
      if (!value_of(symbol, given)) sizes.emplace_back(symbol.symbol_name(), sample);
    if (are_allowed(rdp, checks, sizes)) return sizes;
  }
  return given;
}

void count_instructions(const compiler::Compiled& compiled, CpuReport& report) {
  const Program& program = compiled.program;
  size_t launches = count(program, program::Opcode::launch);
  report.nodes = compiled.nodes;
  report.kernels = launches - compiled.copies;
  report.copies = compiled.copies;
  auto is_finished = [](const auto& call) { return call.finish != program::Finish{}; };
  auto finished =
      std::ranges::count_if(program.products, is_finished) + std::ranges::count_if(program.convolutions, is_finished);
  report.epilogues = program.launches.size() - launches + static_cast<size_t>(finished);
  report.views =
      static_cast<size_t>(std::ranges::count(program.registers, Storage::view, &program::RegisterInfo::storage));
  report.products = program.products.size();
  report.convolutions = program.convolutions.size();
  report.integer_products = program.integer_products.size();
  report.attentions = program.attentions.size();
  report.recurrents = program.recurrents.size();
  report.distinct_kernels = program.kernels.size();
  for (size_t i = 0; i < program.host_calls.size(); ++i)
    report.host_calls.push_back({.node = program.host_calls[i].node,
                                 .op = std::string(compiled.host_nodes[i].node->op->name),
                                 .why = program.host_calls[i].why});
}

}  // namespace

CpuReport explain(ir::Module& module, const Options& options, const Sizes& given) {
  CpuReport report;
  report.model_nodes = module.main().body.nodes.size();
  std::vector<sym::Expr> inputs;
  auto sum = [&] { return Summation(module.symbols(), inputs, report.sizes); };
  {
    analysis::Rdp rdp(module);
    inputs = input_symbols(rdp);
    report.sizes = with_samples(rdp, inputs, given);
    report.model = results_of(rdp, module.symbols(), sum());
  }
  compiler::Compiled compiled = compile(module, options.compiler);
  report.after_passes = results_of(analysis::Rdp(module), module.symbols(), sum());
  report.stored = stored_by(compiled, sum());
  count_instructions(compiled, report);
  report.calls = call_versions(compiled, report.sizes);
  report.image = make_code(compiled.kernels, options).image;
  return report;
}

}  // namespace selkie::driver
