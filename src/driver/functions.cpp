#include "driver/functions.h"

#include <algorithm>
#include <set>

#include "analysis/rdp.h"
#include "driver/host.h"
#include "ir/control.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/registry.h"

namespace selkie::driver {
namespace {

// Those that a body still calls after the passes, in order.
std::vector<std::string> callees(const ir::Region& body) {
  std::vector<std::string> out;
  ir::for_each_node(body, [&](const ir::Node& node) {
    if (node.op->control == nullptr) return;
    ir::ControlForm form = node.op->control(node);
    if (form.kind == ir::ControlForm::Kind::call && std::ranges::find(out, form.callee) == out.end())
      out.push_back(form.callee);
  });
  return out;
}

// The functions of a module with the body of one of them as @main, and what that does not change: the constants.
std::shared_ptr<ir::Module> with_main(const ir::Module& whole, const std::string& name) {
  auto constants = std::make_unique<ir::Module>();
  std::set<std::string> used;
  for (const auto& function : whole.functions())
    if (function->name != whole.main().name) used.merge(constants_of(function->body));
  for (const auto& constant : whole.constants())
    if (used.contains(constant->value.name)) constants->add_constant(constant->value.name, constant->tensor());
  std::string text = data_types(whole);
  std::string head = "func @" + name + "(";
  for (const auto& function : whole.functions()) {
    if (function->name == whole.main().name) continue;
    std::string own = ir::print(*function);
    text += own;
    if (function->name != name) continue;
    size_t at = own.find(head);
    CHECK(at != std::string::npos, "a function is printed without its name");
    text += own.replace(at, head.size(), "func @main(");
  }
  std::shared_ptr<ir::Module> module = ir::parse(text, ops::op_set(), "function @" + name, std::move(constants));
  ir::Function& main = module->main();
  main.result_names.clear();
  for (size_t i = 0; i < main.body.yields.size(); ++i) main.result_names.push_back(fmt::format("result {}", i));
  return module;
}

// Registers and launches of a function speak of the constants and kernels of the whole program.
program::Program moved_into(compiler::Compiled& whole, compiler::Compiled& function) {
  program::Program out = std::move(function.program);
  auto constants = static_cast<uint32_t>(whole.program.constants.size());
  auto kernels = static_cast<uint32_t>(whole.kernels.size());
  for (program::RegisterInfo& r : out.registers)
    if (r.storage == program::RegisterInfo::Storage::constant) r.constant += constants;
  for (program::Launch& launch : out.launches) launch.kernel += kernels;
  std::ranges::move(out.constants, std::back_inserter(whole.program.constants));
  for (kir::Kernel& kernel : function.kernels) {
    kernel.name = fmt::format("k{}", whole.kernels.size());
    whole.program.kernels.push_back(kernel.name);
    whole.kernels.push_back(std::move(kernel));
  }
  out.constants.clear();
  out.kernels.clear();
  return out;
}

}  // namespace

Functions::Functions(const ir::Module& module, const compiler::Options& options, const Prepare& prepare) {
  find(module, module, prepare);
  compile(options);
}

void Functions::find(const ir::Module& from, const ir::Module& whole, const Prepare& prepare) {
  for (const std::string& name : callees(from.main().body)) {
    if (whole.find_function(name) == nullptr ||
        std::ranges::find(functions_, name, &Function::name) != functions_.end())
      continue;
    Function function{.name = name, .module = with_main(whole, name)};
    try {
      function.checks = compiler::entry_checks(analysis::Rdp(*function.module));
      prepare(*function.module);
    } catch (const Error&) {
      continue;  // it fails if it is called, and a run may never do that
    }
    std::shared_ptr<ir::Module> module = function.module;
    functions_.push_back(std::move(function));
    find(*module, whole, prepare);
  }
}

std::vector<std::string> Functions::names() const {
  std::vector<std::string> out;
  for (const Function& function : functions_) out.push_back(function.name);
  return out;
}

// One that turns out to need the host may be called by others, which then do, too.
void Functions::compile(const compiler::Options& options) {
  compiler::Options own = options;
  auto needs_host = [&](Function& function) {
    try {
      analysis::Rdp rdp(*function.module, own.functions);
      function.compiled = compiler::compile(*function.module, rdp, function.checks, own);
    } catch (const Error&) {
      return true;
    }
    return !function.compiled.host_nodes.empty();
  };
  do own.functions = names();
  while (std::erase_if(functions_, needs_host) > 0);
}

void Functions::link_to(compiler::Compiled& compiled) {
  for (Function& function : functions_) {
    function.compiled.packings.run(1);
    compiled.functions.push_back(moved_into(compiled, function.compiled));
    compiled.modules.push_back(std::move(function.module));
  }
}

}  // namespace selkie::driver
