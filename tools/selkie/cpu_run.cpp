#include "cpu_run.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <chrono>
#include <thread>

#include "commands.h"
#include "dims_option.h"
#include "driver/artifact.h"
#include "interp/bind.h"
#include "kernels/winograd.h"
#include "program/file.h"

namespace selkie::cli {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool has_inexact_calls(const program::Program& program) {
  return std::ranges::any_of(program.convolutions, [](const program::Convolution& call) {
    return !call.exact && kernels::winograd_applies(kernels::table(kernels::best_isa()), runtime::unsized_shape(call));
  });
}

}  // namespace

int core_count() {
#ifdef __linux__
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(CPU_COUNT(&cores), 1);
#endif
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

CpuModel build_cpu_model(std::shared_ptr<ir::Module> module, const driver::Options& options) {
  Clock::time_point start = Clock::now();
  CpuModel model{.built = driver::build(std::move(module), options)};
  model.compile_ms = milliseconds_since(start);
  return model;
}

CpuModel load_cpu_model(const std::string& path, const driver::Options& options, const std::vector<std::string>& dims) {
  Clock::time_point start = Clock::now();
  if (program::is_artifact(path)) {
    if (options.check_kernels) fail("'{}' is compiled: its kernels cannot be interpreted", path);
    if (!dims.empty()) fail("'{}' is compiled: --dims comes too late", path);
    if (!options.compiler.without.empty()) fail("'{}' is compiled: --without comes too late", path);
    CpuModel model{.built = driver::load(path, options.host), .was_compiled = true};
    if (options.compiler.exact && has_inexact_calls(model.built.executable->program))
      fail("'{}' was compiled without --exact", path);
    model.load_ms = milliseconds_since(start);
    return model;
  }
  std::shared_ptr<ir::Module> module = load_model(path);
  require_dims(module->main(), dims);
  double load_ms = milliseconds_since(start);
  CpuModel model = build_cpu_model(std::move(module), options);
  model.load_ms = load_ms;
  return model;
}

CpuRun::CpuRun(driver::Built built, int threads)
    : built_(std::move(built)), context_(built_.executable, threads == 0 ? core_count() : threads) {}

std::vector<HostValue> CpuRun::run(std::vector<HostValue> inputs) {
  interp::bind_inputs(built_.declared->main(), inputs);
  return context_.run(inputs);
}

}  // namespace selkie::cli
