// What a run of a model on inputs of given sizes needs of memory: what `selkie plan` says.
#pragma once

#include "driver/build.h"
#include "driver/versions.h"

namespace selkie::driver {

struct MemoryRow {
  std::string name;
  std::string shape;    // in symbols
  std::string numbers;  // at these sizes
  int64_t bytes = 0;    // of both places, if it alternates
  int64_t offset = 0;
  runtime::Lifetime life;
  bool alternates = false;
};

// A piece of the program by itself: what is in use in it.
struct MemoryRegion {
  std::string kind;  // "program", "arm" or "loop"
  uint32_t begin = 0, end = 0;
  size_t depth = 0;
  std::string node;  // the first in it
  size_t tensors = 0;
  int64_t bound = 0;   // the most that is in use at one instruction of it
  int64_t needed = 0;  // by a plan of these tensors alone
};

// Bytes of tensors that each have memory of their own. Of the arms of a branch the largest counts, a trip counts once.
struct OwnBytes {
  int64_t bytes = 0;
  size_t open = 0;  // whose size only the run tells: these are not counted
};

struct MemoryReport {
  Sizes sizes;
  std::vector<MemoryRow> rows;
  int64_t arena = 0;
  runtime::ArenaBound bound;
  std::string bound_node;
  bool is_best_at_all_sizes = false;
  std::string order;  // in which the steps run, in words
  // How much more it would be: every result of a node of the model, after the passes, and every tensor that the program
  // stores with memory of its own; those of the arena, each at the lowest place that is free when it is made.
  OwnBytes model, after_passes, stored;
  int64_t in_order = 0;
  size_t heap_blocks = 0;  // that are no outputs
  int64_t heap_bytes = 0;  // of those whose size is known before the run,
  size_t open_blocks = 0;  // and how many others there are
  int64_t outputs = 0;     // of those whose size is known
  int64_t weights = 0;
  int64_t late_weights = 0;  // of which only arms of branches read
  std::vector<MemoryRegion> regions;
  std::vector<std::string> instructions;  // what each computes
};

// A value for each input, absent where `given` sizes say all: these are those of symbols of the inputs' dims. A size
// that neither gives is a sample that the checks allow. The module is rewritten.
MemoryReport memory_report(ir::Module& module, const compiler::Options& options, const Sizes& given,
                           std::vector<HostValue> inputs);

std::string text(const MemoryReport& report, bool with_tensors);
std::string json(const MemoryReport& report);
// The arena over time: instructions from left to right, addresses from bottom to top.
std::string svg(const MemoryReport& report, const std::string& title);

}  // namespace selkie::driver
