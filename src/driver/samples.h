// Sizes of inputs for reports: those that are given, and samples for the rest.
#pragma once

#include "driver/versions.h"

namespace selkie::driver {

// Of the dims of the inputs.
std::vector<sym::Expr> input_symbols(const analysis::Rdp& rdp);

// One sample for all symbols that are not given, if there is one that the checks allow.
Sizes with_samples(const analysis::Rdp& rdp, const std::vector<sym::Expr>& symbols, const Sizes& given);

}  // namespace selkie::driver
