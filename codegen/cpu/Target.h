// LLVM's side of the CPU: target machine, passes, object code.
#ifndef CHARONIA_CODEGEN_CPU_TARGET_H
#define CHARONIA_CODEGEN_CPU_TARGET_H

#include "codegen/cpu/CpuCodegen.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace charonia::cpu {

/// A machine for one thread. Needs no code of the host's; cross-compiles.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(CpuIsa isa);

/// Attributes that every function of a kernel's module carries.
void setFunctionAttributes(llvm::Function &function,
                           const llvm::TargetMachine &machine);

/// A light pipeline: the emitter already writes vector code in the order it
/// wants.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// Relocatable object, or assembly text.
llvm::SmallVector<char, 0> emit(llvm::Module &module,
                                llvm::TargetMachine &machine,
                                llvm::CodeGenFileType type);

} // namespace charonia::cpu

#endif
