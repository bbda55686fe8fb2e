// What the emission rules share.
#ifndef CHARONIA_CODEGEN_EMIT_RULES_RULES_H
#define CHARONIA_CODEGEN_EMIT_RULES_RULES_H

#include "codegen/emit/TileEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace charonia::emit {

using mlir::LogicalResult;

/// An EmitOpInterface model that calls a function.
template <typename Op,
          FailureOr<Value> (*function)(Op, TileEmitter &, const Demand &)>
struct Rule : EmitOpInterface::ExternalModel<Rule<Op, function>, Op> {
  FailureOr<Value> emitTile(mlir::Operation *op, TileEmitter &emitter,
                            const Demand &demand) const {
    return function(llvm::cast<Op>(op), emitter, demand);
  }
};

/// A rule, and the dimensions that its operator passes on.
template <typename Op,
          FailureOr<Value> (*function)(Op, TileEmitter &, const Demand &),
          unsigned (*passed)(Op, unsigned)>
struct PassingRule
    : EmitOpInterface::ExternalModel<PassingRule<Op, function, passed>, Op> {
  FailureOr<Value> emitTile(mlir::Operation *op, TileEmitter &emitter,
                            const Demand &demand) const {
    return function(llvm::cast<Op>(op), emitter, demand);
  }
  unsigned getPassedDims(mlir::Operation *op, unsigned operand) const {
    return passed(llvm::cast<Op>(op), operand);
  }
};

/// A model of an operator of role Ordered, which writes its result itself: no
/// tile of it is demanded.
template <typename Op,
          LogicalResult (*program)(Op, TileEmitter &, const Demand &, Value)>
struct OrderedRule
    : EmitOpInterface::ExternalModel<OrderedRule<Op, program>, Op> {
  FailureOr<Value> emitTile(mlir::Operation *, TileEmitter &emitter,
                            const Demand &demand) const {
    emitter.error(demand, "is not computed tile by tile");
    return mlir::failure();
  }
  LogicalResult emitOrdered(mlir::Operation *op, TileEmitter &emitter,
                            const Demand &demand, Value buffer) const {
    return program(llvm::cast<Op>(op), emitter, demand, buffer);
  }
};

void registerElementwiseRules(mlir::MLIRContext *context);
void registerViewRules(mlir::MLIRContext *context);
void registerPadRule(mlir::MLIRContext *context);
void registerIndexRules(mlir::MLIRContext *context);
void registerResizeRule(mlir::MLIRContext *context);
void registerOrderedRules(mlir::MLIRContext *context);
void registerScatterRules(mlir::MLIRContext *context);
void registerReductionRules(mlir::MLIRContext *context);
void registerPoolRule(mlir::MLIRContext *context);
void registerRowPartsRules(mlir::MLIRContext *context);
void registerCellRules(mlir::MLIRContext *context);
void registerNormalizationRules(mlir::MLIRContext *context);
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

/// A tile like `like` of one number, of a size.
Value indexConstant(TileEmitter &e, int64_t value, Value like);
Value sizeTile(TileEmitter &e, AffineExpr size, Value like);
/// A tile of an index operand as positions in a dimension of `extent`: negative
/// ones count from its end. What lies outside stays outside.
Value positions(TileEmitter &e, Value indices, bool isUnsigned,
                AffineExpr extent);
/// A symbol for the elements of an index operand; negative ones count from the
/// end of `extent`.
FailureOr<AffineExpr> indexSymbol(TileEmitter &e, Demand indices,
                                  AffineExpr extent);

/// Product of the extents of `axes`.
AffineExpr extentOf(TileEmitter &e, llvm::ArrayRef<AffineExpr> shape,
                    llvm::ArrayRef<int64_t> axes);
/// Whether one of `axes` is the innermost dimension of more than one element.
bool endsWithLast(llvm::ArrayRef<int64_t> axes,
                  llvm::ArrayRef<AffineExpr> shape);
bool isUnsignedElement(mlir::Type tensor);

/// Whether the kernel has a product, which looks for loads.
bool hasContraction(TileEmitter &e);
/// Branches on parts around each other, each of which gives what is in it
/// twice.
constexpr unsigned mostSides = 3;

/// Terms that are combined one after the other on a CPU. The error of a sum
/// grows with the length of such a chain, so longer ones are sums of partial
/// sums.
constexpr int64_t longestChain = 512;
/// A loop of `count` steps that combines something with the values it carries,
/// in blocks of about `most` steps, each of which starts from `neutral`; 0: no
/// blocks. A known count that is no multiple of a block ends with a shorter
/// one; others have no blocks.
FailureOr<llvm::SmallVector<Value>>
loopInBlocks(TileEmitter &e, AffineExpr count, int64_t most,
             llvm::ArrayRef<Value> initial, llvm::ArrayRef<Value> neutral,
             Combine combine, TileEmitter::LoopBody body);

/// GPU: elements along a row that an ordered operator takes at a time, beside
/// the rows or columns of the demand's tile.
int64_t orderedBlock(const Demand &demand);

struct Running;

/// Emits a reduction over a linear index in [0, extent) into tiles of shape
/// `outer.tile`. `element` gives the tiles to combine, for a demand that is
/// `outer` with (where its rank is one more) a new last axis, and the linear
/// index as an expression over that axis and a loop counter. `contiguous`: the
/// index moves through memory in unit steps. `neutral` has a value a component,
/// whose type is the component's. `part`: only what falls to this part of the
/// emitter's split. `running`: terms are no components and are added by it.
/// `longest`: of a step of several terms, where that is known to be a run; 0:
/// any.
FailureOr<llvm::SmallVector<Value>> reduceOver(
    TileEmitter &e, const Demand &outer, AffineExpr extent, bool contiguous,
    llvm::ArrayRef<mlir::TypedAttr> neutral, Combine combine,
    llvm::function_ref<FailureOr<llvm::SmallVector<Value>>(const Demand &,
                                                           AffineExpr)>
        element,
    bool part = false, const Running *running = nullptr, int64_t longest = 0);

/// The sum of `extent` terms of a type, neighbours in memory: see reduceOver.
FailureOr<Value>
sumOver(TileEmitter &e, const Demand &outer, AffineExpr extent, mlir::Type type,
        llvm::function_ref<FailureOr<Value>(const Demand &, AffineExpr)> term);

/// Tiles of one axis more than a demand, combined along it.
class AlongLast {
public:
  /// `isPart`: of some terms of the reduction, not of all.
  AlongLast(TileEmitter &e, const Demand &outer, bool isPart)
      : isPart(isPart), e(e), outer(outer) {}
  const bool isPart;
  /// The reduction of floats.
  Value reduce(graph::ReduceKind kind, Value tile) const;
  /// A tile of the demand's shape, repeated along the axis of `like`.
  Value spread(Value tile, Value like) const;

private:
  TileEmitter &e;
  const Demand &outer;
};

/// How terms are added to components that are not of their kind: a value to a
/// maximum and a sum below it. `combine` is of components.
struct Running {
  /// The components with one term more where `inside` (a tile of i1; null:
  /// everywhere), elsewhere as they were.
  llvm::function_ref<llvm::SmallVector<Value>(llvm::ArrayRef<Value> components,
                                              llvm::ArrayRef<Value> terms,
                                              Value inside)>
      add;
  /// What components are together that lie side by side along the last axis of
  /// their tiles; null: combined one with the other. A combination of few
  /// operations for each of them, and plain reductions, is less work.
  llvm::function_ref<llvm::SmallVector<Value>(llvm::ArrayRef<Value> components,
                                              const AlongLast &along)>
      join = nullptr;
};

/// A dimension of a window.
struct WindowDim {
  AffineExpr extent;
  /// Where the window begins in a dimension of `size` elements, of which it
  /// takes neighbours; null where that does not matter: what lies outside
  /// counts.
  AffineExpr start, size;
};

/// On a CPU: how many of a window's leading dimensions are loops, so that
/// addresses and checks advance by constants along them. The others are few
/// enough to be written out, or one.
unsigned outerLoops(TileEmitter &e, llvm::ArrayRef<AffineExpr> extents);

/// Loops over `dims` around what `row` gives for a place in each of them: its
/// number, and the same as an expression that is known to lead inside where it
/// is added to the start. Places of which all lie outside are left out.
struct WindowPlace {
  AffineExpr number, inside;
};
FailureOr<llvm::SmallVector<Value>>
walkWindow(TileEmitter &e, llvm::ArrayRef<WindowDim> dims,
           llvm::ArrayRef<Value> neutral, Combine combine,
           llvm::function_ref<
               FailureOr<llvm::SmallVector<Value>>(llvm::ArrayRef<WindowPlace>)>
               row);

/// On a CPU tiles of elements, or windows, that lie inside as a whole look at
/// no element's place. `starts`, of each dimension: where an element is read
/// first, and the places where that may be; a null coordinate where it cannot
/// leave, or that is not asked. `body` gives a tile of type `type`; its
/// argument is, of each dimension, the coordinate of `starts` where that is
/// known to be inside, or null.
FailureOr<Value> insideOrNot(
    TileEmitter &e, llvm::ArrayRef<int64_t> tile, mlir::Type type,
    llvm::ArrayRef<Guard> starts,
    llvm::function_ref<FailureOr<Value>(llvm::ArrayRef<AffineExpr>)> body);

/// Tiles of one axis more than `outer`, combined along it.
llvm::SmallVector<Value>
combineAlongLast(TileEmitter &e, const Demand &outer, mlir::ValueRange tiles,
                 llvm::ArrayRef<mlir::TypedAttr> neutral, Combine combine);

/// A tile without `axis`, along which it is reduced.
Value reduceAxis(TileEmitter &e, Value tile, unsigned axis,
                 graph::ReduceKind kind);

/// The sums of so many neighbours along an axis, which are its cells: of a tile
/// [.., N, ..] one [.., N / cell, ..].
Value sumEachCell(TileEmitter &e, Value tile, unsigned axis, int64_t cell);

/// value - mean. Terms that are added up may have one more axis, at the end,
/// along which all have the same mean.
Value distanceFrom(TileEmitter &e, Value mean, Value value);

/// Tiles of a demand's shape, of its rows: their means (null where nobody has
/// `sums`) and one by their deviations.
struct RowStatistics {
  Value mean, inverse;
};

/// The statistics of the rows of `input` where a demand's are, from `squares`
/// and `sums` of parts of them, as of a normalized_matmul.
FailureOr<RowStatistics> emitStatistics(TileEmitter &e, const Demand &demand,
                                        Value input, Value squares, Value sums,
                                        double epsilon);

/// Whether reduceOver takes the terms in more than one step, so that each
/// reduction over a row reads it from memory.
bool hasSteps(TileEmitter &e, const Demand &outer, AffineExpr extent,
              bool contiguous);

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
