// selkie verify: runs the cases of ONNX-style test folders and compares outputs.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/convert.h"
#include "base/text.h"
#include "checked_run.h"
#include "commands.h"
#include "compare.h"
#include "compile_options.h"
#include "cpu_run.h"
#include "interp/interp.h"
#include "isolate.h"
#include "onnx/tensors.h"

namespace selkie::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> paths;
  std::string target = "cpu";
  Tolerance tolerance;
  CompileOptions compile;
  int jobs = 0;
  double timeout = 120;
  int64_t memory_limit = 0;
  bool json = false;
};

// A model with its data sets, or one of the `light` models: NAME.onnx with NAME_output_0.pb, whose inputs are
// generated.
struct Case {
  std::string name;
  fs::path model;
  std::vector<fs::path> data_sets;
  fs::path light_output;
};

std::vector<Case> find_cases(const std::string& root) {
  if (!fs::exists(root)) fail("there is no '{}'", root);
  std::vector<Case> cases;
  auto consider = [&](const fs::path& file) {
    fs::path folder = file.parent_path();
    std::string name = fs::relative(folder, root).string();
    if (file.filename() == "model.onnx") {
      Case c{name == "." ? fs::absolute(folder).filename().string() : name, file, {}, {}};
      for (const auto& entry : fs::directory_iterator(folder))
        if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set"))
          c.data_sets.push_back(entry.path());
      std::sort(c.data_sets.begin(), c.data_sets.end());
      if (!c.data_sets.empty()) cases.push_back(std::move(c));
      return;
    }
    fs::path output = folder / (file.stem().string() + "_output_0.pb");
    if (file.extension() == ".onnx" && fs::exists(output))
      cases.push_back({(fs::path(name) / file.stem()).lexically_normal().string(), file, {}, output});
  };
  if (fs::is_regular_file(root)) fail("'{}' is a file; verify takes folders", root);
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file()) consider(entry.path());
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

// 0, 1, …, n−1 divided by n.
Tensor ramp(const ir::Type& type) {
  Dims dims;
  for (sym::Expr d : type.dims.value_or(ir::SymDims{})) dims.push_back(d.constant().value_or(1));
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / static_cast<float>(values.size());
  return narrow<double>(values, type.is_tensor() ? type.dtype : DType::f32, dims);
}

std::string compare_all(const ir::Function& main, const std::vector<HostValue>& outputs,
                        const std::vector<HostValue>& expected, Tolerance tolerance) {
  if (outputs.size() < expected.size())
    return fmt::format("differs: {} outputs, expected {}", outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    std::string text = difference(outputs[i], expected[i], tolerance);
    if (!text.empty()) return fmt::format("differs: output '{}' {}", main.result_names[i], text);
  }
  return "";
}

std::vector<HostValue> read_all(const fs::path& folder, std::string_view kind,
                                const std::function<const ir::Type&(size_t)>& type_of) {
  std::vector<HostValue> values;
  for (size_t i = 0;; ++i) {
    fs::path file = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(file)) return values;
    values.push_back(onnx::read_value_file(file.string(), type_of(i)));
  }
}

// The number of facts that were checked if the case passes, else "differs: …" or "error: …".
std::string run_case(const Case& c, const Options& options) {
  try {
    std::shared_ptr<ir::Module> module = load_model(c.model.string());
    const ir::Function& main = module->main();
    interp::Options how{.memory_limit = options.memory_limit};
    std::vector<ir::Type> declared;
    for (const auto& p : main.body.parameters) declared.push_back(p->type);
    std::optional<CheckedRun> reference;
    std::optional<CpuRun> compiled;
    if (options.target == "ref")
      reference.emplace(*module);
    else
      compiled.emplace(driver::build(module, {.compiler = options.compile.compiler,
                                              .check_kernels = options.target == "cpu-checked",
                                              .threads = core_count()}));
    auto run_once = [&](std::vector<HostValue> inputs) {
      return reference ? reference->run(std::move(inputs), how) : compiled->run(std::move(inputs));
    };
    static const ir::Type unknown;
    auto input_type = [&](size_t i) -> const ir::Type& { return i < declared.size() ? declared[i] : unknown; };
    auto output_type = [&](size_t i) -> const ir::Type& {
      return i < main.result_types.size() ? main.result_types[i] : unknown;
    };
    if (!c.light_output.empty()) {
      std::vector<HostValue> inputs;
      for (const ir::Type& type : declared) inputs.push_back(ramp(type));
      std::vector<HostValue> outputs = run_once(std::move(inputs));
      std::string text = compare_all(main, outputs, {onnx::read_value_file(c.light_output.string(), output_type(0))},
                                     options.tolerance);
      return text.empty() ? fmt::format("{}", reference ? reference->facts() : 0) : text;
    }
    for (const fs::path& set : c.data_sets) {
      std::vector<HostValue> inputs = read_all(set, "input", input_type);
      inputs.resize(main.body.parameters.size());
      std::vector<HostValue> outputs = run_once(std::move(inputs));
      std::string text = compare_all(main, outputs, read_all(set, "output", output_type), options.tolerance);
      if (!text.empty()) return text;
    }
    return fmt::format("{}", reference ? reference->facts() : 0);
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("error: uncaught ") + error.what();
  }
}

int verify(const Options& options) {
  check_target(options.target);
  if (options.memory_limit != 0 && options.target != "ref")
    fail("--memory-limit needs the reference evaluator: add --target ref");
  std::vector<Case> cases;
  for (const std::string& path : options.paths)
    for (Case& c : find_cases(path)) cases.push_back(std::move(c));
  if (cases.empty()) fail("there are no cases in the given paths: folders with model.onnx and test_data_set_*");
  struct Failure {
    std::string name, reason;
  };
  std::vector<Failure> failures;
  size_t done = 0;
  size_t differs = 0;
  size_t facts = 0;
  bool progress = isatty(STDERR_FILENO) != 0;
  int jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  auto report = [&](size_t i, const Outcome& outcome) {
    std::string reason = outcome.finished ? outcome.text : "error: " + outcome.text;
    if (!reason.empty() && reason.find_first_not_of("0123456789") == std::string::npos) {
      facts += std::stoull(reason);
      reason.clear();
    }
    differs += reason.starts_with("differs");
    if (!reason.empty()) failures.push_back({cases[i].name, reason});
    if (progress) fmt::print(stderr, "\r{}/{} cases, {} not passed ", ++done, cases.size(), failures.size());
  };
  run_isolated(cases.size(), jobs, options.timeout, [&](size_t i) { return run_case(cases[i], options); }, report);
  if (progress) fmt::print(stderr, "\r\x1b[K");
  std::sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) { return a.name < b.name; });
  size_t passed = cases.size() - failures.size();
  if (options.json) {
    std::string list;
    for (const Failure& f : failures)
      list += fmt::format("{}{{\"case\": {}, \"reason\": {}}}", list.empty() ? "" : ", ", json_quote(f.name),
                          json_quote(f.reason));
    fmt::print(
        "{{\"total\": {}, \"passed\": {}, \"differs\": {}, \"errors\": {}, \"facts\": {}, \"failures\": [{}]}}\n",
        cases.size(), passed, differs, failures.size() - differs, facts, list);
  } else {
    for (const Failure& f : failures) fmt::print("{}: {}\n", f.name, f.reason);
    fmt::print("{} cases: {} passed, {} differ, {} errors{}\n", cases.size(), passed, differs,
               failures.size() - differs,
               options.target == "ref" ? fmt::format("; {} facts of the analysis held", facts) : "");
  }
  return failures.empty() ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("verify", "Run ONNX test cases and compare their outputs");
  command->add_option("PATH", options->paths, "Folders with model.onnx and test_data_set_*/, at any depth")->required();
  command
      ->add_option("--target", options->target,
                   "cpu, cpu-checked (kernels interpreted with every access checked), or ref: the reference evaluator, "
                   "with what 'selkie explain' claims held against each run")
      ->capture_default_str();
  add_program_options(*command, options->compile);
  command->add_option("--rtol", options->tolerance.rtol, "Relative tolerance")->capture_default_str();
  command->add_option("--atol", options->tolerance.atol, "Absolute tolerance")->capture_default_str();
  command->add_option("-j,--jobs", options->jobs, "Cases to run at a time (default: one per core)");
  command->add_option("--timeout", options->timeout, "Seconds that one case may take")->capture_default_str();
  command->add_option("--memory-limit", options->memory_limit,
                      "Bytes that the tensors of one case may hold, with --target ref");
  command->add_flag("--json", options->json, "Machine-readable output");
  command->footer(
      "Examples:\n"
      "  selkie verify path/to/onnx/backend/test/data/node --jobs 2\n"
      "  selkie verify tests/models/c2 --target ref --rtol 1e-5");
  command->callback([=, &action] { action = [=] { return verify(*options); }; });
}

}  // namespace selkie::cli
