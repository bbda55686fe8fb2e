// The K loop that matmul, convolution and attention share.
#ifndef CHARONIA_CODEGEN_EMIT_RULES_DOT_H
#define CHARONIA_CODEGEN_EMIT_RULES_DOT_H

#include "codegen/emit/rules/Rules.h"

namespace charonia::emit {

/// A sum of products over `extents` (row-major; the last moves fastest):
/// result(axes) = sum over k of lhs(axes, k) * rhs(axes, k).
struct DotProblem {
  Exprs extents;
  /// The demand on an operand for terms k; its tile is that of the axes it is
  /// given, and its guards tell where it counts as zero.
  std::function<Demand(const Demand &axes, llvm::ArrayRef<AffineExpr> k)> lhs,
      rhs;
  /// For the first of `extents`, where they are a window that slides over lhs:
  /// where it begins for some axes. Without a start, or null: nothing is known.
  std::function<WindowDim(const Demand &axes, unsigned i)> window;
  /// Element types of the operands in memory. They differ where the operands
  /// are bytes, of which one side has a sign.
  mlir::Type lhsElement, rhsElement;
  /// Of bytes: any two products add up to 16 bits.
  bool pairsFit = false;
  /// What is multiplied lies side by side along the axes, terms lie apart: one
  /// is taken after the other, in a loop for each part of them but the last.
  bool apart = false;
  /// rhs is computed where it is multiplied, and read from no memory as it is.
  bool isComputed = false;
  /// rhs = unscaled * scale, where the scale is the same for each `scaleBlock`
  /// terms (0: for all), counted along the only extent; null: it is no product.
  std::function<Demand(const Demand &axes, llvm::ArrayRef<AffineExpr> k)>
      unscaled, scale;
  int64_t scaleBlock = 0;
};

/// The type of sums of products: integers of 8 and 16 bits are summed in 32.
mlir::Type sumType(TileEmitter &e, const DotProblem &p);

/// Emits the sum for the axes of `demand`. Where each axis moves only one of
/// the operands this is a loop of tile.dot; otherwise products are summed
/// elementwise.
FailureOr<Value> emitDot(TileEmitter &e, const Demand &demand,
                         const DotProblem &problem);

/// Which axis of a rank-2 demand moves only lhs (row) and which only rhs
/// (column); nothing if the demand has no such form.
struct DotAxes {
  int64_t row = -1, column = -1;
};
std::optional<DotAxes> classifyAxes(TileEmitter &e, const Demand &lhs,
                                    const Demand &rhs, unsigned rank);

} // namespace charonia::emit

#endif
