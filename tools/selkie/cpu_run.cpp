#include "cpu_run.h"

#include "interp/bind.h"

namespace selkie::cli {

CpuRun::CpuRun(std::shared_ptr<ir::Module> module, bool checked)
    : module_(std::move(module)),
      built_(driver::build(module_, {.check_kernels = checked, .threads = 2})),
      context_(built_.executable) {}

std::vector<HostValue> CpuRun::run(std::vector<HostValue> inputs) {
  interp::bind_inputs(module_->main(), inputs);
  return context_.run(inputs);
}

}  // namespace selkie::cli
