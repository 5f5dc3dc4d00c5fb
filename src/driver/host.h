// Operators that run on the host: the function that the runtime calls for each, and what of a module they need.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>

#include "compiler/compile.h"
#include "interp/interp.h"
#include "ir/module.h"
#include "program/file.h"
#include "runtime/context.h"

namespace selkie::driver {

// Functions for all nodes, in their order. Each has random numbers of its own, from the seed and its place.
std::vector<runtime::HostFunction> host_functions(const std::shared_ptr<const ir::Module>& module,
                                                  std::span<const compiler::HostNode> nodes,
                                                  const interp::Options& how);

// @main of a module as its users see it: parameters, results and what is required of them, without a body.
std::string signature(const ir::Module& module);
// The same with other types of results.
std::string signature(const ir::Module& module, std::vector<ir::Type> results);

// The data types of a module as text, and the names of constants that a body uses.
std::string data_types(const ir::Module& module);
std::set<std::string> constants_of(const ir::Region& body);

// Writes to `artifact` the part of a module that some nodes of its @main need to run: these nodes, the functions of the
// module, and the constants that both use. Values that other nodes make become parameters.
void save_host_nodes(const ir::Module& module, std::span<const compiler::HostNode> nodes, program::Artifact& artifact);

// The module that was saved, and the nodes in the order of the program's host calls; a user error where they do not
// fit these.
struct HostNodes {
  std::shared_ptr<const ir::Module> module;
  std::vector<compiler::HostNode> nodes;
};
HostNodes load_host_nodes(const program::Artifact& artifact, const std::string& file);

}  // namespace selkie::driver
