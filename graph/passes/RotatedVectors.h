// Vectors among the columns of a product whose elements meet, as rotary
// embeddings rotate them and normalizations of heads normalize them: found
// through whatever views lead to them.
#ifndef CHARONIA_GRAPH_PASSES_ROTATEDVECTORS_H
#define CHARONIA_GRAPH_PASSES_ROTATEDVECTORS_H

#include "graph/analysis/Weights.h"
#include "graph/ir/Dialect.h"
#include "llvm/ADT/SetVector.h"

namespace charonia::graph {

/// Where the elements of a value [.., count, width] are among columns: element
/// e of vector v is column first + v * stride + e.
struct Vectors {
  int64_t first, stride, count, width;
  bool operator==(const Vectors &) const = default;
};

/// concat([-] x[.., h:], [-] x[.., :h]): the halves of vectors swapped.
struct Rotation {
  /// A value that is computed of the vectors; null: they are the columns.
  mlir::Value input;
  bool negatesFirst, negatesSecond;
  bool negates() const { return negatesFirst || negatesSecond; }
};

/// What is computed of some vectors, each by itself, that rotates them or
/// normalizes them.
struct Rotated {
  Vectors vectors;
  /// In order: pointwise operators, normalizations, and concatenations that are
  /// rotations.
  llvm::SetVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, Rotation> rotations;
  /// Views of the columns that are the vectors.
  llvm::SmallPtrSet<mlir::Value, 4> columns;
  /// What others read.
  mlir::Value result;
  /// result [.., count, width] and columns behind each of the vectors side by
  /// side, in `stride` columns; null: nobody wants that instead.
  mlir::Value whole;

  bool isInside(mlir::Value value) const {
    return columns.contains(value) || ops.contains(value.getDefiningOp());
  }
};

/// What rotates or normalizes vectors of one width among `columns`, the last
/// dimension of what a product gives. Other readers of them read other columns.
llvm::SmallVector<Rotated> findRotated(mlir::Value columns);

/// Whether two compute the same of their vectors, and read the same beside
/// them, or weights of their own for a vector's elements.
bool areAlike(const Rotated &a, const Rotated &b, WeightsOnly &weightsOnly);

} // namespace charonia::graph

#endif
