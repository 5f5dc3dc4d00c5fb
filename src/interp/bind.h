// Holds inputs against the parameters of a function: number, kind, dtype, rank, and dims that must agree.
#pragma once

#include <span>

#include "base/host_value.h"
#include "ir/module.h"

namespace selkie::interp {

// What the symbols in the types of the inputs are, in order of appearance.
struct Binding {
  sym::Expr symbol;
  int64_t value;
  std::string source;  // "dim 1 of 'ids'"
};

// Throws Error that names the input, what it is and what it must be.
std::vector<Binding> bind_inputs(const ir::Function& function, std::span<const HostValue> inputs);

}  // namespace selkie::interp
