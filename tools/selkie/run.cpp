// selkie run: one run of a model on given or generated inputs.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "analysis/checks.h"
#include "base/convert.h"
#include "base/text.h"
#include "checked_run.h"
#include "commands.h"
#include "compile_options.h"
#include "cpu_run.h"
#include "dims_option.h"
#include "inputs.h"
#include "interp/bind.h"
#include "interp/interp.h"
#include "limit_options.h"
#include "onnx/tensors.h"
#include "program/file.h"

namespace selkie::cli {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> inputs;
  std::vector<std::string> dims;
  std::string output;
  std::string target = "cpu";
  uint64_t seed = 0;
  int threads = 0;
  int64_t memory_limit = 0;
  ir::RunLimits limits;
  bool path = false;
  bool facts = false;
  CompileOptions compile;
  bool json = false;
};

// The first elements, and for long tensors of numbers also their range and mean.
std::string summary(const HostValue& value) {
  if (!value.is_tensor()) return "";
  const Tensor& t = value.tensor();
  constexpr int64_t shown = 8;
  std::string out;
  if (is_complex(t.dtype())) return out;
  dispatch_wide(t.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<W, std::complex<double>>) {
      std::vector<W> values = widen<W>(t);
      for (int64_t i = 0; i < std::min(t.count(), shown); ++i) {
        if constexpr (std::is_same_v<W, double>)
          out += fmt::format(" {:.6g}", values[static_cast<size_t>(i)]);
        else
          out += fmt::format(" {}", values[static_cast<size_t>(i)]);
      }
      if constexpr (!std::is_same_v<W, std::string>) {
        if (t.count() > shown) {
          double sum = 0;
          for (W v : values) sum += static_cast<double>(v);
          auto [low, high] = std::minmax_element(values.begin(), values.end());
          out += fmt::format(" … (min {:.6g}, mean {:.6g}, max {:.6g})", static_cast<double>(*low),
                             sum / static_cast<double>(t.count()), static_cast<double>(*high));
        }
      }
    }
  });
  return out;
}

std::string describe_path(const std::vector<interp::PathStep>& path) {
  std::string out;
  for (const auto& step : path)
    out += fmt::format("{}{}:{}{}", out.empty() ? "" : ", ", step.node, step.region,
                       step.times > 1 ? fmt::format(" ×{}", step.times) : "");
  return out.empty() ? "straight" : out;
}

// All outputs are spelled before the first is written, and each file appears whole or not at all.
void write_outputs(const std::string& folder, const ir::Function& main, const std::vector<HostValue>& outputs) {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::string, std::string>> files;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_tensor())
      fail("output '{}' is {}, which --output cannot write", main.result_names[i], outputs[i].describe());
    const Tensor& t = outputs[i].tensor();
    std::string name = main.result_names[i].empty() ? fmt::format("output_{}", i) : main.result_names[i];
    for (char& c : name)
      if (c == '/' || c == '\\' || c == ':') c = '_';
    if (has_npy_type(t.dtype()))
      files.emplace_back(name + ".npy", to_npy(t));
    else
      files.emplace_back(name + ".pb", onnx::write_tensor(t, main.result_names[i]));
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail("cannot make the folder '{}': {}", folder, error.message());
  for (const auto& [name, content] : files) {
    fs::path final = fs::path(folder) / name;
    fs::path partial = final;
    partial += ".partial";
    std::ofstream out(partial, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) fail("cannot write '{}'", partial.string());
    fs::rename(partial, final, error);
    if (error) fail("cannot write '{}': {}", final.string(), error.message());
  }
}

// What a run gave, and how.
struct Outcome {
  std::vector<HostValue> outputs;
  std::vector<interp::PathStep> path;
  size_t facts = 0;
  double ms = 0;
  std::string how;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Outcome run_compiled(CpuModel model, std::vector<HostValue> inputs, int threads) {
  std::string how = model.was_compiled ? fmt::format("loaded in {:.1f} ms", model.load_ms)
                                       : fmt::format("compiled in {:.1f} ms{}", model.compile_ms,
                                                     model.built.code_is_cached ? " with code from the cache" : "");
  CpuRun compiled(std::move(model.built), threads);
  auto start = std::chrono::steady_clock::now();
  Outcome outcome{.outputs = compiled.run(std::move(inputs)), .path = {}};
  outcome.ms = milliseconds_since(start);
  outcome.how = fmt::format("{}: {} nodes as {} kernels and {} host calls", how, compiled.built().nodes,
                            compiled.built().kernels, compiled.built().host_calls);
  return outcome;
}

Outcome run_reference(ir::Module& module, std::vector<HostValue> inputs, const Options& options) {
  Outcome outcome{.how = "reference evaluator"};
  interp::Options how{
      .seed = options.seed, .limits = options.limits, .memory_limit = options.memory_limit, .path = &outcome.path};
  auto start = std::chrono::steady_clock::now();
  if (options.facts) {
    CheckedRun checked(module);
    outcome.outputs = checked.run(std::move(inputs), how);
    outcome.facts = checked.facts();
  } else {
    outcome.outputs = interp::run(module, std::move(inputs), how);
  }
  outcome.ms = milliseconds_since(start);
  return outcome;
}

int report(const Options& options, const ir::Function& main, const Outcome& outcome) {
  const std::vector<HostValue>& outputs = outcome.outputs;
  if (!options.output.empty()) write_outputs(options.output, main, outputs);
  if (options.json) {
    std::string list;
    for (size_t i = 0; i < outputs.size(); ++i)
      list += fmt::format("{}{{\"name\": {}, \"type\": {}}}", i ? ", " : "", json_quote(main.result_names[i]),
                          json_quote(outputs[i].describe()));
    std::string path = options.target == "ref" ? json_quote(describe_path(outcome.path)) : "null";
    fmt::print("{{\"outputs\": [{}], \"path\": {}, \"ms\": {:.3f}}}\n", list, path, outcome.ms);
    return 0;
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    fmt::print("{}: {}{}\n", main.result_names[i], outputs[i].describe(), summary(outputs[i]));
  if (options.facts) fmt::print("facts: {} of the analysis held\n", outcome.facts);
  if (options.path) fmt::print("path: {}\n", describe_path(outcome.path));
  fmt::print("time: {:.3f} ms ({})\n", outcome.ms, outcome.how);
  return 0;
}

// What only the reference evaluator does is not left out in silence.
void check_options(const Options& options) {
  if (options.target == "ref") return;
  auto refuse = [&](bool given, std::string_view name) {
    if (given) fail("{} needs the reference evaluator: add --target ref", name);
  };
  refuse(options.path, "--path");
  refuse(options.facts, "--facts");
}

int run(const Options& options) {
  check_target(options.target);
  check_options(options);
  driver::Options how = driver_options(options.compile);
  how.check_kernels = options.target == "cpu-checked";
  how.host = {.seed = options.seed, .limits = options.limits, .memory_limit = options.memory_limit};
  if (program::is_artifact(options.model)) {
    if (options.target == "ref") fail("'{}' is compiled: --target ref needs the model", options.model);
    CpuModel model = load_cpu_model(options.model, how, options.dims);
    std::shared_ptr<const ir::Module> declared = model.built.declared;
    std::vector<HostValue> inputs = make_inputs(options.inputs, declared->main(), options.seed);
    return report(options, declared->main(), run_compiled(std::move(model), std::move(inputs), options.threads));
  }
  std::shared_ptr<ir::Module> module = load_model(options.model);
  require_dims(module->main(), options.dims);
  std::vector<HostValue> inputs = make_inputs(options.inputs, module->main(), options.seed);
  interp::bind_inputs(module->main(), inputs);
  analysis::check_inputs(analysis::Rdp(*module), inputs);
  if (options.target == "ref")
    return report(options, module->main(), run_reference(*module, std::move(inputs), options));
  CpuModel model = build_cpu_model(module, how);
  return report(options, module->main(), run_compiled(std::move(model), std::move(inputs), options.threads));
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "Run a model once");
  command->add_option("MODEL", options->model, "An ONNX model, text IR (.sk), or a compiled model")->required();
  command->add_option("-i,--input", options->inputs,
                      "NAME=FILE.npy, FILE.pb, random:2x3, zeros:2x3, ones:2x3, value:3 or value:1,2,3");
  add_dims_option(*command, options->dims);
  command->add_option("-o,--output", options->output, "Folder to write the outputs to, as .npy (or .pb)");
  command
      ->add_option("--target", options->target,
                   "cpu, cpu-checked (kernels interpreted with every access checked), or ref: the reference evaluator")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of generated inputs and random operators")->capture_default_str();
  command->add_option("--threads", options->threads, "Threads that share a kernel, on cpu (default: all cores)")
      ->check(CLI::Range(1, 1024));
  add_memory_option(*command, options->memory_limit);
  add_limit_options(*command, options->limits);
  command->add_flag("--path", options->path, "Print which branches and loops ran; with --target ref");
  command->add_flag("--facts", options->facts, "Hold what 'selkie explain' claims against the run; with --target ref");
  add_compile_options(*command, options->compile);
  command->add_flag("--json", options->json, "Machine-readable output");
  command->footer(
      "Examples:\n"
      "  selkie run model.onnx --input x=random:1x3x224x224\n"
      "  selkie run model.onnx --input ids=ids.npy --input mask=ones:1x12 --output results\n"
      "  selkie run model.selkie --input x=random:1x3x224x224 --threads 1 --json\n"
      "  selkie run model.onnx --input x=random:1x3x224x224 --target ref --path");
  command->callback([=, &action] { action = [=] { return run(*options); }; });
}

}  // namespace selkie::cli
