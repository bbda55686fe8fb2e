// Simplification of coordinate expressions by what is known of their variables.
//
// Composing views makes chains like ((m mod 49) floordiv 7) * 7 + m mod 7. Here
// they become what they are: sums of products in a fixed order, in which
//   - c * (e floordiv c) + e mod c is e, at any nesting (e mod (k*c) counts as
//   e mod c);
//   - terms that c divides leave e floordiv c and e mod c;
//   - what lies in [0, c) by its bounds leaves e mod c, and vanishes from e
//   floordiv c.
// c may be a symbolic product.
#ifndef CHARONIA_CODEGEN_TILE_ANALYSIS_SIMPLIFYAFFINE_H
#define CHARONIA_CODEGEN_TILE_ANALYSIS_SIMPLIFYAFFINE_H

#include "graph/ir/Shape.h"

namespace charonia::tile {

/// What is known of the variables of an expression. A variable beyond the end
/// of a list is only known to be an integer.
struct Ranges {
  llvm::SmallVector<graph::Interval> dims, symbols;
  /// A symbol is less than this expression (null: nothing known); over symbols.
  llvm::SmallVector<mlir::AffineExpr> symbolLimits;
};

mlir::AffineExpr simplifyWithin(mlir::AffineExpr expr, const Ranges &ranges);
mlir::AffineMap simplifyWithin(mlir::AffineMap map, const Ranges &ranges);

/// Whether 0 <= expr < limit is certain.
bool isWithin(mlir::AffineExpr expr, mlir::AffineExpr limit,
              const Ranges &ranges);

} // namespace charonia::tile

#endif
