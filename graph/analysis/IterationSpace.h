// Coordinates of a kernel's values as functions of one iteration space.
//
// All results of a kernel are one-to-one with one space: the result of its
// contraction or window, the input of its row reductions, or its first result.
// Example: a matmul [m, n], a reshape to [1, m, n] and a residual add there
// share the space [m, n]; the coordinates of the add are (0, m, n).
//
// Maps here go from the space to a value: the opposite direction of
// GraphOpInterface::getOperandMap.
#ifndef CHARONIA_GRAPH_ANALYSIS_ITERATIONSPACE_H
#define CHARONIA_GRAPH_ANALYSIS_ITERATIONSPACE_H

#include "graph/analysis/ViewMaps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallBitVector.h"

namespace charonia::graph {

/// Whether each program instance of a kernel may compute an anchor once more,
/// in front of what it stores: a reduction, or the columns of a product of a
/// single row at the sizes to optimize for. It has no place in the space then.
bool canBeComputedAgain(GraphOpInterface op);

/// Whether those of a kernel do.
bool hasSumsAgain(KernelOp kernel);

class IterationSpace {
public:
  enum class Extent {
    /// One-to-one with the space.
    Full,
    /// One-to-one with the dimensions that are not reduced, and reading no
    /// other.
    Row,
    /// One-to-one with cells of the space, and reading one as a whole: a kernel
    /// that has such a value has cells for its tiles.
    Cell,
    /// One-to-one with some elements of each cell, and reading others of it.
    Part
  };
  struct Place {
    /// Space coordinates (dims) and shape symbols to coordinates of the value.
    mlir::AffineMap map;
    Extent extent;
  };
  /// Says which views are looked through, on the way from an operand to a
  /// placed value, without having a place themselves.
  using IsTransparent = llvm::function_ref<bool(mlir::Operation *)>;

  /// The space of an operator that a kernel grows from: its result or, for
  /// reductions and row normalizations, operand 0. Places result 0.
  static IterationSpace of(GraphOpInterface root);

  /// The place of result 0 of `op`, some of whose operands are placed, if every
  /// one of those is read exactly where it is placed; nothing otherwise.
  /// `mayRoll`: see composeForward.
  std::optional<Place> fit(GraphOpInterface op, IsTransparent isTransparent,
                           bool mayRoll = true) const;

  /// Where `operand` is read by its operator, which is placed: backward, one
  /// step; nothing where that is not one-to-one.
  std::optional<Place> placeOfOperand(mlir::OpOperand &operand) const;

  void add(mlir::Value value, Place place) { places[value] = place; }
  bool contains(mlir::Value value) const { return places.contains(value); }
  std::optional<Place> lookup(mlir::Value value) const;

  /// Whether a coordinate of the place takes part of a reduced dimension and
  /// part of another one: along it, rows begin and end anywhere.
  bool mixesRows(const Place &place) const;
  /// Whether a value of `extents` at `place` has the bytes of one of the
  /// space's shape.
  bool isReshape(const Place &place,
                 llvm::ArrayRef<mlir::AffineExpr> extents) const;

  /// The map from coordinates of one placed value to those of another, where
  /// the first determines the second; null otherwise.
  mlir::AffineMap mapBetween(mlir::Value from, mlir::Value to) const;

  llvm::ArrayRef<mlir::AffineExpr> getShape() const { return shape; }
  /// For each dimension, whether the kernel's reductions need all of it at
  /// once; none is set where the kernel has no row reduction.
  const llvm::SmallBitVector &getReduced() const { return reduced; }

private:
  struct Path;
  std::optional<Path> pathTo(mlir::OpOperand &operand,
                             IsTransparent isTransparent) const;
  /// From space coordinates to those of an operand that is computed in full;
  /// null where it is not, or follows from nothing here.
  mlir::AffineMap mapToFull(mlir::OpOperand &use,
                            IsTransparent isTransparent) const;
  std::optional<Place> fitReduction(GraphOpInterface op,
                                    IsTransparent isTransparent) const;
  std::optional<Place> fitCells(GraphOpInterface op,
                                IsTransparent isTransparent) const;

  mlir::Operation *root = nullptr;
  Exprs shape;
  llvm::SmallBitVector reduced;
  llvm::DenseMap<mlir::Value, Place> places;
};

/// The space of a kernel of these operators, those of its body in order, with a
/// place for each of its results; nothing where a result has none.
std::optional<IterationSpace>
getIterationSpace(llvm::ArrayRef<mlir::Operation *> body,
                  mlir::ValueRange results);
std::optional<IterationSpace> getIterationSpace(KernelOp kernel);

/// For each result of a kernel, the map from coordinates of `first`, such as
/// its first result. The first result is full where any is, so that maps to row
/// values leave dimensions out. Nothing for kernels that form-kernels does not
/// make: rows may not be without elements where others of a kernel's results
/// are full.
std::optional<llvm::SmallVector<mlir::AffineMap>>
getResultMaps(const IterationSpace &space, mlir::Value first,
              mlir::ValueRange results);
std::optional<llvm::SmallVector<mlir::AffineMap>>
getResultMaps(KernelOp kernel);

} // namespace charonia::graph

#endif
