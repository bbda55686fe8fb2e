// Rows of an open length that may be short.
#ifndef CHARONIA_CODEGEN_EMIT_SHORTROWS_H
#define CHARONIA_CODEGEN_EMIT_SHORTROWS_H

#include "codegen/emit/Schedule.h"
#include "graph/ir/Dialect.h"

namespace charonia::emit {

/// The extent of rows that a kernel reduces along memory, or walks along with
/// windows, and the lengths up to which all of such a row is one tile,
/// ascending; none where rows are long, or their length is known.
struct ShortRows {
  mlir::AffineExpr extent;
  llvm::SmallVector<int64_t> lengths;
};

/// What the program of a kernel should be written for once more: on a CPU a row
/// of five elements else takes what one of some registers does.
ShortRows shortRowsOf(graph::KernelOp kernel, const EmitTarget &target,
                      const Schedule &schedule);

} // namespace charonia::emit

#endif
