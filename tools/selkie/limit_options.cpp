#include "limit_options.h"

#include <limits>

namespace selkie::cli {

void add_limit_options(CLI::App& command, ir::RunLimits& limits) {
  command.add_option("--trip-limit", limits.loop_trips, "Trips that one loop may run");
  command.add_option("--call-limit", limits.call_depth, "Calls that may be nested in each other");
  command.add_option("--item-limit", limits.sequence_items, "Items that one sequence may have");
  command.add_option("--time-limit", limits.seconds, "Seconds that one run may take, looked at between trips of loops")
      ->check(CLI::PositiveNumber);
}

void add_memory_option(CLI::App& command, int64_t& bytes) {
  command
      .add_option("--memory-limit", bytes,
                  "Bytes that the tensors of a run may hold together, as in 500M or 2G (default: four fifths of the "
                  "machine's memory, and for intermediate results on cpu no limit)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()));
}

}  // namespace selkie::cli
