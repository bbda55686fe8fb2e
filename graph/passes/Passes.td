// Passes on the graph dialect: what each wants, what it leaves, where it stands.
#ifndef CHARONIA_GRAPH_PASSES
#define CHARONIA_GRAPH_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Cleaning up what an importer leaves
//===----------------------------------------------------------------------===//

def EvaluateShapes : Pass<"evaluate-shapes", "mlir::func::FuncOp"> {
  let summary = "Shape arithmetic becomes expressions over shape symbols";
  let description = [{
    Before: chains of `shape_of`, `gather`, `concat`, `mul`, ... on small integer
    tensors. After: a `graph.constant`, or a `graph.dims` where symbols are
    involved, for each of these tensors that something else reads; the chains are
    gone. Runs first, because constants and static views come out of it.
  }];
  let statistics = [Statistic<"numEvaluated", "evaluated", "Tensors evaluated">];
}

#endif
