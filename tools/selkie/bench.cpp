// selkie bench: times of a compiled model, at one shape or over a sweep of sizes.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "base/text.h"
#include "bench_worker.h"
#include "commands.h"
#include "compile_options.h"
#include "cpu_run.h"
#include "dims_option.h"
#include "inputs.h"
#include "kernels/roofs.h"
#include "limit_options.h"
#include "progress.h"

namespace selkie::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model;
  std::vector<std::string> inputs;
  std::vector<std::string> dims;
  std::string sweep;
  int repeat = 0;
  int threads = 0;
  double seconds = 1;
  uint64_t seed = 0;
  ir::RunLimits limits;
  int64_t memory_limit = 0;
  CompileOptions compile;
  std::string profile;
  bool json = false;
  bool worker = false;
};

struct Row {
  std::string dims;
  double p50 = 0, p90 = 0, p99 = 0;
  size_t runs = 0;
  int64_t launches = 0, host_calls = 0, arena_bytes = 0;
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Bytes of this process in memory; 0 where the system does not say.
int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

struct Sweep {
  std::string name;
  std::vector<int64_t> sizes;
};

// "S=8..384:7": seven sizes from 8 to 384; "S=8,16,100": these.
Sweep parse_sweep(const std::string& text) {
  auto bad = [&] { fail("--sweep '{}' must be NAME=FIRST..LAST:COUNT or NAME=SIZE,SIZE,…", text); };
  auto number = [&](const std::string& digits) -> int64_t {
    if (digits.empty() || digits.size() > 12 || digits.find_first_not_of("0123456789") != std::string::npos) bad();
    return std::stoll(digits);
  };
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) bad();
  Sweep sweep{.name = text.substr(0, equals), .sizes = {}};
  std::string rest = text.substr(equals + 1);
  size_t dots = rest.find("..");
  if (dots == std::string::npos) {
    for (size_t begin = 0; begin <= rest.size();) {
      size_t comma = std::min(rest.find(',', begin), rest.size());
      sweep.sizes.push_back(number(rest.substr(begin, comma - begin)));
      begin = comma + 1;
    }
    return sweep;
  }
  size_t colon = rest.find(':', dots);
  int64_t first = number(rest.substr(0, dots));
  int64_t last = number(rest.substr(dots + 2, colon == std::string::npos ? colon : colon - dots - 2));
  int64_t count = colon == std::string::npos ? 8 : number(rest.substr(colon + 1));
  if (last < first || count < 1 || count > 10'000) bad();
  for (int64_t i = 0; i < count; ++i)
    sweep.sizes.push_back(count == 1 ? first : first + (last - first) * i / (count - 1));
  return sweep;
}

// "ids=random:1xS" with S given a size.
std::string with_size(const std::string& input, const std::string& name, int64_t size) {
  size_t colon = input.rfind(':');
  if (name.empty() || colon == std::string::npos) return input;
  std::string out = input.substr(0, colon + 1);
  std::string shape = input.substr(colon + 1);
  for (size_t begin = 0; begin <= shape.size();) {
    size_t end = std::min(shape.find('x', begin), shape.size());
    std::string token = shape.substr(begin, end - begin);
    out += (begin > 0 ? "x" : "") + (token == name ? std::to_string(size) : token);
    begin = end + 1;
  }
  return out;
}

// Calls progress(share) between runs.
template <class Progress>
Row measure(CpuRun& model, const std::vector<HostValue>& inputs, const Options& options, const std::string& dims,
            Progress progress) {
  model.run(inputs);  // the first one plans the arena
  std::vector<double> times;
  Clock::time_point start = Clock::now();
  auto enough = [&] {
    if (options.repeat > 0) return times.size() >= static_cast<size_t>(options.repeat);
    return times.size() >= 5 && milliseconds_since(start) > options.seconds * 1000;
  };
  auto done = [&] {
    if (options.repeat > 0) return static_cast<double>(times.size()) / options.repeat;
    return std::min(static_cast<double>(times.size()) / 5, milliseconds_since(start) / (options.seconds * 1000));
  };
  while (!enough()) {
    progress(done());
    Clock::time_point begin = Clock::now();
    model.run(inputs);
    times.push_back(milliseconds_since(begin));
  }
  std::sort(times.begin(), times.end());
  auto at = [&](double share) {
    return times[std::min(times.size() - 1, static_cast<size_t>(share * static_cast<double>(times.size())))];
  };
  const runtime::Statistics& s = model.statistics();
  return {.dims = dims,
          .p50 = at(0.5),
          .p90 = at(0.9),
          .p99 = at(0.99),
          .runs = times.size(),
          .launches = s.launches,
          .host_calls = s.host_calls,
          .arena_bytes = s.arena_bytes};
}

// A few runs more, recorded: the trace goes into a file, the table to standard error.
void record(CpuRun& model, const std::vector<std::vector<HostValue>>& inputs, const std::string& path) {
  constexpr int runs = 5;
  runtime::Profile profile;
  model.record_to(&profile);
  for (const std::vector<HostValue>& given : inputs)
    for (int i = 0; i < runs; ++i) model.run(given);
  model.record_to(nullptr);
  std::ofstream file(path);
  file << runtime::chrome_trace(profile);
  if (!file.flush()) fail("'{}' cannot be written", path);
  double roof = kernels::fma_roof(kernels::best_isa());
  fmt::print(stderr, "{}roof: {:.1f} GFLOP/s of one core; trace: {}\n", runtime::profile_table(profile, roof * 1e9),
             roof, path);
}

int bench(const Options& options) {
  driver::Options how = driver_options(options.compile);
  how.host.limits = options.limits;
  how.host.memory_limit = options.memory_limit;
  CpuModel loaded = load_cpu_model(options.model, how, options.dims);
  CpuRun model(std::move(loaded.built), options.threads);
  Sweep sweep = options.sweep.empty() ? Sweep{.name = {}, .sizes = {0}} : parse_sweep(options.sweep);
  std::vector<std::vector<HostValue>> inputs;
  for (int64_t size : sweep.sizes) {
    std::vector<std::string> given;
    for (const std::string& input : options.inputs) given.push_back(with_size(input, sweep.name, size));
    inputs.push_back(make_inputs(given, model.built().declared->main(), options.seed));
  }
  std::vector<Row> rows;
  {
    ProgressBar bar(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::string dims = sweep.name.empty() ? "" : fmt::format("{}={}", sweep.name, sweep.sizes[i]);
      rows.push_back(measure(model, inputs[i], options, dims, [&](double share) { bar.show(i, share, dims); }));
    }
  }
  if (!options.profile.empty()) record(model, inputs, options.profile);
  int64_t arena = 0;
  for (const Row& row : rows) arena = std::max(arena, row.arena_bytes);
  if (options.json) {
    std::string list;
    for (const Row& r : rows)
      list += fmt::format(
          "{}{{\"dims\": {}, \"p50_ms\": {:.4f}, \"p90_ms\": {:.4f}, \"p99_ms\": {:.4f}, \"runs\": {}, \"launches\": "
          "{}, "
          "\"host_calls\": {}}}",
          list.empty() ? "" : ", ", json_quote(r.dims), r.p50, r.p90, r.p99, r.runs, r.launches, r.host_calls);
    fmt::print(
        "{{\"rows\": [{}], \"compile_ms\": {:.1f}, \"load_ms\": {:.1f}, \"code_is_cached\": {}, \"arena_peak_bytes\": "
        "{}, \"rss_bytes\": "
        "{}}}\n",
        list, loaded.compile_ms, loaded.load_ms, model.built().code_is_cached, arena, resident_bytes());
    return 0;
  }
  fmt::print("{:>10} {:>10} {:>10} {:>10} {:>6} {:>8} {:>6}\n", "dims", "p50 ms", "p90 ms", "p99 ms", "runs",
             "launches", "host");
  for (const Row& r : rows)
    fmt::print("{:>10} {:>10.3f} {:>10.3f} {:>10.3f} {:>6} {:>8} {:>6}\n", r.dims, r.p50, r.p90, r.p99, r.runs,
               r.launches, r.host_calls);
  fmt::print("load {:.1f} ms, compile {:.1f} ms{}, arena at most {} bytes, process {} MiB\n", loaded.load_ms,
             loaded.compile_ms, model.built().code_is_cached ? " (with code from the cache)" : "", arena,
             resident_bytes() >> 20);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "Time a compiled model");
  command->add_option("MODEL", options->model, "An ONNX model, text IR (.sk), or a compiled model")->required();
  command->add_option("-i,--input", options->inputs,
                      "As for run; a size may be the name that --sweep sets: ids=random:1xS");
  add_dims_option(*command, options->dims);
  command->add_option("--sweep", options->sweep, "Sizes to measure at: 'S=8..384:7' or 'S=8,16,100'");
  command->add_option("--repeat", options->repeat, "Runs per shape (default: as many as a second has, at least 5)")
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", options->threads, "Threads that share a kernel (default: all cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--seconds", options->seconds, "Seconds per shape, without --repeat")->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of generated inputs")->capture_default_str();
  add_compile_options(*command, options->compile);
  add_order_option(*command, options->compile);
  add_limit_options(*command, options->limits);
  add_memory_option(*command, options->memory_limit);
  command->add_option("--profile", options->profile,
                      "Write what each kernel took to this file (Chrome trace events), and a table to standard error");
  command->add_flag("--json", options->json, "Machine-readable output");
  command->add_flag("--worker", options->worker, "Take commands from standard input instead (see below)");
  command->footer(std::string("Examples:\n"
                              "  selkie bench model.onnx --input x=random:1x3x224x224 --threads 1\n"
                              "  selkie bench model.onnx --input ids=random:1xS --sweep S=8..384:7\n"
                              "  selkie bench model.onnx --input ids=random:1x128 --profile trace.json\n\n") +
                  worker_help);
  command->callback([=, &action] {
    action = [=] {
      return options->worker ? bench_worker(options->model, options->dims, options->seed, options->threads,
                                            driver_options(options->compile))
                             : bench(*options);
    };
  });
}

}  // namespace selkie::cli
