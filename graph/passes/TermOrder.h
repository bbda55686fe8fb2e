// The order in which a product's terms lie in memory.
#ifndef CHARONIA_GRAPH_PASSES_TERMORDER_H
#define CHARONIA_GRAPH_PASSES_TERMORDER_H

#include "graph/analysis/Weights.h"
#include "graph/ir/Dialect.h"
#include "mlir/IR/Builders.h"

namespace charonia::graph {

/// Dimension `dim` of a value as parts of `extents`, which lie in memory one
/// in another as `order` has it: part order[0] outermost. An index of the
/// dimension counts its parts in the order of `extents`.
struct TermOrder {
  llvm::SmallVector<int64_t> extents, order;
  bool operator==(const TermOrder &other) const {
    return extents == other.extents && order == other.order;
  }
};

/// A value with one dimension in the order of memory: a view of what is stored,
/// perhaps with operators element by element on the way.
class OrderedTerms {
public:
  /// Nothing where memory has the order of `dim`, or it can't be told.
  static std::optional<OrderedTerms> find(mlir::Value value, unsigned dim,
                                          WeightsOnly &weightsOnly);
  const TermOrder &getOrder() const { return order; }
  /// What is between the value and memory, up to the last view that moves
  /// elements: these go if nothing else reads them.
  llvm::ArrayRef<mlir::Operation *> getMoving() const {
    return llvm::ArrayRef(way).take_front(moving);
  }
  /// The value with its dimension in that order, behind `value`; null where no
  /// views make it of what is stored.
  mlir::Value build() const;

private:
  mlir::Value read(mlir::OpBuilder &builder, mlir::Value from,
                   mlir::AffineMap map) const;

  mlir::Value value;
  TermOrder order;
  /// What is between the value and memory.
  llvm::SmallVector<mlir::Operation *> way;
  size_t moving = 0;
  /// The value's parts, and the map from their coordinates to its own.
  Exprs parts;
  mlir::AffineMap whole;
};

/// A value of weights with dimension `dim`, which is made of all parts, in that
/// order, stored.
mlir::Value storedInOrder(mlir::OpBuilder &builder, mlir::Value value,
                          unsigned dim, const TermOrder &order);

} // namespace charonia::graph

#endif
