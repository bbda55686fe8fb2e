// Weights beside a dumped module, so that a stage can be resumed.
#ifndef CHARONIA_CODEGEN_DRIVER_WEIGHTFILE_H
#define CHARONIA_CODEGEN_DRIVER_WEIGHTFILE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace charonia::driver {

/// Writes those weights of the store that `module` names and `written` does
/// not, in the safetensors format; no file where there are none. Adds them to
/// `written`. Gives the text of an error, empty if there was none.
std::string writeWeightFile(mlir::ModuleOp module, const std::string &path,
                            llvm::StringSet<> &written);

/// Maps the .safetensors files of `folder` and adds to the store what `module`
/// names and they hold. A weight that is nowhere is not an error here: @prepare
/// may compute it. Gives the text of an error, empty if there was none.
std::string readWeightFiles(mlir::ModuleOp module, const std::string &folder);

} // namespace charonia::driver

#endif
