// What the weight store has for an operator.
#ifndef CHARONIA_GRAPH_IR_STOREDWEIGHT_H
#define CHARONIA_GRAPH_IR_STOREDWEIGHT_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// The weight that `op` stands for; null where the store has none of its name.
inline const Weight *storedWeight(WeightOp op) {
  return op->getContext()
      ->getLoadedDialect<GraphDialect>()
      ->getWeights()
      .lookup(op.getName());
}

} // namespace charonia::graph

#endif
