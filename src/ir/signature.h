// Questions about an operator's record that verifier, evaluator and documentation ask alike.
#pragma once

#include <optional>
#include <string>

#include "ir/op_def.h"

namespace selkie::ir {

// The record of the i-th operand (or result); a variadic record stands for all that follow. Null if there is none.
const Operand* operand_record(const std::vector<Operand>& records, size_t i);

// What is wrong with giving `count` operands (or results), if anything.
std::optional<std::string> arity_problem(const std::vector<Operand>& records, size_t count, std::string_view what);

std::string_view name(Container container);
std::string to_string(DTypeSet set);  // "f16, f32, f64"

}  // namespace selkie::ir
