// What is known of the range of float values.
#ifndef CHARONIA_GRAPH_ANALYSIS_RANGES_H
#define CHARONIA_GRAPH_ANALYSIS_RANGES_H

#include "graph/ir/Dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace charonia::graph {

/// Finds the float values that may lie outside of [-limit, limit]. There are
/// three answers: an activation, which is taken to lie inside, as inputs,
/// results of contractions and what is computed of them alone are; numbers
/// within bounds, which those of constants, weights and small integers are
/// (wide integers are taken to lie inside) and what rules make of them; and
/// numbers that may be any, where an operator on bounded ones has no rule.
/// Remembers its answers; the values must not change meanwhile.
class Ranges {
public:
  explicit Ranges(double limit) : limit(limit) {}

  bool isOutside(mlir::Value value) { return isOutside(rangeOf(value), limit); }
  /// Of what the operator of `use` reads there; with the operator's limit.
  bool isOutside(mlir::OpOperand &use) {
    return isOutside(rangeOf(use), limitOf(use.getOwner()));
  }
  /// What all numbers are known to lie between; nothing for an activation.
  std::optional<RealRange> boundsOf(mlir::Value value) {
    return rangeOf(value);
  }
  /// Whether all numbers are known to be this small; those of an activation are
  /// not.
  bool isBelow(mlir::Value value, double size) {
    MaybeRange range = rangeOf(value);
    return range && range->low > -size && range->high < size;
  }
  /// Gives an operator a limit of its own, for what it reads.
  void setLimit(mlir::Operation *op, double limit) { limits[op] = limit; }
  /// Says of a value that its numbers may be any.
  void setUnbounded(mlir::Value value) { known[value] = RealRange{}; }
  /// Says that a value is an activation, or that one reader takes it for one.
  void setActivation(mlir::Value value) { known[value] = std::nullopt; }
  void setActivation(mlir::OpOperand &use) { activations.insert(&use); }
  /// Whether setActivation was called for this reader.
  bool isActivation(mlir::OpOperand &use) const {
    return activations.contains(&use);
  }

private:
  /// Nothing: an activation.
  using MaybeRange = std::optional<RealRange>;

  static bool isOutside(MaybeRange range, double limit) {
    return range && !(range->low >= -limit && range->high <= limit);
  }

  MaybeRange rangeOf(mlir::Value value);
  MaybeRange rangeOf(mlir::OpOperand &use) {
    return isActivation(use) ? std::nullopt : rangeOf(use.get());
  }
  MaybeRange compute(GraphOpInterface op);
  double limitOf(mlir::Operation *op) const {
    auto it = limits.find(op);
    return it == limits.end() ? limit : it->second;
  }

  double limit;
  llvm::DenseMap<mlir::Operation *, double> limits;
  llvm::DenseMap<mlir::Value, MaybeRange> known;
  llvm::DenseSet<mlir::OpOperand *> activations;
};

} // namespace charonia::graph

#endif
