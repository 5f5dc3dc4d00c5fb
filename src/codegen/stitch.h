// From operators to one kernel: a value that is stored, computed together with the values it needs that are not.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "analysis/rdp.h"
#include "kir/kernel.h"
#include "ops/support/lower.h"

namespace selkie::codegen {

// Elements of `indices` must lie in -extent … extent - 1.
struct IndexCheck {
  const ir::Value* indices;
  sym::Expr extent;
  const ir::Node* node;
};

struct StitchedKernel {
  kir::Kernel kernel;  // its buffers: the output, then the inputs
  std::vector<const ir::Value*> inputs;
  std::vector<IndexCheck> index_checks;
  bool vectorised = true;  // over elements of the output; else within reductions only
};

class Stitcher {
 public:
  Stitcher(ir::Module& module, const analysis::Rdp& rdp);

  // Why a node has no kernel; empty if it has.
  const std::string& refusal(const ir::Node& node);

  // The product that a node is, if it is one.
  const std::optional<ir::ProductForm>& product(const ir::Node& node);
  // Whether its result is its first operand under other dims.
  bool is_view(const ir::Node& node);

  // The kernel that stores `root`, with the nodes of `inlined` computed where they are used. Nothing if that would
  // compute something more often than storing it does.
  std::optional<StitchedKernel> stitch(const ir::Value& root, const std::set<const ir::Node*>& inlined,
                                       std::string name);

 private:
  class Stitching;

  sym::Facts& facts_of(const ir::Node& node);
  struct Probe {
    std::string refusal;
    std::optional<ir::ProductForm> product = {};
    bool view = false;
  };
  const Probe& probe(const ir::Node& node);
  Probe make_probe(const ir::Node& node);

  const analysis::Rdp& rdp_;
  sym::Context& symbols_;
  std::map<const ir::Region*, sym::Facts> facts_;
  std::map<const ir::Node*, Probe> probes_;
  std::map<const ir::Node*, const ir::Region*> homes_;
};

}  // namespace selkie::codegen
