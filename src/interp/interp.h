// The reference evaluator of the tensor IR: every operator by its `eval`, in order. It is the oracle for all backends.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/host_value.h"
#include "ir/eval_context.h"
#include "ir/module.h"

namespace selkie::interp {

// A region that was entered: which node's, which of its regions, and how often in a row.
struct PathStep {
  std::string node;
  std::string region;
  int64_t times = 1;
};

struct Options {
  uint64_t seed = 0;
  ir::RunLimits limits = {};
  int64_t memory_limit = 0;               // bytes that tensors may hold together; 0: four fifths of the machine's
  std::vector<PathStep>* path = nullptr;  // filled with the regions that the run entered, at most `max_path_steps`
  // Called with each node and its results, and with each region and its arguments before and after it runs, if set.
  std::function<void(const ir::Node&, std::span<const HostValue>)> observer = nullptr;
  std::function<void(const ir::Region&, std::span<const HostValue>)> on_enter = nullptr;
  std::function<void(const ir::Region&)> on_leave = nullptr;
};

inline constexpr size_t max_path_steps = 10'000;

// Checks the inputs against the parameters of @main, runs it and returns its results.
// Errors name the node, and the input where one does not fit.
std::vector<HostValue> run(const ir::Module& module, std::vector<HostValue> inputs, const Options& options = {});

// Runs one node of @main, with its regions, for a program that has no kernel for it. `outside` gives the values of its
// operands and those that its regions use, `symbols` the sizes that passes wrote on it.
std::vector<HostValue> run_node(const ir::Module& module, const ir::Node& node,
                                const std::vector<std::pair<const ir::Value*, HostValue>>& outside,
                                std::span<const std::pair<std::string_view, int64_t>> symbols,
                                const Options& options = {});

}  // namespace selkie::interp
