// Einstein sums.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_EINSUM_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_EINSUM_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// "bij,bjk->bik" of operands of one element type: a letter for each dimension,
/// "..." for those that no letter names. Without "->" the result has the
/// letters that appear once, in alphabetic order, capitals first.
mlir::Value buildEinsum(llvm::StringRef equation, mlir::ValueRange operands,
                        Emitter &e);

} // namespace charonia::frontend

#endif
