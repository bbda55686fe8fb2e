#include "graph/analysis/Pairs.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace charonia::graph {

static constexpr llvm::StringLiteral pairsFitName = "graph.pairs_fit";

bool pairsFit(mlir::Operation *op) { return op->hasAttr(pairsFitName); }

void notePairsFit(mlir::Operation *op) {
  op->setAttr(pairsFitName, mlir::UnitAttr::get(op->getContext()));
}

} // namespace charonia::graph
