#include "driver/report.h"

#include <algorithm>
#include <set>

#include "driver/samples.h"
#include "program/chains.h"

namespace selkie::driver {
namespace {

using program::Program;
using Storage = program::RegisterInfo::Storage;

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
  for (const program::Chain& chain : program::find_chains(program)) report.chained += chain.last - chain.first;
  report.views =
      static_cast<size_t>(std::ranges::count(program.registers, Storage::view, &program::RegisterInfo::storage));
  report.products = program.products.size();
  report.convolutions = program.convolutions.size();
  report.integer_products = program.integer_products.size();
  report.attentions = program.attentions.size();
  report.recurrents = program.recurrents.size();
  report.function_calls = program.calls.size();
  report.functions = compiled.functions.size();
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
