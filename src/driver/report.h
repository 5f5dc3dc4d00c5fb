// What a model becomes on the CPU: what `selkie explain` says of the compiled program.
#pragma once

#include "driver/build.h"
#include "driver/versions.h"

namespace selkie::driver {

// Bytes of intermediate results: of what nodes of @main make that is no output.
struct ByteSum {
  size_t values = 0;
  size_t open = 0;               // of these, whose size does not follow from the dims of the inputs
  std::string expression;        // of all others; empty if it is too long
  std::optional<int64_t> bytes;  // of the same at the report's sizes, if these say all
};

struct HostReport {
  std::string node;
  std::string op;
  std::string why;
};

struct CpuReport {
  size_t model_nodes = 0;  // of @main before the passes,
  size_t nodes = 0;        // and after them
  size_t kernels = 0;      // calls of generated ones, without copies and epilogues
  size_t copies = 0;       // that bring a value into another layout
  size_t epilogues = 0;    // of products and convolutions
  size_t chained = 0;      // convolutions that may be made together with the one before
  size_t views = 0;
  size_t products = 0, convolutions = 0, integer_products = 0, attentions = 0, recurrents = 0;
  size_t function_calls = 0, functions = 0;  // of those that are programs of their own
  size_t distinct_kernels = 0;
  std::vector<HostReport> host_calls;
  Sizes sizes;  // of the figures: the given ones, and samples for the rest where the checks allow some
  ByteSum model, after_passes, stored;
  std::vector<CallVersions> calls;
  program::Image image;
};

// The module is rewritten. Sizes are those of symbols of the inputs' dims.
CpuReport explain(ir::Module& module, const Options& options, const Sizes& given = {});

// What does not depend on the machine, and the rest.
std::string summary_text(const CpuReport& report);
std::string machine_text(const CpuReport& report);
std::string json(const CpuReport& report);

}  // namespace selkie::driver
