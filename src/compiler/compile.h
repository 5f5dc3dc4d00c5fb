// From an analysed module to a program: the compiler's last step, after passes and analysis.
#pragma once

#include "analysis/rdp.h"
#include "kir/kernel.h"
#include "program/program.h"

namespace selkie::compiler {

// An operator that the program calls on the host, and the values from outside that its regions use: they follow its
// operands in the call.
struct HostNode {
  const ir::Node* node;
  std::vector<const ir::Value*> captured;
};

struct Compiled {
  program::Program program;
  std::vector<kir::Kernel> kernels;  // in the order of the program's
  std::vector<HostNode> host_nodes;  // in the order of its host calls
  size_t nodes = 0;                  // of @main before fusion
};

// The module must outlive what is compiled from it as long as there are host nodes.
Compiled compile(ir::Module& module, const analysis::Rdp& rdp);

}  // namespace selkie::compiler
