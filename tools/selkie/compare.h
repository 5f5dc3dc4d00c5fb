// Comparison of outputs with expected ones, within tolerances.
#pragma once

#include <string>

#include "base/host_value.h"

namespace selkie::cli {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-7;
};

// What differs, or an empty text. Numbers agree if |a − b| ≤ atol + rtol·|expected|; NaN agrees with NaN.
std::string difference(const HostValue& actual, const HostValue& expected, Tolerance tolerance);

}  // namespace selkie::cli
