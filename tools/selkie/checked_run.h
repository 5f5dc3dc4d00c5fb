// A run of a model that is held against what the analysis claims about it.
#pragma once

#include <vector>

#include "analysis/rdp.h"
#include "interp/interp.h"

namespace selkie::cli {

// Two analyses are held against each run: one of the model as declared, and one with a symbol for every dim of its
// inputs.
class CheckedRun {
 public:
  explicit CheckedRun(ir::Module& module);

  // The outputs; fails where inputs break an entry check or a claim does not hold.
  std::vector<HostValue> run(std::vector<HostValue> inputs, interp::Options how);

  size_t facts() const { return facts_; }  // how many claims were held against numbers so far

 private:
  ir::Module& module_;
  std::vector<analysis::Rdp> analyses_;
  size_t facts_ = 0;
};

}  // namespace selkie::cli
