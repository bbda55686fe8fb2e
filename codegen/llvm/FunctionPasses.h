// Runs LLVM's function passes without llvm::PassBuilder, whose registry names
// every pass of LLVM and so makes the program 9 MB larger.
#ifndef CHARONIA_CODEGEN_LLVM_FUNCTIONPASSES_H
#define CHARONIA_CODEGEN_LLVM_FUNCTIONPASSES_H

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Target/TargetMachine.h"

namespace charonia {

/// Runs `passes` on every function that has a body, with the analyses that
/// scalar function and loop passes ask for: aliases (basic, scoped,
/// type-based), dominators, loops, memory SSA, scalar evolution, value ranges
/// and the costs of `machine`. A pass that wants an analysis of call graphs or
/// profiles has to be given it here.
void runFunctionPasses(llvm::Module &module, llvm::TargetMachine &machine,
                       llvm::FunctionPassManager passes);

} // namespace charonia

#endif
