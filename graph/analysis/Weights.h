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

/// Whether values can be computed when the model is built: their type is
/// static, they depend on weights and constants alone, and computing them takes
/// no more than what is affordable. Remembers its answers.
class WeightsOnly {
public:
  /// What computing a value may take, in floating-point operations and bytes of
  /// results on the way together: so much for each byte of the weights that it
  /// depends on, or so much of any model.
  static constexpr int64_t workPerByte = 4096, smallWork = int64_t(1) << 29;

  bool operator()(mlir::Value value);
  /// The bytes of the weights that such a value depends on.
  int64_t sourceBytes(mlir::Value value);

private:
  bool isAffordable(mlir::Value value);

  llvm::DenseMap<mlir::Value, bool> known;
  /// Of values that can be computed: what that takes at most.
  llvm::DenseMap<mlir::Value, int64_t> work;
};

} // namespace charonia::graph

#endif
