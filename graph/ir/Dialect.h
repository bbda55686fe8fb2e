// The graph dialect: everything that passes, importers and codegen include.
#ifndef CHARONIA_GRAPH_IR_DIALECT_H
#define CHARONIA_GRAPH_IR_DIALECT_H

#include "graph/ir/Constraints.h"
#include "graph/ir/Scalar.h"
#include "graph/ir/Shape.h"
#include "graph/ir/Symbolic.h"
#include "graph/ir/WeightStore.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace charonia::graph {

/// What kind of computation an operator is. Fusion reads nothing else.
enum class OpRole {
  /// A constant, a weight, shape values: no computation.
  Source,
  /// One element of each operand (after broadcasting) gives one of the result.
  Pointwise,
  /// A pure map of coordinates.
  View,
  /// Chooses elements by coordinates or index tensors: gather, concat, pad,
  /// resize. Computed on demand, element by element.
  Indexing,
  /// Combines all elements along dimensions that the result lacks.
  Reduction,
  /// Needs whole rows and gives whole rows back: softmax, normalization.
  RowNormalization,
  /// A reduction over a sliding window.
  Window,
  /// Runs on the dot unit: matmul, convolution, attention.
  Contraction,
  /// Takes elements one after another: scan, sort, scatter. Written into memory
  /// by a program of its own, of which nothing is computed on demand.
  Ordered
};

/// The part that a dimension of a result plays in a tile schedule.
enum class DimKind {
  /// Elements along it are independent.
  Parallel,
  /// Neighbours along it read overlapping windows of an operand.
  Window,
  /// Each index is a problem of its own (batch of a matmul, heads, groups).
  Batch,
  /// Rows of a matrix product.
  Row,
  /// Columns of a matrix product.
  Column,
  /// The operator needs all of it at once (the axis of a softmax).
  Whole
};

/// Where a contraction's columns are: dimension `operandDim` of operand
/// `operand` and dimension `resultDim` of the result. `groups` equal parts of
/// them, one behind the other, have terms of their own.
struct Columns {
  unsigned operand, operandDim, resultDim;
  int64_t groups = 1;
};

/// Zeros that an operator reads around operand `operand`: lows[d] before and
/// highs[d] after dimension d. With `attributes` changed it reads none, and
/// gives the same if the operand is extended by them.
struct ZeroPadding {
  unsigned operand;
  llvm::SmallVector<int64_t> lows, highs;
  llvm::SmallVector<mlir::NamedAttribute> attributes;
};

/// Elements of one value around an operand: lows[d] before and highs[d] after
/// dimension d, none of them negative.
struct Padding {
  llvm::SmallVector<int64_t> lows, highs;
  double value;
};

/// A dimension along which a window slides: `extent` elements of operand 0,
/// `stride` from one window to the next.
struct WindowSide {
  unsigned dim;
  int64_t extent, stride;
};

/// An operator under permuted dimensions: a copy of it with `attributes`
/// changed and operand i transposed by operands[i] (empty: as it is; longer
/// than the operand's rank: after leading dimensions of one element are added)
/// gives a result of which the original result is the transpose by `result`.
/// Permutations read as that of `transpose`: dimension i is dimension
/// permutation[i] of what is transposed.
struct Permuted {
  llvm::SmallVector<llvm::SmallVector<int64_t>> operands;
  llvm::SmallVector<int64_t> result;
  llvm::SmallVector<mlir::NamedAttribute> attributes;
};

/// What an operator makes of one operand x, up to rounding: factor * x, times
/// operand `scale` or over operand `divisor`, plus shiftFactor * operand
/// `shift`.
struct Linear {
  double factor = 1;
  std::optional<unsigned> scale, divisor, shift;
  double shiftFactor = 1;
};

enum class ScatterReduction : uint32_t;
/// Elements of operand `updates` that are put among those of operand 0, or
/// combined with them.
struct Placed {
  unsigned updates;
  ScatterReduction reduction;
};

/// The device that ordered operators are written in steps for.
struct Staging {
  /// Elements of a row that a program instance sorts in shared memory.
  static constexpr int64_t sortedAtOnce = 4096;
  /// Columns that lie side by side and are scanned by one program instance.
  static constexpr int64_t columns = 256;
  /// The module's shape symbols to optimize for.
  llvm::ArrayRef<int64_t> sizes;
  /// Program instances that occupy all of the device.
  int64_t instances;
};

class GraphOpInterface;
/// getPermuted of pointwise operators; nothing for others.
std::optional<Permuted> permutePointwise(GraphOpInterface op, unsigned operand,
                                         llvm::ArrayRef<int64_t> permutation);
/// Bounds of the numbers of a type of small integers as floats; `floats` if
/// those of `value` are floats; nothing for wide integers.
std::optional<RealRange> rangeOfNumbers(mlir::Value value, RealRange floats);
/// getRange of views and of operators that choose among their operands'
/// elements; nothing for others.
std::optional<RealRange> chosenRange(GraphOpInterface op,
                                     llvm::ArrayRef<RealRange> operands);
/// Gives the content of an operand at coordinates, or null.
using ContentDemand = llvm::function_ref<mlir::AffineExpr(
    unsigned operand, llvm::ArrayRef<mlir::AffineExpr>)>;
/// Gives the conditions of an operand of i1 at coordinates, if known.
using ConditionDemand = llvm::function_ref<std::optional<Exprs>(
    unsigned operand, llvm::ArrayRef<mlir::AffineExpr>)>;
/// d0, d1, ... for a shape.
Exprs coordinatesOf(mlir::Value value);
/// The coordinates of an operand that a view or a pointwise operator reads.
Exprs readAt(GraphOpInterface op, unsigned operand,
             llvm::ArrayRef<mlir::AffineExpr> coordinates);
/// The content of a pointwise operator or a view; null for others.
mlir::AffineExpr composeContent(GraphOpInterface op,
                                llvm::ArrayRef<mlir::AffineExpr> coordinates,
                                llvm::ArrayRef<mlir::AffineExpr> extents,
                                ContentDemand demand);

/// Unit attributes of a kernel: it may run beside the one before it and those
/// that this one may run beside, or the one behind it beside it, since neither
/// needs anything of the other.
inline constexpr llvm::StringLiteral kBesidePreviousAttr =
    "graph.beside_previous";
inline constexpr llvm::StringLiteral kBesideNextAttr = "graph.beside_next";

/// Of operators whose inferred type may differ from the actual one in
/// expressions that may be equal.
template <typename Op>
class InferredSymbolicType
    : public mlir::OpTrait::TraitBase<Op, InferredSymbolicType> {};

} // namespace charonia::graph

#include "graph/ir/GraphDialect.h.inc"
#include "graph/ir/GraphEnums.h.inc"
#include "graph/ir/GraphInterfaces.h.inc"
#define GET_OP_CLASSES
#include "graph/ir/GraphOps.h.inc"

#endif
