// From an analysed module to a program: the compiler's last step, after passes and analysis.
#pragma once

#include "analysis/rdp.h"
#include "compiler/packing.h"
#include "kir/kernel.h"
#include "program/program.h"

namespace selkie::compiler {

// An operator that the program calls on the host, and the values from outside that its regions use: they follow its
// operands in the call.
struct HostNode {
  const ir::Node* node;
  std::vector<const ir::Value*> captured;
};

struct Options {
  bool exact = false;  // no algorithm whose rounding error is far beyond that of the plain sum
  // What weights that are transformed for Winograd's kernel may take, as a share of the model's weights: more is
  // faster.
  double winograd_share = 0.1;
  bool plain_order = false;  // steps run in the order of the model's nodes, even if another needs less memory
  std::vector<std::string> without = {};  // passes that are left out, to see what they are worth
  // Functions of the module that are compiled, too: calls of them are instructions, by their places here.
  std::vector<std::string> functions = {};
};

// Steps that run in another order than that of the nodes. Bytes are those in use at a time, at representative sizes.
struct Reordered {
  std::string node;  // of the first in the order of the nodes
  size_t steps;
  int64_t plain_bytes, bytes;
  bool is_exact;  // no order needs less, there
};

struct Compiled {
  program::Program program;
  std::vector<program::Program> functions;           // with the program's constants and kernels
  std::vector<std::shared_ptr<ir::Module>> modules;  // of these; what is said of them stands there
  Packings packings;                                 // what fills the program's weights, from the module's; not yet run
  std::vector<kir::Kernel> kernels;                  // in the order of the program's
  std::vector<HostNode> host_nodes;                  // in the order of its host calls
  size_t nodes = 0;                                  // of @main before fusion
  std::vector<Reordered> orders;
  size_t copies = 0;  // launches that only bring a value into another layout
  // What the program's slots hold and how many bytes its registers of the arena and the heap have; null where that was
  // not asked for, or only the run tells it.
  std::vector<sym::Expr> slots;
  std::vector<sym::Expr> stored_bytes;
};

// Of a tensor whose rank is known; nothing where symbolic integers cannot hold it.
std::optional<sym::Expr> bytes_of(const ir::Type& type, sym::Context& symbols);

// What inputs must satisfy: a == b or a <= b.
struct EntryCheck {
  bool equal;
  sym::Expr a, b;
  std::string text;
};
// Those of a module as it is now. Passes may remove the node that requires one and keep what they concluded from it, so
// they are taken before the passes.
std::vector<EntryCheck> entry_checks(const analysis::Rdp& rdp);

// The module must outlive what is compiled from it as long as there are host nodes.
Compiled compile(ir::Module& module, const analysis::Rdp& rdp, std::vector<EntryCheck> checks, Options options);

}  // namespace selkie::compiler
