// The optimisation pipeline and LLVM's code generator. Passes are listed one by one: kernels are vectors already, so
// that the usual pipeline would cost more time than it saves; InstCombine alone would take as long as all of these.
#include "codegen/cpu/object.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemorySSA.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ProfileSummaryInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <mutex>

#include "base/error.h"

namespace selkie::codegen::cpu {
namespace {

void initialise_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

// Only what the passes below ask for; LLVM's PassBuilder would link every pass there is.
class Analyses {
 public:
  explicit Analyses(llvm::TargetMachine& machine) {
    llvm::TargetLibraryInfoImpl libraries(machine.getTargetTriple());
    libraries.disableAllFunctions();
    functions_.registerPass([] {
      llvm::AAManager aliases;
      aliases.registerFunctionAnalysis<llvm::BasicAA>();
      return aliases;
    });
    functions_.registerPass([=] { return llvm::TargetLibraryAnalysis(libraries); });
    functions_.registerPass([&] { return machine.getTargetIRAnalysis(); });
    functions_.registerPass([] { return llvm::AssumptionAnalysis(); });
    functions_.registerPass([] { return llvm::BasicAA(); });
    functions_.registerPass([] { return llvm::BlockFrequencyAnalysis(); });
    functions_.registerPass([] { return llvm::BranchProbabilityAnalysis(); });
    functions_.registerPass([] { return llvm::DominatorTreeAnalysis(); });
    functions_.registerPass([] { return llvm::LoopAnalysis(); });
    functions_.registerPass([] { return llvm::MemorySSAAnalysis(); });
    functions_.registerPass([] { return llvm::OptimizationRemarkEmitterAnalysis(); });
    functions_.registerPass([] { return llvm::PostDominatorTreeAnalysis(); });
    functions_.registerPass([] { return llvm::ScalarEvolutionAnalysis(); });
    functions_.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
    functions_.registerPass([&] { return llvm::LoopAnalysisManagerFunctionProxy(loops_); });
    functions_.registerPass([&] { return llvm::ModuleAnalysisManagerFunctionProxy(modules_); });
    loops_.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
    loops_.registerPass([&] { return llvm::FunctionAnalysisManagerLoopProxy(functions_); });
    modules_.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
    modules_.registerPass([] { return llvm::ProfileSummaryAnalysis(); });
    modules_.registerPass([&] { return llvm::FunctionAnalysisManagerModuleProxy(functions_); });
  }

  llvm::FunctionAnalysisManager& functions() { return functions_; }

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::ModuleAnalysisManager modules_;
};

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Isa& isa) {
  initialise_targets();
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(std::string(isa.triple), problem);
  CHECK(target, "LLVM does not know {}: {}", isa.triple, problem);
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(isa.triple, isa.cpu, isa.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  CHECK(machine, "LLVM has no machine for {}", isa.name);
  return machine;
}

void prepare(llvm::Module& module, const Isa& isa, llvm::TargetMachine& machine) {
  module.setTargetTriple(isa.triple);
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(llvm::PICLevel::SmallPIC);
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  Analyses analyses(machine);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  passes.addPass(llvm::EarlyCSEPass(true));
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, analyses.functions());
}

std::vector<char> to_object(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile, true);
  CHECK(!refused, "LLVM cannot write objects for this machine");
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

}  // namespace selkie::codegen::cpu
