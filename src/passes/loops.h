// What passes over loops ask: how often a loop runs, and whether a node can run before it as well. Shared by them.
#pragma once

#include <functional>

#include "analysis/rdp.h"
#include "ir/control.h"

namespace selkie::passes {

// What a node does with its region if that is a loop.
std::optional<ir::ControlForm> loop_form(const ir::Node& node);

// Whether there is one in a region: what passes over loops ask before they have the module analysed.
bool has_loops(const ir::Region& region);

// Puts before each loop of a region, and of those inside it, what `take_out` takes out of it, and returns whether that
// was anything. A loop around one that changed is left for the next analysis.
using Nodes = std::vector<std::unique_ptr<ir::Node>>;
using TakeOut = std::function<Nodes(ir::Node& loop, const ir::Region& around, ir::ControlForm form)>;
bool put_before_loops(const analysis::Rdp& rdp, ir::Region& region, const TakeOut& take_out);

// Whether no condition may end a loop before it has made all of its trips.
bool makes_all_trips(const analysis::Rdp& rdp, const ir::Node& loop, const ir::ControlForm& form);
// How often a loop runs at most, where that is known before its first trip; null where it is not.
sym::Expr most_trips(const analysis::Rdp& rdp, const ir::Node& loop, const ir::ControlForm& form);
// How many slices an input of a loop has.
sym::Expr slice_count(const analysis::Rdp& rdp, const ir::Node& loop, const ir::ControlForm& form, size_t input);
// How often a loop runs, where no condition may end it earlier; else null.
sym::Expr known_trips(const analysis::Rdp& rdp, const ir::Node& loop, const ir::ControlForm& form);
// Whether the facts around a loop say that it has a first trip.
bool surely_runs(const analysis::Rdp& rdp, const ir::Node& loop, const ir::ControlForm& form, const sym::Facts& around);

// One result from one element of each operand, which broadcast against each other.
bool is_elementwise(const ir::Node& node);

// The dims of values around a loop, told without what the body of the loop requires: that need not hold where there are
// no trips.
class DimsOutside {
 public:
  DimsOutside(const analysis::Rdp& rdp, const sym::Facts& around) : rdp_(rdp), facts_(around) {}

  void set(const ir::Value& value, ir::SymDims dims) { dims_[&value] = std::move(dims); }
  // Of a value that was set, or is known around the loop.
  const std::optional<ir::SymDims>& of(const ir::Value& value) const;
  // Of the result of a node of floats that cannot fail, as far as facts tell: an element-wise one that broadcasts, or a
  // product whose inner dims agree. Nothing for all others.
  std::optional<ir::SymDims> of_result(const ir::Node& node) const;

 private:
  std::optional<ir::SymDims> broadcast(const ir::SymDims& a, const ir::SymDims& b, size_t skipped) const;
  std::optional<ir::SymDims> gemm(const ir::Node& node, std::vector<ir::SymDims>& dims) const;
  std::optional<ir::SymDims> product(const ir::SymDims& a, const ir::SymDims& b) const;

  const analysis::Rdp& rdp_;
  const sym::Facts& facts_;
  std::unordered_map<const ir::Value*, std::optional<ir::SymDims>> dims_;
};

}  // namespace selkie::passes
