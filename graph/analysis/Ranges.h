// What is known of the range of float values.
#ifndef CHARONIA_GRAPH_ANALYSIS_RANGES_H
#define CHARONIA_GRAPH_ANALYSIS_RANGES_H

#include "graph/ir/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace charonia::graph {

/// Finds the float values that may lie outside of [-limit, limit]: constants
/// and weights that do, and what is computed with them. Inputs, integers and
/// activations are taken to lie inside, and so is what is computed of them
/// alone. Remembers its answers; the values must not change meanwhile.
class Ranges {
public:
  explicit Ranges(double limit) : limit(limit) {}

  bool isOutside(mlir::Value value);
  /// Says of an input that its numbers may be any.
  void setUnbounded(mlir::Value value) { known[value] = RealRange{}; }

private:
  using MaybeRange = std::optional<RealRange>;

  bool isInside(RealRange range) const {
    return range.low >= -limit && range.high <= limit;
  }
  MaybeRange rangeOf(mlir::Value value);
  MaybeRange compute(GraphOpInterface op);

  double limit;
  /// Nothing: taken to lie inside.
  llvm::DenseMap<mlir::Value, MaybeRange> known;
};

} // namespace charonia::graph

#endif
