// Runs a model many times at random shapes and paths in one process, and holds its memory, open files and threads after
// the first runs against those at the end: soak MODEL RUNS SYMBOL=LOW..HIGH[:STEP]… INPUT=SHAPE[:LOW..HIGH]…, as in
// ids=BxS:0..99. The exit code is 1 if memory grew by a percent or more, files or threads at all, or more plans are
// kept than the runtime says it keeps.
#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "base/convert.h"
#include "driver/build.h"
#include "onnx/import.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

constexpr int64_t first_runs = 1000;
constexpr double most_growth = 0.01;

struct Range {
  int64_t low = 0, high = 1, step = 1;
  int64_t draw(std::mt19937_64& random) const {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>((high - low) / step + 1)) * step;
  }
};

int64_t number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) fail("'{}' is no number", text);
  return value;
}

// "LOW..HIGH" or "LOW..HIGH:STEP".
Range parse_range(std::string_view text) {
  size_t dots = text.find("..");
  if (dots == std::string_view::npos) fail("'{}' must be LOW..HIGH", text);
  std::string_view rest = text.substr(dots + 2);
  size_t colon = std::min(rest.find(':'), rest.size());
  Range range{.low = number(text.substr(0, dots)), .high = number(rest.substr(0, colon))};
  if (colon < rest.size()) range.step = number(rest.substr(colon + 1));
  if (range.high < range.low || range.step < 1) fail("there is nothing in {}", text);
  return range;
}

// From -1 to 1.
double signed_unit(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; }

using Symbols = std::map<std::string, int64_t, std::less<>>;

// What an input is drawn from.
struct Source {
  DType dtype;
  std::vector<std::string> shape;  // sizes and symbols
  Range values;                    // of integers

  HostValue draw(const Symbols& symbols, std::mt19937_64& random) const {
    Dims dims;
    for (const std::string& token : shape) {
      auto at = symbols.find(token);
      dims.push_back(at != symbols.end() ? at->second : number(token));
    }
    std::vector<double> elements(static_cast<size_t>(element_count(dims)));
    // Calibrated nets decide by the contrast of their input.
    double contrast = std::exp2(2 * signed_unit(random));
    for (double& element : elements)
      element = is_float(dtype) ? contrast * signed_unit(random) : static_cast<double>(values.draw(random));
    return narrow<double>(elements, dtype, dims);
  }
};

Source parse_source(DType dtype, std::string_view text) {
  size_t colon = std::min(text.find(':'), text.size());
  Source source{.dtype = dtype};
  if (colon < text.size()) source.values = parse_range(text.substr(colon + 1));
  std::string_view shape = text.substr(0, colon);
  while (!shape.empty()) {
    size_t end = std::min(shape.find('x'), shape.size());
    source.shape.emplace_back(shape.substr(0, end));
    shape.remove_prefix(std::min(end + 1, shape.size()));
  }
  return source;
}

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  if (resident == 0) fail("the system does not say how much memory is in use");
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// What a process holds of the system's.
struct Held {
  int64_t bytes = resident_bytes(), files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
};

int soak(const std::string& model, int64_t runs, std::span<char*> given) {
  driver::Built built = driver::build(onnx::import_file(model, ops::op_set()));
  std::map<std::string, Range, std::less<>> ranges;
  std::map<std::string, std::string, std::less<>> texts;
  for (std::string_view argument : given) {
    size_t equals = std::min(argument.find('='), argument.size() - 1);
    texts.emplace(argument.substr(0, equals), argument.substr(equals + 1));
  }
  std::vector<Source> sources;
  for (const program::Input& input : built.executable->program.inputs) {
    auto text = texts.extract(input.name);
    if (text.empty()) fail("input '{}' is not given", input.name);
    sources.push_back(parse_source(input.dtype, text.mapped()));
  }
  for (const auto& [name, text] : texts) ranges.emplace(name, parse_range(text));

  runtime::Context context(built.executable);
  std::mt19937_64 random(0);
  std::optional<Held> early;
  std::set<int64_t> launches;
  auto start = std::chrono::steady_clock::now();
  for (int64_t run = 0; run < runs; ++run) {
    if (run == first_runs) early.emplace();
    Symbols symbols;
    for (const auto& [name, range] : ranges) symbols.emplace(name, range.draw(random));
    std::vector<HostValue> inputs;
    for (const Source& source : sources) inputs.push_back(source.draw(symbols, random));
    context.run(inputs);
    launches.insert(context.statistics().launches);
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Held last;
  double growth = static_cast<double>(last.bytes - early->bytes) / static_cast<double>(early->bytes);
  const runtime::Statistics& statistics = context.statistics();
  bool passed = growth < most_growth && last.files <= early->files && last.threads <= early->threads &&
                statistics.kept_plans <= runtime::most_kept_plans;
  fmt::print(
      "{}: {} runs in {:.0f} s, {} host calls in the last, {} different numbers of launches; memory after {} runs "
      "{:.1f} "
      "MiB, at the end {:+.2f} %, bar {:g} %; files {} → {}, threads {} → {}; {} plans made, {} kept of at most {}: "
      "{}\n",
      model.substr(model.rfind('/') + 1), runs, seconds, statistics.host_calls, launches.size(), first_runs,
      static_cast<double>(early->bytes) / (1 << 20), 100 * growth, 100 * most_growth, early->files, last.files,
      early->threads, last.threads, statistics.plans, statistics.kept_plans, runtime::most_kept_plans,
      passed ? "pass" : "FAIL");
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace selkie::tests

int main(int count, char** arguments) {
  using namespace selkie;
  try {
    if (count < 4) fail("soak MODEL RUNS SYMBOL=LOW..HIGH[:STEP]… INPUT=SHAPE[:LOW..HIGH]…");
    int64_t runs = tests::number(arguments[2]);
    if (runs <= tests::first_runs) fail("there must be more than {} runs", tests::first_runs);
    return tests::soak(arguments[1], runs, {arguments + 3, static_cast<size_t>(count - 3)});
  } catch (const Error& error) {
    fmt::print(stderr, "soak: {}\n", error.what());
    return 1;
  }
}
