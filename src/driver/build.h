// A model made ready to run on this machine: passes, analysis, compilation, code, and the host functions for operators
// without kernels.
#pragma once

#include <memory>

#include "compiler/compile.h"
#include "interp/interp.h"
#include "ir/module.h"
#include "runtime/context.h"

namespace selkie::driver {

struct Options {
  compiler::Options compiler = {};
  interp::Options host = {};      // of operators that run on the host
  bool check_kernels = false;     // kernels are interpreted and library calls measured: every access is checked
  int threads = 1;                // that compile
  std::string cache_folder = {};  // where code is kept from one compilation to the next; none if empty
  uint64_t cache_bytes = uint64_t{256} << 20;
  bool late_weights = true;  // those that only arms of branches read are packed when a run first takes one
};

struct Built {
  std::shared_ptr<const runtime::Executable> executable;
  std::shared_ptr<const ir::Module>
      declared;      // @main as the model declares it, without its body; results as the analysis knows them
  size_t nodes = 0;  // of @main before fusion
  size_t kernels = 0;
  size_t host_calls = 0;
  program::Image image = {};  // empty if kernels are interpreted
  bool code_is_cached = false;
  // For operators that run on the host; null if none does.
  std::shared_ptr<const ir::Module> module = {};
  std::vector<compiler::HostNode> host_nodes = {};
};

// What a model compiles to, without machine code: the module is rewritten.
compiler::Compiled compile(ir::Module& module, const compiler::Options& options = {});

// The module is rewritten, and kept for the operators that run on the host.
Built build(std::shared_ptr<ir::Module> module, const Options& options = {});

struct Code {
  program::Image image;
  bool is_cached = false;  // it was found in the cache
};
Code make_code(const std::vector<kir::Kernel>& kernels, const Options& options);

// Brings code into executable memory and hands its kernels to an executable, in the order of the program's.
void attach_code(const program::Image& image, const program::Program& program, runtime::Executable& executable);

// The limits that compiled control flow has in common with operators on the host.
runtime::Limits run_limits(const interp::Options& how);

// Calls of generated and of library kernels, in the functions of a program, too.
size_t count_kernels(const program::Program& program, std::span<const program::Program> functions = {});

}  // namespace selkie::driver
