// Holds what RDP claims against a run: every dim, element, bound and fact. The run reports what it sees.
#pragma once

#include <span>

#include "analysis/rdp.h"
#include "base/host_value.h"

namespace selkie::analysis {

class ClaimChecker {
 public:
  explicit ClaimChecker(const Rdp& rdp) : rdp_(rdp) {}

  // To be called as the evaluator goes along (interp::Options has a place for each).
  void enter(const ir::Region& region, std::span<const HostValue> arguments);
  void results(const ir::Node& node, std::span<const HostValue> values);
  void leave(const ir::Region& region);

  size_t checked() const { return checked_; }                                 // facts that were held against numbers
  const std::vector<std::string>& violations() const { return violations_; }  // the first ones
  // Where a compiled program would have stopped: a check of the analysis's own that does not hold, found because a
  // claim that rests on it does not. Empty: nowhere. What comes after it is no violation.
  const std::string& refusal() const { return refusal_; }

 private:
  struct Scope {
    const ir::Region* region;
    std::unordered_map<std::string, int64_t> bindings;
  };

  std::optional<int64_t> lookup(std::string_view name) const;
  std::optional<int64_t> value_of(sym::Expr e) const;
  void bind(sym::Expr symbol, int64_t value);
  void value(const ir::Value& value, const HostValue& actual);
  void dims(const ir::Value& value, const ir::Type& claimed, const Tensor& actual);
  void contents(const ir::Value& value, const ir::Contents& claimed, const Tensor& actual);
  void dim(const std::string& where, sym::Expr claimed, int64_t actual);
  void bind_symbols(const ir::Value& value, const HostValue& given);
  void bind_index(const ir::Contents& claimed, const Tensor& actual);
  bool active() const;
  void violation(std::string text);
  std::string failing_check() const;

  const Rdp& rdp_;
  std::vector<Scope> scopes_;
  size_t checked_ = 0;
  std::vector<std::string> violations_;
  std::string refusal_;
};

}  // namespace selkie::analysis
