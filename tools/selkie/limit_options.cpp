#include "limit_options.h"

namespace selkie::cli {

void add_limit_options(CLI::App& command, ir::RunLimits& limits) {
  command.add_option("--trip-limit", limits.loop_trips, "Trips that one loop may run");
  command.add_option("--call-limit", limits.call_depth, "Calls that may be nested in each other");
  command.add_option("--item-limit", limits.sequence_items, "Items that one sequence may have");
  command.add_option("--time-limit", limits.seconds, "Seconds that one run may take, looked at between trips of loops")
      ->check(CLI::PositiveNumber);
}

}  // namespace selkie::cli
