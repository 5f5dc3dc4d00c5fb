// Compiled models as files: what `selkie compile` writes, and what runs from there without being compiled again.
#pragma once

#include "driver/build.h"

namespace selkie::driver {

// Returns the size of the file. A model whose kernels are interpreted cannot be written.
uint64_t save(const Built& built, const std::string& path);

// The file stays mapped as long as what was loaded is used. A machine that does not run its code, or whose library
// kernels pack weights in another way, is a user error.
Built load(const std::string& path, const interp::Options& host = {});

}  // namespace selkie::driver
