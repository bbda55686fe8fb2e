#include "codegen/llvm/FunctionPasses.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/DemandedBits.h"
#include "llvm/Analysis/LastRunTrackingAnalysis.h"
#include "llvm/Analysis/LazyValueInfo.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/MemoryDependenceAnalysis.h"
#include "llvm/Analysis/MemorySSA.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScopedNoAliasAA.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/TypeBasedAliasAnalysis.h"
#include "llvm/IR/PassInstrumentation.h"

using namespace llvm;

/// Makes each analysis known to a manager.
template <typename... Analyses, typename Manager>
static void registerAnalyses(Manager &manager) {
  (manager.registerPass([] { return Analyses(); }), ...);
}

void charonia::runFunctionPasses(Module &module, TargetMachine &machine,
                                 FunctionPassManager passes) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  ModuleAnalysisManager modules;

  functions.registerPass([] {
    AAManager aliases;
    aliases.registerFunctionAnalysis<BasicAA>();
    aliases.registerFunctionAnalysis<ScopedNoAliasAA>();
    aliases.registerFunctionAnalysis<TypeBasedAA>();
    return aliases;
  });
  functions.registerPass([&] {
    return TargetLibraryAnalysis(
        TargetLibraryInfoImpl(module.getTargetTriple()));
  });
  functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
  registerAnalyses<
      AssumptionAnalysis, BasicAA, ScopedNoAliasAA, TypeBasedAA,
      BlockFrequencyAnalysis, BranchProbabilityAnalysis, DemandedBitsAnalysis,
      DominatorTreeAnalysis, LastRunTrackingAnalysis, LazyValueAnalysis,
      LoopAnalysis, MemoryDependenceAnalysis, MemorySSAAnalysis,
      OptimizationRemarkEmitterAnalysis, PassInstrumentationAnalysis,
      PostDominatorTreeAnalysis, ScalarEvolutionAnalysis>(functions);
  registerAnalyses<PassInstrumentationAnalysis>(loops);
  registerAnalyses<PassInstrumentationAnalysis, ProfileSummaryAnalysis>(
      modules);

  functions.registerPass(
      [&] { return LoopAnalysisManagerFunctionProxy(loops); });
  functions.registerPass(
      [&] { return ModuleAnalysisManagerFunctionProxy(modules); });
  loops.registerPass(
      [&] { return FunctionAnalysisManagerLoopProxy(functions); });
  modules.registerPass(
      [&] { return FunctionAnalysisManagerModuleProxy(functions); });

  // The proxies inside functions look module analyses up but never compute
  // them.
  modules.getResult<ProfileSummaryAnalysis>(module);
  for (Function &function : module)
    if (!function.isDeclaration())
      passes.run(function, functions);
}
