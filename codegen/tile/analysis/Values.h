// What is known of the integers of a tile program: the facts that the algebra
// of expressions (graph/ir/Algebra.h) wants about an access's dims and symbols.
#ifndef CHARONIA_CODEGEN_TILE_ANALYSIS_VALUES_H
#define CHARONIA_CODEGEN_TILE_ANALYSIS_VALUES_H

#include "graph/ir/Algebra.h"
#include "mlir/IR/Value.h"

namespace charonia::tile {

/// Range of an integer, or of all elements of a tile of integers: of constants,
/// of counters of loops, of the program's index, of sizes, and of arithmetic on
/// them. Chains of more than `most` operators are not followed.
inline constexpr unsigned kUsualDepth = 9;
graph::Interval rangeOf(mlir::Value value, unsigned most = kUsualDepth);

/// What divides it: of a kernel's argument its `tile.divisor`, of a constant
/// itself, of others 1; 0 if it is zero.
int64_t divisorOf(mlir::Value value);

/// Facts of an expression over the axes of a tile of shape `extents` and over
/// `symbols`.
graph::Facts factsOf(llvm::ArrayRef<int64_t> extents, mlir::ValueRange symbols);

} // namespace charonia::tile

#endif
