// What the emission rules share.
#ifndef CHARONIA_CODEGEN_EMIT_RULES_RULES_H
#define CHARONIA_CODEGEN_EMIT_RULES_RULES_H

#include "codegen/emit/Emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace charonia::emit {

/// An EmitOpInterface model that calls a function.
template <typename Op,
          FailureOr<Value> (*function)(Op, Emitter &, const Demand &)>
struct Rule : EmitOpInterface::ExternalModel<Rule<Op, function>, Op> {
  FailureOr<Value> emitTile(mlir::Operation *op, Emitter &emitter,
                            const Demand &demand) const {
    return function(llvm::cast<Op>(op), emitter, demand);
  }
};

void registerElementwiseRules(mlir::MLIRContext *context);
void registerViewRules(mlir::MLIRContext *context);
void registerIndexRules(mlir::MLIRContext *context);
void registerReductionRules(mlir::MLIRContext *context);
void registerContractionRules(mlir::MLIRContext *context);
void registerAttentionRules(mlir::MLIRContext *context);

/// The demand on `operand` for the same tile, its coordinates by `map` from
/// those of `demand` (map dims) and the module's shape symbols. Guards are
/// kept.
Demand throughMap(const Demand &demand, mlir::AffineMap map, Value operand);

/// The coordinates of a linear index under row-major `extents`.
Exprs delinearize(AffineExpr index, llvm::ArrayRef<AffineExpr> extents);

/// How values are combined; works on scalars and on tiles.
using Combine = llvm::function_ref<llvm::SmallVector<Value>(
    mlir::OpBuilder &, mlir::Location, llvm::ArrayRef<Value>,
    llvm::ArrayRef<Value>)>;

/// Emits a reduction over a linear index in [0, extent) into tiles of shape
/// `outer.tile`. `element` gives the tiles to combine, for a demand that is
/// `outer` with (where its rank is one more) a new last axis, and the linear
/// index as an expression over that axis and a loop counter. `contiguous`: the
/// index moves through memory in unit steps. `neutral` has a value a component,
/// whose type is the component's. `part`: only what falls to this part of the
/// emitter's split.
FailureOr<llvm::SmallVector<Value>> reduceOver(
    Emitter &e, const Demand &outer, AffineExpr extent, bool contiguous,
    llvm::ArrayRef<mlir::TypedAttr> neutral, Combine combine,
    llvm::function_ref<FailureOr<llvm::SmallVector<Value>>(const Demand &,
                                                           AffineExpr)>
        element,
    bool part = false);

/// The combination, and its neutral element, for a kind of reduction.
struct ReductionOf {
  graph::ReduceKind kind;
  bool isUnsigned = false;
  mlir::TypedAttr neutral(mlir::Type type) const;
  Value operator()(mlir::OpBuilder &b, mlir::Location loc, Value x,
                   Value y) const;
};

} // namespace charonia::emit

#endif
