// Runs of a model by compiled code.
#pragma once

#include "driver/build.h"

namespace selkie::cli {

// A model ready to run, and how long it took: a compiled one is loaded, any other is imported and compiled.
struct CpuModel {
  driver::Built built;
  bool was_compiled = false;  // before
  double load_ms = 0;
  double compile_ms = 0;
};
// `dims` are facts about sizes that are compiled in, as --dims has them.
CpuModel load_cpu_model(const std::string& path, const driver::Options& options,
                        const std::vector<std::string>& dims = {});
CpuModel build_cpu_model(std::shared_ptr<ir::Module> module, const driver::Options& options);

// That this process may run on.
int core_count();

class CpuRun {
 public:
  // Threads: 0 is as many as there are cores.
  explicit CpuRun(driver::Built built, int threads = 0);

  std::vector<HostValue> run(std::vector<HostValue> inputs);
  const driver::Built& built() const { return built_; }
  const runtime::Statistics& statistics() const { return context_.statistics(); }
  void record_to(runtime::Profile* profile) { context_.record_to(profile); }

 private:
  driver::Built built_;
  runtime::Context context_;
};

}  // namespace selkie::cli
