// selkie explain: what is known of a model's shapes before it runs, and why.
#include <fstream>
#include <map>

#include "analysis/report.h"
#include "commands.h"
#include "dims_option.h"
#include "driver/build.h"

namespace selkie::cli {
namespace {

struct Options {
  std::string model;
  std::string node;
  std::vector<std::string> dims;
  std::string dot;
  std::string html;
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
  bool found = false;
  for (const analysis::NodeReport& n : report.nodes) {
    bool named = n.name == wanted;
    for (const analysis::ValueReport& v : n.results) named = named || v.value->name == wanted;
    if (!named) continue;
    found = true;
    fmt::print("{} ({}){}: {}\n", n.name, n.node->op->name, n.region.empty() ? "" : " in " + n.region, ir::name(n.cls));
    for (std::string_view cause : n.causes) fmt::print("  its shape depends on the values of '{}'\n", cause);
    fmt::print("{}", analysis::derivation(rdp, n));
  }
  if (!found) fail("the model has no node or value '{}'", wanted);
  return 0;
}

// What the model compiles to, and what has no kernel and why.
void print_steps(const std::string& model) {
  auto module = load_model(model);
  compiler::Compiled compiled = driver::compile(*module);
  const program::Program& p = compiled.program;
  fmt::print(
      "target cpu: {} nodes after the passes run as {} kernels, {} matrix products, {} convolutions ({} of these calls "
      "with more nodes in their epilogues), {} attentions, {} recurrent layers and {} host calls\n",
      compiled.nodes, count(p, program::Opcode::launch), p.products.size(), p.convolutions.size(),
      p.launches.size() - count(p, program::Opcode::launch), p.attentions.size(), p.recurrents.size(),
      p.host_calls.size());
  std::map<std::string, int> reasons;
  for (size_t i = 0; i < p.host_calls.size(); ++i)
    ++reasons[fmt::format("{}: {}", compiled.host_nodes[i].node->op->name, p.host_calls[i].why)];
  for (const auto& [reason, count] : reasons) fmt::print("  host {:3} × {}\n", count, reason);
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
    fmt::print("{}", analysis::json(report, rdp));
    return 0;
  }
  if (!options.dot.empty() || !options.html.empty()) return 0;
  fmt::print("{}", analysis::summary_text(report, rdp));
  if (options.dims.empty()) print_steps(options.model);
  if (!options.summary) fmt::print("{}", analysis::table_text(report));
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "Show what is known of a model's shapes before it runs, and why");
  command->add_option("MODEL", options->model, "An ONNX model, or text IR (.sk)")->required();
  command->add_option("NODE", options->node, "A node or value: show how each of its dims came about");
  add_dims_option(*command, options->dims);
  command->add_flag("--summary", options->summary, "Only the summary, without the table of nodes");
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
