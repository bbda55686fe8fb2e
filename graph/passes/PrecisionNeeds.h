// What a small float type must not round, as values and their readers say.
#ifndef CHARONIA_GRAPH_PASSES_PRECISIONNEEDS_H
#define CHARONIA_GRAPH_PASSES_PRECISIONNEEDS_H

#include "graph/analysis/Ranges.h"
#include "graph/analysis/Weights.h"

namespace charonia::graph {

/// Whether elements are f32, which a small type may replace.
inline bool isFull(mlir::Value value) {
  return mlir::getElementTypeOrSelf(value).isF32();
}

/// Finds, before any value gets the small type `target`, which of a function's
/// values lose by it what a reader needs: numbers that it lacks, the distance
/// of two places, what keeps a divisor from being 0.
class PrecisionNeeds {
public:
  PrecisionNeeds(mlir::Block &block, mlir::FloatType target);

  /// Of the block's values; with limits for operators that feel more than
  /// others.
  const Ranges &getRanges() const { return ranges; }
  /// Whether a value depends on weights and constants alone.
  bool isFixed(mlir::Value value) { return weightsOnly(value); }

  /// Whether a reader, through views and pointwise operators, wants the full
  /// range of a value: of masks, whose lowest numbers a small type lacks.
  bool wantsFullRange(mlir::Value value) const {
    return fullRange.contains(value);
  }
  bool wantsFullRange(mlir::OpOperand &use) const;
  /// Whether the operator is on the way to one that wants the full range.
  bool leadsToFullRange(GraphOpInterface op) const;
  /// Whether an operator tells places apart.
  bool isDistance(mlir::Operation *op) const { return distances.contains(op); }
  /// Whether an operator adds parts of one product, or a value is such a part.
  bool isPartialSum(mlir::Operation *op) const {
    return partialSums.contains(op);
  }
  bool isPart(mlir::Value value) const { return parts.contains(value); }
  /// Whether a tiny number keeps the value from being 0.
  bool isGuard(mlir::Value value) const { return guards.contains(value); }
  /// Whether a value, which may lose something, leads to such values alone.
  bool leadsToGuard(mlir::Value value) const { return guarded.contains(value); }
  /// Whether the result may be as small as a constant, and matters where it is:
  /// a sum with 1 or with an activation has no place for its digits.
  bool makesTiny(GraphOpInterface op);
  /// Whether an operator may give numbers far smaller or larger than the
  /// activations that it reads, as a product, a quotient and an exponential do,
  /// and a sum does not.
  bool changesScale(GraphOpInterface op);

  /// Whether an operator hands on what it reads, element by element.
  static bool isOnTheWay(GraphOpInterface op) {
    OpRole role = op.getRole();
    return role == OpRole::View || role == OpRole::Pointwise;
  }

private:
  static void findAbove(mlir::Block &block, llvm::DenseSet<mlir::Value> &found,
                        llvm::function_ref<bool(mlir::OpOperand &)> leads);
  void findFullRange(mlir::Block &block);
  void findDistances(mlir::Block &block);
  bool isMadeOf(GraphOpInterface op, const llvm::DenseSet<mlir::Value> &places);
  mlir::Operation *
  movedOf(GraphOpInterface op,
          const llvm::DenseMap<mlir::Value, mlir::Operation *> &products);
  void findPartialSums(mlir::Block &block);
  void findGuards(mlir::Block &block);
  std::optional<RealRange> resultAtZero(GraphOpInterface op);
  void findWhatLeadsToGuards(mlir::Block &block);
  bool isTiny(RealRange range) const;
  bool isTinyConstant(mlir::Value value);
  RealRange rangeAtZero(mlir::Value value);
  double smallestNormal() const;

  mlir::FloatType target;
  WeightsOnly weightsOnly;
  Ranges ranges;
  llvm::DenseSet<mlir::Value> fullRange;
  /// Operators of which places are told apart.
  llvm::DenseSet<mlir::Operation *> distances;
  /// Sums of parts of one product, and what moves parts of it to these.
  llvm::DenseSet<mlir::Operation *> partialSums;
  llvm::DenseSet<mlir::Value> parts;
  /// What tiny numbers keep from being 0, and its numbers where activations are
  /// 0; values that lead to these alone.
  llvm::DenseMap<mlir::Value, RealRange> guards;
  llvm::DenseSet<mlir::Value> guarded;
  /// Values that only sums read, and differences.
  llvm::DenseSet<mlir::Value> summed;
};

} // namespace charonia::graph

#endif
