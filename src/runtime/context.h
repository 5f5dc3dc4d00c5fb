// Runs programs. A program is immutable and shared; a context holds what one run needs, for one run at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "program/image.h"
#include "program/program.h"
#include "runtime/arena.h"
#include "runtime/late_weights.h"
#include "runtime/profile.h"

namespace selkie::runtime {

using program::KernelFunction;

// What the embedder gives for operators without kernels, one function per host call of the program.
struct HostArguments {
  std::span<const HostValue> operands;
  std::span<const std::pair<std::string_view, int64_t>> symbols;
  uint64_t times = 0;  // that it was called before in this run
};
using HostFunction = std::function<std::vector<HostValue>(const HostArguments&)>;

// Runs kernel `kernel` with every access checked, in the place of its code.
struct CheckedBuffer {
  void* data;
  int64_t elements;
};
using KernelInterpreter = std::function<void(uint32_t kernel, std::span<const CheckedBuffer> buffers,
                                             std::span<const int64_t> sizes, std::span<const int64_t> ranges)>;

// What a run may use at most; reaching one is a user error, after which the context is as usable as before.
struct Limits {
  int64_t loop_trips = int64_t{1} << 40;  // of one loop
  int64_t call_depth = 1000;              // of calls in each other, with the run itself
  int64_t sequence_items = int64_t{1} << 30;
  int64_t memory_bytes = 0;  // of the arena and of tensors on the heap together; 0: no limit
  double seconds = 0;        // 0: no limit; looked at between the trips of loops and at host calls
};

// A program with its code: what is needed to run it.
struct Executable {
  program::Program program;
  std::vector<program::Program> functions = {};  // with its constants and kernels
  std::vector<KernelFunction> kernels;
  KernelInterpreter interpreter;  // if set, used instead of the kernels
  std::vector<HostFunction> host_functions;
  std::shared_ptr<const void> code;                // keeps the kernels in memory
  std::shared_ptr<LateWeights> late_weights = {};  // null: all are there
  Limits limits = {};
};

// A plan of the arena is kept for each of the last sets of sizes.
inline constexpr int64_t most_kept_plans = 64;

struct Statistics {
  int64_t arena_bytes = 0;  // of the frame that has most
  int64_t launches = 0;
  int64_t host_calls = 0;
  int64_t plans = 0;  // of the arena that were made
  int64_t kept_plans = 0;
};

// Where the tensors of the arena lie in a run on given inputs.
struct MemoryPlan {
  struct Tensor {
    program::Register tensor;
    int64_t bytes;  // of both places, if it alternates
    int64_t offset;
    Lifetime life;
  };
  std::vector<Tensor> tensors;
  int64_t arena_bytes = 0;
  ArenaBound bound;
  bool is_best_at_all_sizes = false;
  std::vector<int64_t> slots;  // of which those are set that follow from the inputs
};

class Context {
 public:
  // Kernels are shared among so many threads, of which the caller is one.
  explicit Context(std::shared_ptr<const Executable> executable, int threads = 1);
  ~Context();
  Context(Context&&) noexcept;

  // Inputs in the order of the program. Errors name the input or the node; the context stays usable.
  std::vector<HostValue> run(std::span<const HostValue> inputs);
  // What a run on these inputs would use of the arena. Nothing is run but what computes sizes.
  MemoryPlan memory_plan(std::span<const HostValue> inputs);
  const Statistics& statistics() const;
  // From here on runs are recorded there; null: no more.
  void record_to(Profile* profile);

 private:
  class Machine;
  struct Shared;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Machine> machine_;
};

}  // namespace selkie::runtime
