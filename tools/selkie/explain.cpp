// selkie explain: what is known of a model's shapes before it runs, and why, and what it compiles to.
#include <fstream>
#include <sstream>

#include "analysis/report.h"
#include "base/text.h"
#include "commands.h"
#include "compile_options.h"
#include "dims_option.h"
#include "driver/report.h"

namespace selkie::cli {
namespace {

struct Options {
  std::string model;
  std::string node;
  std::vector<std::string> dims;
  std::string dot;
  std::string html;
  CompileOptions compile;
  bool json = false;
  bool summary = false;
};

void write(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream out(path);
  out << text;
  if (!out.flush()) fail("cannot write '{}'", path);
  fmt::print(stderr, "wrote {}\n", path);
}

int explain_node(const analysis::Report& report, const analysis::Rdp& rdp, const std::string& wanted) {
  std::string text = analysis::node_text(report, rdp, wanted);
  if (text.empty()) fail("the model has no node or value '{}'", wanted);
  fmt::print("{}", text);
  return 0;
}

// Numbers among the given facts: "N=4", "N == 4, M == 5". They are sizes to tell figures for; the program itself serves
// all sizes.
driver::Sizes given_sizes(const std::vector<std::string>& dims) {
  driver::Sizes sizes;
  for (const std::string& text : dims) {
    std::stringstream facts(text);
    for (std::string fact; std::getline(facts, fact, ',');) {
      std::erase(fact, ' ');
      size_t equals = fact.find('=');
      if (equals == std::string::npos) continue;
      std::string name = fact.substr(0, equals);
      std::string number = fact.substr(fact.find_last_of('=') + 1);
      bool is_size = name.find_first_of("<>!%*+-()") == std::string::npos && !number.empty() && number.size() <= 12 &&
                     number.find_first_not_of("0123456789") == std::string::npos;
      if (is_size) sizes.emplace_back(name, std::stoll(number));
    }
  }
  return sizes;
}

// What the model compiles to. A model that cannot be compiled still has its shapes explained.
struct CpuSection {
  std::string text;
  std::string json;
};
CpuSection cpu_section(const Options& options) {
  driver::Options how = driver_options(options.compile);
  auto module = load_model(options.model);
  try {
    driver::CpuReport report = driver::explain(*module, how, given_sizes(options.dims));
    return {.text = driver::summary_text(report) + driver::machine_text(report), .json = driver::json(report)};
  } catch (const Error& error) {
    return {.text = fmt::format("target cpu: it does not compile: {}\n", error.what()),
            .json = fmt::format("{{\"error\": {}}}", json_quote(error.what()))};
  }
}

int explain(const Options& options) {
  auto module = load_model(options.model);
  require_dims(module->main(), options.dims);
  analysis::Rdp rdp(*module);
  analysis::Report report = analysis::report(rdp);
  if (!options.dot.empty()) write(options.dot, analysis::dot(report, rdp));
  if (!options.html.empty()) write(options.html, analysis::html(report, rdp, options.model));
  if (!options.node.empty()) return explain_node(report, rdp, options.node);
  if (options.json) {
    fmt::print("{}", analysis::json(report, rdp, fmt::format("\"cpu\": {}", cpu_section(options).json)));
    return 0;
  }
  if (!options.dot.empty() || !options.html.empty()) return 0;
  fmt::print("{}", analysis::summary_text(report, rdp));
  fmt::print("{}", cpu_section(options).text);
  if (!options.summary) fmt::print("{}", analysis::table_text(report));
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "explain", "Show what is known of a model's shapes before it runs and why, and what it compiles to");
  command->add_option("MODEL", options->model, "An ONNX model, or text IR (.sk)")->required();
  command->add_option("NODE", options->node, "A node or value: show how each of its dims came about");
  add_dims_option(*command, options->dims);
  command->add_flag("--summary", options->summary, "Only the summary, without the table of nodes");
  add_compile_options(*command, options->compile);
  command->add_flag("--json", options->json, "Machine-readable output");
  command->add_option("--dot", options->dot, "Write the graph for Graphviz to this file ('-': standard output)");
  command->add_option("--html", options->html, "Write a page with the graph, coloured by class, to this file");
  command->footer(
      "Examples:\n"
      "  selkie explain model.onnx\n"
      "  selkie explain model.onnx Reshape_12\n"
      "  selkie explain model.onnx --dims 'S in 1..512' --html model.html");
  command->callback([=, &action] { action = [=] { return explain(*options); }; });
}

}  // namespace selkie::cli
