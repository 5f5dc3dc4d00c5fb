#include "dims_option.h"

#include "driver/dims.h"

namespace selkie::cli {

void add_dims_option(CLI::App& command, std::vector<std::string>& dims) {
  command.add_option("--dims", dims, "A fact about dims: 'N=4', 'S in 1..512', 'H % 32 == 0'; may be repeated");
}

void require_dims(ir::Function& main, const std::vector<std::string>& dims) {
  driver::require_dims(main, dims, "--dims");
}

}  // namespace selkie::cli
