// Passes on the graph dialect (Passes.td) and their registration.
#ifndef CHARONIA_GRAPH_PASSES_PASSES_H
#define CHARONIA_GRAPH_PASSES_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace charonia::graph {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "graph/passes/Passes.h.inc"

} // namespace charonia::graph

#endif
