// Fused multiply-adds, before LLVM's own passes look at the code.
#ifndef CHARONIA_CODEGEN_CPU_CONTRACT_H
#define CHARONIA_CODEGEN_CPU_CONTRACT_H

#include "llvm/IR/PassManager.h"

namespace charonia::cpu {

/// Makes a product and the sum behind it one `llvm.fma` where both carry
/// `contract`, and takes the flag from all else. The flag must not live on:
/// LLVM's simplifications give a product that they write anew (e + d·(−c)
/// becomes e − d·c) the flags of the sum, so what was rounded by itself would
/// be no more.
struct ContractProducts : llvm::PassInfoMixin<ContractProducts> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

} // namespace charonia::cpu

#endif
