// selkie plan: what a run of a model needs of memory, and where its tensors lie.
#include <charconv>
#include <fstream>

#include "commands.h"
#include "compile_options.h"
#include "driver/memory_report.h"
#include "inputs.h"

namespace selkie::cli {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> dims;
  std::vector<std::string> inputs;
  std::string svg;
  bool summary = false;
  bool json = false;
  CompileOptions compile;
};

// "S=128": a size of the inputs.
std::pair<std::string, int64_t> parse_size(const std::string& text, const ir::Function& main) {
  size_t equals = text.find('=');
  int64_t size = 0;
  const char* end = text.data() + text.size();
  bool is_fine = equals != std::string::npos;
  if (is_fine) {
    auto parsed = std::from_chars(text.data() + equals + 1, end, size);
    is_fine = parsed.ec == std::errc() && parsed.ptr == end && size >= 0;
  }
  if (!is_fine) fail("--dims '{}': a size is NAME=NUMBER, as in S=128", text);
  std::string name = text.substr(0, equals);
  std::vector<sym::Expr> symbols;
  for (const auto& parameter : main.body.parameters)
    if (parameter->type.dims)
      for (sym::Expr dim : *parameter->type.dims) sym::collect_symbols(dim, symbols);
  std::string known;
  for (sym::Expr symbol : symbols) {
    if (symbol.symbol_name() == name) return {name, size};
    known += fmt::format("{}{}", known.empty() ? "" : ", ", symbol.symbol_name());
  }
  fail("--dims '{}': no input has a size '{}'; there are: {}", text, name, known.empty() ? "none" : known);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) fail("cannot write '{}'", path);
}

int plan(const Options& options) {
  std::shared_ptr<ir::Module> module = load_model(options.model);
  driver::Sizes sizes;
  for (const std::string& dim : options.dims) sizes.push_back(parse_size(dim, module->main()));
  std::vector<HostValue> inputs = make_inputs(options.inputs, module->main(), 0);
  driver::MemoryReport report =
      driver::memory_report(*module, driver_options(options.compile).compiler, sizes, std::move(inputs));
  if (!options.svg.empty()) write(options.svg, driver::svg(report, options.model));
  fmt::print("{}", options.json ? driver::json(report) : driver::text(report, !options.summary));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("plan", "Show what a run of a model needs of memory, and where its tensors lie");
  command->add_option("MODEL", options->model, "An ONNX model, or text IR (.sk)")->required();
  command->add_option("--dims", options->dims, "Sizes of the inputs: S=128,N=4; others are samples")->delimiter(',');
  command->add_option("-i,--input", options->inputs,
                      "Inputs that sizes are taken from, as for run; needed where sizes depend on their elements");
  command->add_option("--svg", options->svg, "Write a picture of the arena over time to this file");
  command->add_flag("--summary", options->summary, "Without the table of tensors");
  add_program_options(*command, options->compile);
  add_order_option(*command, options->compile);
  command->add_flag("--json", options->json, "Machine-readable output");
  command->footer(
      "Examples:\n"
      "  selkie plan model.onnx --dims N=1,S=128\n"
      "  selkie plan model.onnx --input x=random:1x3x224x224 --svg arena.svg");
  command->callback([=, &action] { action = [=] { return plan(*options); }; });
}

}  // namespace selkie::cli
