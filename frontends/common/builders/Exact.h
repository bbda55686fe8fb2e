// Numbers that a half type has no exact form of.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_EXACT_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_EXACT_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// The type that arithmetic of elements with these numbers is done in: float
/// where a half type has no exact form of one of them, else the elements' own.
/// A null type stays null.
mlir::Type exactType(mlir::Type element, llvm::ArrayRef<double> numbers);
/// What `build` makes of `x` in that type, rounded to the type of `x` at last.
mlir::Value computeExactly(mlir::Value x, llvm::ArrayRef<double> numbers,
                           llvm::function_ref<mlir::Value(mlir::Value)> build,
                           Emitter &e);

} // namespace charonia::frontend

#endif
