// selkie check, opt, ops and passes: commands that look at a model or at Selkie itself.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/text.h"
#include "commands.h"
#include "ir/print.h"
#include "ir/signature.h"
#include "ops/docs.h"
#include "ops/registry.h"
#include "passes/pass.h"
#include "program/file.h"

namespace selkie::cli {
namespace {

// Memory of this process that no file backs, in bytes; 0 where the system does not say.
int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::strtoll(line.c_str() + 8, nullptr, 10) * 1024;
  return 0;
}

// A compiled model, with all its weights.
int check_compiled(const std::string& path) {
  program::check_weights(path);
  program::Artifact artifact = program::read_artifact(path);
  const program::Program& p = artifact.program;
  fmt::print("{} is whole: {} instructions, {} generated kernels for {}, {} host calls, {} constants\n", path,
             p.code.size(), p.kernels.size(), artifact.image.isa, p.host_calls.size(), p.constants.size());
  return 0;
}

int check(const std::string& path, bool json) {
  ops::op_set();  // made before the clock starts: it is not the model's
  int64_t bytes_before = anonymous_bytes();
  auto start = std::chrono::steady_clock::now();
  auto module = load_model(path);
  double import_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  int64_t import_bytes = std::max<int64_t>(0, anonymous_bytes() - bytes_before);
  const ir::Function& main = module->main();
  std::map<std::string_view, int64_t> counts;
  int64_t nodes = 0;
  for (const auto& function : module->functions())
    ir::for_each_node(static_cast<const ir::Region&>(function->body), [&](const ir::Node& node) {
      ++counts[node.op->name];
      ++nodes;
    });
  int64_t bytes = 0;
  for (const auto& constant : module->constants())
    bytes += constant->dtype == DType::str ? 0 : element_count(constant->dims) * info(constant->dtype).bits / 8;
  auto types = [&](auto&& names, auto&& type_of, size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i)
      out += json ? fmt::format("{}{{\"name\": {}, \"type\": {}}}", i ? ", " : "", json_quote(names(i)),
                                json_quote(to_string(type_of(i))))
                  : fmt::format("  {}: {}\n", names(i), to_string(type_of(i)));
    return out;
  };
  const auto& parameters = main.body.parameters;
  std::string inputs = types([&](size_t i) { return parameters[i]->name; },
                             [&](size_t i) { return parameters[i]->type; }, parameters.size());
  std::string outputs = types([&](size_t i) { return main.result_names[i]; },
                              [&](size_t i) { return main.result_types[i]; }, main.result_types.size());
  if (json) {
    std::string ops;
    for (const auto& [name, count] : counts)
      ops += fmt::format("{}{}: {}", ops.empty() ? "" : ", ", json_quote(name), count);
    fmt::print(
        "{{\"inputs\": [{}], \"outputs\": [{}], \"nodes\": {}, \"functions\": {}, \"constants\": {}, "
        "\"constant_bytes\": {}, \"operators\": {{{}}}, "
        "\"import_ms\": {:.3f}, \"import_anonymous_bytes\": {}}}\n",
        inputs, outputs, nodes, module->functions().size(), module->constants().size(), bytes, ops, import_ms,
        import_bytes);
    return 0;
  }
  fmt::print("{} is valid: {} nodes in {} functions, {} constants of {} bytes\ninputs:\n{}outputs:\n{}operators:\n",
             path, nodes, module->functions().size(), module->constants().size(), bytes, inputs, outputs);
  for (const auto& [name, count] : counts) fmt::print("  {:6} {}\n", count, name);
  fmt::print("import: {:.3f} ms, {} bytes of memory beside the mapped file\n", import_ms, import_bytes);
  return 0;
}

int opt(const std::string& path, const std::vector<std::string>& names) {
  std::vector<const passes::Pass*> chosen;
  for (const std::string& name : names) {
    chosen.push_back(passes::find_pass(name));
    if (chosen.back() == nullptr) fail("there is no pass '{}'; 'selkie passes' lists them", name);
  }
  auto module = load_model(path);
  for (const passes::Pass* pass : chosen) passes::run_pass(*pass, *module);
  fmt::print("{}", ir::print(*module));
  return 0;
}

int list_ops(const std::string& name, bool markdown, bool json) {
  if (markdown || json) {
    fmt::print("{}{}", markdown ? ops::markdown() : ops::json(), json ? "\n" : "");
    return 0;
  }
  const ir::OpSet& set = ops::op_set();
  if (name.empty()) {
    for (const ir::OpDef* op : set.all()) fmt::print("{:32} {:7} {}\n", op->name, ir::name(op->dynamism.cls), op->doc);
    return 0;
  }
  bool found = false;
  for (const ir::OpDef* op : set.all()) {
    if (op->name != name && op->onnx.name != name) continue;
    found = true;
    fmt::print("{}", ops::describe(*op));
  }
  if (!found) fail("there is no operator '{}'", name);
  return 0;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("check", "Import and verify a model, and say what is in it");
  command->add_option("MODEL", *path, "An ONNX model, or text IR (.sk)")->required();
  command->add_flag("--json", *json, "Machine-readable output");
  command->footer(
      "Examples:\n"
      "  selkie check model.onnx\n"
      "  selkie check model.selkie");
  command->callback([=, &action] {
    action = [=] { return program::is_artifact(*path) ? check_compiled(*path) : check(*path, *json); };
  });
}

void add_opt(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("opt", "Run passes over a model and print its text IR");
  command->add_option("MODEL", *path, "An ONNX model, or text IR (.sk)")->required();
  command->add_option("-p,--pass", *names, "A pass to run; may be given several times, in order");
  command->footer(
      "Examples:\n"
      "  selkie opt model.onnx --pass fold_constants --pass dead_code\n"
      "  selkie opt model.onnx >model.sk");
  command->callback([=, &action] { action = [=] { return opt(*path, *names); }; });
}

void add_ops(CLI::App& app, Action& action) {
  auto name = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("ops", "List the operators, or show one");
  command->add_option("NAME", *name, "Selkie's or ONNX's name of an operator");
  command->add_flag("--markdown", *markdown, "Print docs/ops.md");
  command->add_flag("--json", *json, "All records, machine-readable");
  command->footer(
      "Examples:\n"
      "  selkie ops\n"
      "  selkie ops Reshape");
  command->callback([=, &action] { action = [=] { return list_ops(*name, *markdown, *json); }; });
}

void add_passes(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("passes", "List the passes");
  command->footer(
      "Examples:\n"
      "  selkie passes");
  command->callback([&action] {
    action = [] {
      for (const passes::Pass& pass : passes::all_passes()) fmt::print("{:20} {}\n", pass.name, pass.contract);
      return 0;
    };
  });
}

}  // namespace selkie::cli
