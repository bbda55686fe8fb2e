// What stops a size that follows from others from being known.
#ifndef CHARONIA_FRONTENDS_COMMON_SIZEREASONS_H
#define CHARONIA_FRONTENDS_COMMON_SIZEREASONS_H

#include "frontends/common/SizeEvaluator.h"

namespace charonia::frontend {

/// Whether all elements are known, and their ranges.
bool haveRanges(llvm::ArrayRef<SizeElement> elements, const Symbols &symbols);

/// What `op` does for which no size can be told, though its operands are known,
/// as in "divides by k - 10, which may be 0 (k in 1..64)".
std::string
explainUnknown(mlir::Operation *op, Symbols &symbols,
               llvm::function_ref<const SizeElements *(mlir::Value)> sizesOf);

} // namespace charonia::frontend

#endif
