// How long the code of a kernel becomes, before it is written.
#ifndef CHARONIA_GRAPH_ANALYSIS_CODESIZE_H
#define CHARONIA_GRAPH_ANALYSIS_CODESIZE_H

#include "graph/ir/Dialect.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace charonia::graph {

/// Vector instructions, roughly, that a kernel of `ops` takes for one register
/// of each of its results: the sum of their getCodeSize, each as often as the
/// kernel computes the operator at different coordinates. `ops` are of one
/// block, in any order; operators that they read and `isCopied` accepts are in
/// the kernel too. Anchors (contractions, windows) are not counted: their
/// schedules bound their own code. Saturates at `limit`.
int64_t estimateCode(llvm::ArrayRef<mlir::Operation *> ops,
                     llvm::function_ref<bool(mlir::Operation *)> isCopied,
                     int64_t limit);

/// The same of a formed kernel.
int64_t estimateCode(KernelOp kernel, int64_t limit);

} // namespace charonia::graph

#endif
