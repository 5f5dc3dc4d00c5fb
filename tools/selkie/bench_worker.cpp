#include "bench_worker.h"

#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>

#include "base/text.h"
#include "commands.h"
#include "cpu_run.h"
#include "inputs.h"

namespace selkie::cli {
namespace {

using Clock = std::chrono::steady_clock;

class Worker {
 public:
  Worker(std::string path, std::vector<std::string> dims, uint64_t seed, int threads, driver::Options options)
      : path_(std::move(path)),
        dims_(std::move(dims)),
        random_(seed),
        threads_(threads),
        options_(std::move(options)) {}

  std::string answer(const std::string& line) {
    size_t space = std::min(line.find(' '), line.size());
    std::string command = line.substr(0, space);
    std::string rest = line.substr(std::min(space + 1, line.size()));
    if (command == "load") return load();
    if (!model_) fail("'{}' comes before load", command);
    if (command == "input") return input(rest);
    if (command == "run") return run(rest);
    if (command == "outputs") return write_outputs(rest);
    if (command == "statistics") return statistics();
    fail("there is no command '{}'", command);
  }

 private:
  // As the model declares them.
  const std::vector<std::unique_ptr<ir::Value>>& parameters() const {
    return model_->built().declared->main().body.parameters;
  }

  std::string load() {
    CpuModel loaded = load_cpu_model(path_, options_, dims_);
    model_ = std::make_unique<CpuRun>(std::move(loaded.built), threads_);
    inputs_.assign(parameters().size(), HostValue());
    return fmt::format(
        R"({{"load_ms": {:.3f}, "compile_ms": {:.3f}, "code_is_cached": {}, "kernels": {}, "host_calls": {}}})",
        loaded.load_ms, loaded.compile_ms, model_->built().code_is_cached, model_->built().kernels,
        model_->built().host_calls);
  }

  std::string input(const std::string& text) {
    size_t equals = text.find('=');
    if (equals == std::string::npos) fail("'{}' must be NAME=VALUE", text);
    std::string name = text.substr(0, equals);
    for (size_t i = 0; i < parameters().size(); ++i) {
      if (parameters()[i]->name != name) continue;
      inputs_[i] = make_input(text.substr(equals + 1), parameters()[i]->type, random_);
      return "{}";
    }
    fail("the model has no input '{}'", name);
  }

  std::string run(const std::string& text) {
    int64_t count = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > 1'000'000)
      fail("run takes a number of runs from 1 to a million, not '{}'", text);
    std::string times;
    for (int64_t i = 0; i < count; ++i) {
      outputs_.clear();  // so that their memory can be used again, as a caller who is done with them would have it
      Clock::time_point begin = Clock::now();
      outputs_ = model_->run(inputs_);
      auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
      times += fmt::format("{}{}", i == 0 ? "" : ", ", time.count());
    }
    return fmt::format(R"({{"ns": [{}]}})", times);
  }

  std::string write_outputs(const std::string& folder) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      std::string path = fmt::format("{}/{}.npy", folder, i);
      const Tensor& tensor = outputs_[i].tensor();
      if (!has_npy_type(tensor.dtype())) fail("output {} has a type that .npy files do not have", i);
      std::string bytes = to_npy(tensor);
      std::ofstream out(path, std::ios::binary);
      if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) fail("cannot write '{}'", path);
    }
    return fmt::format(R"({{"outputs": {}}})", outputs_.size());
  }

  std::string statistics() const {
    const runtime::Statistics& s = model_->statistics();
    return fmt::format(R"({{"arena_bytes": {}, "launches": {}, "host_calls": {}}})", s.arena_bytes, s.launches,
                       s.host_calls);
  }

  std::string path_;
  std::vector<std::string> dims_;
  std::mt19937_64 random_;
  int threads_;
  driver::Options options_;
  std::vector<HostValue> inputs_, outputs_;
  std::unique_ptr<CpuRun> model_;
};

}  // namespace

int bench_worker(const std::string& model, const std::vector<std::string>& dims, uint64_t seed, int threads,
                 const driver::Options& options) {
  Worker worker(model, dims, seed, threads, options);
  fmt::print("{{}}\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer;
    try {
      answer = worker.answer(line);
    } catch (const Error& error) {
      answer = fmt::format(R"({{"error": {}}})", json_quote(error.what()));
    }
    fmt::print("{}\n", answer);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace selkie::cli
