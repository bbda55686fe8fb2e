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

/// Fails unless the operand has this many dimensions.
inline bool hasRank(Call &c, Value value, llvm::StringRef name, int64_t low,
                    int64_t high) {
  if (!value)
    return false;
  int64_t rank = rankOf(value);
  if (rank < low || rank > high)
    c.fail("argument '" + name + "' has " + llvm::Twine(rank) + " dimensions");
  return rank >= low && rank <= high;
}

} // namespace charonia::frontend::pytorch

#endif
