// Functions that call themselves: each is compiled as a program of its own, which calls of it run in a frame of its
// own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "ir/module.h"

namespace selkie::driver {

// Compiles what a module calls and adds it: to `options` the names of functions that are programs, before the module
// itself is compiled; to what that gave, their programs with constants and kernels. A function with operators that
// have no kernels, or that cannot be completed, stays a host call as a whole. `prepare` runs the passes on a module.
class Functions {
 public:
  using Prepare = std::function<void(ir::Module&)>;
  Functions(const ir::Module& module, const compiler::Options& options, const Prepare& prepare);

  std::vector<std::string> names() const;
  void link_to(compiler::Compiled& compiled);

 private:
  struct Function {
    std::string name;
    std::shared_ptr<ir::Module> module;  // @main is its body
    std::vector<compiler::EntryCheck> checks = {};
    compiler::Compiled compiled = {};
  };

  void find(const ir::Module& from, const ir::Module& whole, const Prepare& prepare);
  void compile(const compiler::Options& options);

  std::vector<Function> functions_;
};

}  // namespace selkie::driver
