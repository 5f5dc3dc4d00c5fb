// From instructions of a program to what library kernels of many operands are given.
#pragma once

#include <functional>
#include <span>

#include "kernels/attention.h"
#include "kernels/recurrent.h"
#include "program/program.h"

namespace selkie::runtime {

// Where a register is; null for none.
using Floats = std::function<float*(program::Register)>;

kernels::Attention attention_call(const program::Attention& a, std::span<const int64_t> slots, bool has_boolean_mask,
                                  const Floats& floats);
// Fails if a length is beyond the steps.
kernels::Recurrent recurrent_call(const program::Recurrent& r, std::span<const int64_t> slots, const Floats& floats);

}  // namespace selkie::runtime
