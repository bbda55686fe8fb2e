// The function @prepare: what is computed once, when the model is built.
#ifndef CHARONIA_GRAPH_PASSES_PREPAREFUNCTION_H
#define CHARONIA_GRAPH_PASSES_PREPAREFUNCTION_H

#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace charonia::graph {

/// Adds to a module's @prepare, which has no arguments; its result i is the
/// weight named by the result's attribute `graph.name`. Nothing is written to
/// the module before finish().
class PrepareFunction {
public:
  explicit PrepareFunction(mlir::ModuleOp module);
  ~PrepareFunction();

  /// The value in @prepare that computes `value`, which depends on weights
  /// alone.
  mlir::Value import(mlir::Value value);
  /// Builds operators in @prepare.
  mlir::OpBuilder &getBuilder() { return builder; }
  /// Makes a value of @prepare one of its results, and refers to it at
  /// `outside`.
  mlir::Value publish(mlir::Value value, mlir::OpBuilder &outside);
  /// Closes @prepare with its results; leaves none where nothing was published.
  void finish();

private:
  mlir::ModuleOp module;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  mlir::IRMapping mapping;
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::Attribute> names;
};

} // namespace charonia::graph

#endif
