// Runs of a model by compiled code.
#pragma once

#include "driver/build.h"

namespace selkie::cli {

class CpuRun {
 public:
  // Checked: kernels are interpreted, with every access checked. Threads: 0 is as many as there are cores.
  CpuRun(std::shared_ptr<ir::Module> module, bool checked, int threads = 0);

  std::vector<HostValue> run(std::vector<HostValue> inputs);
  const driver::Built& built() const { return built_; }
  const runtime::Statistics& statistics() const { return context_.statistics(); }

 private:
  std::shared_ptr<ir::Module> module_;
  driver::Built built_;
  runtime::Context context_;
};

}  // namespace selkie::cli
