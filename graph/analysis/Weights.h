// Questions about weights and about values that depend on them alone.
#ifndef CHARONIA_GRAPH_ANALYSIS_WEIGHTS_H
#define CHARONIA_GRAPH_ANALYSIS_WEIGHTS_H

#include "graph/ir/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace charonia::graph {

/// Whether `op` stands for a tensor of the weight store.
bool isWeight(mlir::Operation *op);

/// A `graph.weight` for new bytes, under an unused name that starts with
/// `stem`.
mlir::Value addWeight(mlir::OpBuilder &builder, mlir::Location location,
                      llvm::StringRef stem, mlir::RankedTensorType type,
                      std::vector<char> bytes);

/// Whether values can be computed when the model is built: their type is static
/// and they depend on weights and constants alone. Remembers its answers.
class WeightsOnly {
public:
  bool operator()(mlir::Value value);
  /// The bytes of the weights that such a value depends on.
  int64_t sourceBytes(mlir::Value value);

private:
  llvm::DenseMap<mlir::Value, bool> known;
};

} // namespace charonia::graph

#endif
