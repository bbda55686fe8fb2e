// From scalar code in the llvm and nvvm dialects to PTX.
#ifndef CHARONIA_CODEGEN_GPU_LOWER_TOPTX_H
#define CHARONIA_CODEGEN_GPU_LOWER_TOPTX_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace charonia::gpu {

struct PtxCode {
  std::string llvm, ptx;
};

/// Of a scf.for: a LoopAnnotationAttr, which its branch back then has.
constexpr llvm::StringLiteral kLoopAnnotationAttr = "llvm.loop_annotation";

/// Translations that translateToPtx needs in the context.
void registerPtxTranslation(mlir::DialectRegistry &registry);

/// Converts what is left of arith, math and scf and runs LLVM's code generator.
/// The module is changed. `chip` is a name of LLVM's NVPTX target.
mlir::FailureOr<PtxCode>
translateToPtx(mlir::ModuleOp module, llvm::StringRef chip, unsigned indexBits);

} // namespace charonia::gpu

#endif
