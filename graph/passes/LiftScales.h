// Products of scaled floats of 8 bits.
#ifndef CHARONIA_GRAPH_PASSES_LIFTSCALES_H
#define CHARONIA_GRAPH_PASSES_LIFTSCALES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::graph {

/// matmul(cast(a) * s, cast(b) * t) of floats of 8 bits becomes matmul(a, b) *
/// s
/// * t, a product of the small floats themselves, where the scales are the same
/// along the terms: of a tensor, of a row of `a`, of a column of `b`. What is
/// no longer used stays for eraseDead.
void liftScales(mlir::func::FuncOp function);

} // namespace charonia::graph

#endif
