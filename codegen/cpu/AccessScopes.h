// What an access of memory may share with others, as LLVM asks for it.
#ifndef CHARONIA_CODEGEN_CPU_ACCESSSCOPES_H
#define CHARONIA_CODEGEN_CPU_ACCESSSCOPES_H

#include "llvm/IR/Instruction.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Metadata.h"

namespace charonia::cpu {

/// Says that an access is of the scopes `own`, and of none of `others`.
template <typename Instruction>
Instruction *withScopes(Instruction *access, llvm::MDNode *own,
                        llvm::MDNode *others) {
  if (own)
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, own);
  if (others)
    access->setMetadata(llvm::LLVMContext::MD_noalias, others);
  return access;
}

} // namespace charonia::cpu

#endif
