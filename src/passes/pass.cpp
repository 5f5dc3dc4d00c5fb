#include "passes/pass.h"

#include "ir/print.h"
#include "ir/verify.h"

namespace selkie::passes {

#define PASS(function, contract) bool function(ir::Module&);
#include "passes/passes.def"
#undef PASS

std::span<const Pass> all_passes() {
  static constexpr Pass table[] = {
#define PASS(function, contract) {#function, contract, function},
#include "passes/passes.def"
#undef PASS
  };
  return table;
}

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : all_passes())
    if (pass.name == name) return &pass;
  return nullptr;
}

bool run_pass(const Pass& pass, ir::Module& module) {
  bool changed = pass.run(module);
  if (changed) {
    std::vector<std::string> broken = ir::problems(module, 1);
    CHECK(broken.empty(), "after pass {}: {}\n{}", pass.name, broken[0], ir::print(module));
  }
  return changed;
}

}  // namespace selkie::passes
