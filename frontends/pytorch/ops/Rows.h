// What each family of rows begins with.
#ifndef CHARONIA_FRONTENDS_PYTORCH_OPS_ROWS_H
#define CHARONIA_FRONTENDS_PYTORCH_OPS_ROWS_H

#include "frontends/pytorch/Registry.h"

namespace charonia::frontend::pytorch {

using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

} // namespace charonia::frontend::pytorch

#endif
