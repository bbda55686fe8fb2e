// Weights that are made of narrow integers, kept so behind what widens them.
#ifndef CHARONIA_GRAPH_PASSES_NARROWWEIGHTS_H
#define CHARONIA_GRAPH_PASSES_NARROWWEIGHTS_H

#include "graph/analysis/Weights.h"
#include "graph/passes/PrepareFunction.h"

namespace charonia::graph {

/// Packs what a weight is made of instead of the weight: integers of 8 bits or
/// less in panels of columns, those of 4 and 2 bits in words of neighbouring
/// terms, and scales and zero points beside them, once for each block in which
/// they are the same. The cheap operators element by element that make the
/// weight of them are left to its reader, in the shape of the weight.
class NarrowWeights {
public:
  NarrowWeights(PrepareFunction &prepare, WeightsOnly &weightsOnly,
                int64_t panel)
      : prepare(prepare), weightsOnly(weightsOnly), panel(panel) {}

  /// `weight` made of packed integers at `outside`, `columns` being its
  /// dimension of columns; null where it is not made of integers that are
  /// narrower than it is by a good part.
  mlir::Value pack(mlir::Value weight, unsigned columns,
                   mlir::OpBuilder &outside);

private:
  PrepareFunction &prepare;
  WeightsOnly &weightsOnly;
  int64_t panel;
};

} // namespace charonia::graph

#endif
