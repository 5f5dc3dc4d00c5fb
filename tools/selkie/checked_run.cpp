#include "checked_run.h"

#include "analysis/checks.h"
#include "analysis/claims.h"

namespace selkie::cli {

CheckedRun::CheckedRun(ir::Module& module) : module_(module) {
  analyses_.emplace_back(module);
  for (const auto& p : module.main().body.parameters)
    for (size_t i = 0; p->type.dims && i < p->type.dims->size(); ++i)
      (*p->type.dims)[i] = module.symbols().fresh(fmt::format("{}_{}", p->name, i));
  analyses_.emplace_back(module);
}

std::vector<HostValue> CheckedRun::run(std::vector<HostValue> inputs, interp::Options how) {
  std::vector<analysis::ClaimChecker> checkers;
  for (const analysis::Rdp& rdp : analyses_) {
    analysis::check_inputs(rdp, inputs);
    checkers.emplace_back(rdp);
  }
  how.observer = [&](const ir::Node& node, auto results) {
    for (auto& c : checkers) c.results(node, results);
  };
  how.on_enter = [&](const ir::Region& region, auto arguments) {
    for (auto& c : checkers) c.enter(region, arguments);
  };
  how.on_leave = [&](const ir::Region& region) {
    for (auto& c : checkers) c.leave(region);
  };
  std::vector<HostValue> outputs = interp::run(module_, std::move(inputs), how);
  for (const auto& c : checkers) {
    facts_ += c.checked();
    if (!c.refusal().empty()) fail("a check of the analysis refuses this run: {}", c.refusal());
    if (!c.violations().empty()) fail("a claim of the analysis does not hold: {}", c.violations()[0]);
  }
  return outputs;
}

}  // namespace selkie::cli
