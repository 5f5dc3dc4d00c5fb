#include "codegen/cpu/compile.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <atomic>
#include <thread>
#include <unordered_map>

#include "base/error.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/object.h"

namespace selkie::codegen::cpu {
namespace {

// Kernels of one LLVM module: enough that what a module costs is shared, few enough that threads have equal work.
constexpr size_t kernels_per_module = 8;

// The names of kernels may be anything; functions are numbered.
std::string function_name(size_t index) { return fmt::format("kernel_{}", index); }

void check_module(const llvm::Module& module) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  CHECK(!llvm::verifyModule(module, &stream), "{}", problem);
}

std::vector<char> compile_module(std::span<const kir::Kernel* const> kernels, size_t first, const Isa& isa) {
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(isa);
  prepare(module, isa, *machine);
  for (size_t i = 0; i < kernels.size(); ++i) Emitter(module, *kernels[i], isa).run(function_name(first + i));
  check_module(module);
  optimise(module, *machine);
  return to_object(module, *machine);
}

// Kernels that differ in more than their name, and which of them each given kernel is.
struct Distinct {
  std::vector<const kir::Kernel*> kernels;
  std::vector<size_t> index;
};

Distinct find_distinct(std::span<const kir::Kernel* const> kernels) {
  Distinct distinct;
  std::unordered_map<std::string, size_t> known;
  for (const kir::Kernel* kernel : kernels) {
    kir::Kernel nameless = *kernel;
    nameless.name = "_";
    auto [it, is_new] = known.emplace(kir::print(nameless), distinct.kernels.size());
    if (is_new) distinct.kernels.push_back(kernel);
    distinct.index.push_back(it->second);
  }
  return distinct;
}

}  // namespace

program::Image compile(std::span<const kir::Kernel* const> kernels, const Isa& isa, unsigned threads) {
  Distinct distinct = find_distinct(kernels);
  size_t modules = (distinct.kernels.size() + kernels_per_module - 1) / kernels_per_module;
  std::vector<std::vector<char>> objects(modules);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < modules; i = next++) {
      size_t first = i * kernels_per_module;
      auto part = std::span(distinct.kernels).subspan(first);
      objects[i] = compile_module(part.first(std::min(kernels_per_module, part.size())), first, isa);
    }
  };
  std::vector<std::jthread> helpers;
  for (size_t i = 1; i < std::min<size_t>(threads, modules); ++i) helpers.emplace_back(work);
  work();
  helpers.clear();

  program::Image image{.isa = std::string(isa.name), .code = {}, .entries = {}};
  std::map<std::string, uint64_t> offsets;
  for (const std::vector<char>& object : objects)
    for (PlacedSymbol& symbol : append_object(object, image)) offsets.emplace(std::move(symbol.name), symbol.offset);
  for (size_t i = 0; i < kernels.size(); ++i) {
    uint64_t offset = offsets.at(function_name(distinct.index[i]));
    CHECK(image.entries.emplace(kernels[i]->name, offset).second, "two kernels are called {}", kernels[i]->name);
  }
  return image;
}

std::string llvm_text(const kir::Kernel& kernel, const Isa& isa) {
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(isa);
  prepare(module, isa, *machine);
  Emitter(module, kernel, isa).run(function_name(0));
  check_module(module);
  optimise(module, *machine);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace selkie::codegen::cpu
