#include "cpu_run.h"

#include <algorithm>
#include <thread>

#include "interp/bind.h"

namespace selkie::cli {

namespace {

int core_count() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U)); }

}  // namespace

CpuRun::CpuRun(std::shared_ptr<ir::Module> module, bool checked, int threads)
    : module_(std::move(module)),
      built_(driver::build(module_, {.check_kernels = checked, .threads = core_count()})),
      context_(built_.executable, threads == 0 ? core_count() : threads) {}

std::vector<HostValue> CpuRun::run(std::vector<HostValue> inputs) {
  interp::bind_inputs(module_->main(), inputs);
  return context_.run(inputs);
}

}  // namespace selkie::cli
