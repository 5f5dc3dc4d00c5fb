// LLVM modules to object files, and object files to an image. Private to the folder.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/cpu/compile.h"

namespace selkie::codegen::cpu {

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Isa& isa);
void prepare(llvm::Module& module, const Isa& isa, llvm::TargetMachine& machine);
void optimise(llvm::Module& module, llvm::TargetMachine& machine);
std::vector<char> to_object(llvm::Module& module, llvm::TargetMachine& machine);

// Appends the sections of an object file that are loaded to `image`, with all references between them resolved, and
// returns where its functions are. An undefined symbol is a bug.
struct PlacedSymbol {
  std::string name;
  uint64_t offset;
};
std::vector<PlacedSymbol> append_object(const std::vector<char>& object, program::Image& image);

}  // namespace selkie::codegen::cpu
