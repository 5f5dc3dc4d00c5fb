// From operators to one kernel: a value that is stored, computed together with the values it needs that are not.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "analysis/rdp.h"
#include "codegen/layout.h"
#include "kir/kernel.h"
#include "ops/support/lower.h"

namespace selkie::codegen {

// Elements of `indices` must lie in -extent … extent - 1.
struct IndexCheck {
  const ir::Value* indices;
  sym::Expr extent;
  const ir::Node* node;
};

// Two sizes that must be equal in the run: operands broadcast only then.
using SizeCheck = std::pair<sym::Expr, sym::Expr>;

// What `lower` says of a node as a whole.
struct NodeForm {
  std::string refusal;  // why it has no kernel; empty if it has
  std::optional<ir::ProductForm> product = {};
  std::optional<ir::ConvolutionForm> convolution = {};
  std::optional<ir::AttentionForm> attention = {};
  std::optional<ir::RecurrentForm> recurrent = {};
  std::optional<std::vector<int64_t>> permutation = {};  // it moves axes and does nothing else
  std::optional<size_t> concatenation = {};              // it puts its operands one after the other along an axis
  bool reshapes = false;                                 // its result is its first operand under other dims
  std::vector<SizeCheck> size_checks = {};               // of the library kernel
};

// Where stored values lie.
struct Placement {
  std::map<const ir::Value*, Layout> layouts;  // those that are not plain
  std::set<const ir::Node*> views;             // whose result is the memory of their first operand

  const Layout& layout(const ir::Value& value) const {
    static const Layout plain;
    auto at = layouts.find(&value);
    return at == layouts.end() ? plain : at->second;
  }
};

struct StitchedKernel {
  kir::Kernel kernel;  // its buffers: the output, then the inputs
  std::vector<const ir::Value*> inputs;
  std::vector<IndexCheck> index_checks;
  std::vector<SizeCheck> size_checks;
  bool vectorised = true;        // over elements of the output; else within reductions only
  bool reduces_by_lane = false;  // each lane of a vector makes a reduction of its own
  size_t idle_loops = 0;         // around reductions that are the same in all their steps
};

class Stitcher {
 public:
  Stitcher(ir::Module& module, const analysis::Rdp& rdp);

  const NodeForm& form(const ir::Node& node);
  sym::Facts& facts_of(const ir::Node& node);
  sym::Context& symbols() { return symbols_; }

  // Set once the forms of all nodes have been asked.
  void set_placement(Placement placement) { placement_ = std::move(placement); }
  const Placement& placement() const { return placement_; }

  // The kernel that stores `root`, with the nodes of `inlined` computed where they are used. Nothing if that would
  // compute something more often than storing it does.
  std::optional<StitchedKernel> stitch(const ir::Value& root, const std::set<const ir::Node*>& inlined,
                                       std::string name);
  // A kernel over two ranges, rows and columns of `producer` as its library kernel finishes them, that turns its
  // elements into those of `root` where they are. Nothing if they are not the same elements in the same places. The
  // columns are the axis of that number; the rows are all others.
  std::optional<StitchedKernel> stitch_epilogue(const ir::Value& root, const std::set<const ir::Node*>& inlined,
                                                const ir::Value& producer, size_t columns);
  // For a concatenation a kernel per operand, which stores its part of `root`.
  std::optional<std::vector<StitchedKernel>> stitch_parts(const ir::Value& root,
                                                          const std::set<const ir::Node*>& inlined);
  // Copies a stored value into another layout.
  StitchedKernel stitch_copy(const ir::Value& value, const Layout& to);

 private:
  class Stitching;

  NodeForm find_form(const ir::Node& node);

  const analysis::Rdp& rdp_;
  sym::Context& symbols_;
  std::map<const ir::Region*, sym::Facts> facts_;
  std::map<const ir::Node*, NodeForm> forms_;
  Placement placement_;
  std::map<const ir::Node*, const ir::Region*> homes_;
};

}  // namespace selkie::codegen
