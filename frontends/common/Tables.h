// Contents that importers compute from a few numbers of a file.
#ifndef CHARONIA_FRONTENDS_COMMON_TABLES_H
#define CHARONIA_FRONTENDS_COMMON_TABLES_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// To be asked before a table is computed: a few bytes of a file may ask for
/// much. Fails where this one is too large, or all of a model together are:
/// they count as what is written out (Emitter::writeOut), which is 256 MiB.
llvm::LogicalResult reserveTable(int64_t elements, mlir::Type element,
                                 Emitter &e);
inline llvm::LogicalResult reserveTable(mlir::RankedTensorType type,
                                        Emitter &e) {
  return reserveTable(type.getNumElements(), type.getElementType(), e);
}

} // namespace charonia::frontend

#endif
