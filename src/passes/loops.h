// What passes over loops ask: how often a loop runs, and whether a node can run before it as well. Shared by them.
#pragma once

#include "analysis/rdp.h"
#include "ir/control.h"

namespace selkie::passes {

// What a node does with its region if that is a loop.
std::optional<ir::ControlForm> loop_form(const ir::Node& node);

// How often a loop runs, where that is known before its first trip; null where a condition may end it earlier.
sym::Expr known_trips(const analysis::Rdp& rdp, const ir::Node& loop, const ir::ControlForm& form);

// Whether the facts around a loop say that it has a first trip.
bool surely_runs(const sym::Facts& outside, sym::Expr trips);

// Whether a node of floats cannot fail with operands of these dims, as far as facts tell: element-wise ones that
// broadcast, products whose inner dims agree. All others may.
bool cannot_fail(const analysis::Rdp& rdp, const ir::Node& node, const sym::Facts& facts);

// One result from one element of each operand, which broadcast against each other.
bool is_elementwise(const ir::Node& node);

}  // namespace selkie::passes
