// What each f32 value of a function is, where activations get a small type.
#ifndef CHARONIA_GRAPH_PASSES_PRECISIONKINDS_H
#define CHARONIA_GRAPH_PASSES_PRECISIONKINDS_H

#include "graph/passes/PrecisionNeeds.h"

namespace charonia::graph {

/// What an f32 value of the model is.
enum class PrecisionKind {
  /// Weights, constants, views of them.
  Fixed,
  /// Computed from integers (and constants): positions, masks. Inputs of which
  /// a reader wants the full range, and what leads from them to that reader.
  Index,
  /// A reduction, and what is made of reductions.
  Wide,
  /// An activation: gets the small type.
  Narrow
};

/// Tells the kinds of a block's values, before any changes its type.
class PrecisionKinds {
public:
  PrecisionKinds(mlir::Block &block, mlir::FloatType target);

  /// Fixed where a value is none of the block's f32.
  PrecisionKind of(mlir::Value value) const { return kinds.lookup(value); }
  bool contains(mlir::Value value) const { return kinds.contains(value); }
  /// What the reader takes the value for.
  PrecisionKind of(mlir::OpOperand &use) const {
    return ranges.isActivation(use) ? PrecisionKind::Narrow : of(use.get());
  }
  /// Whether an operator that gives an activation is computed in f32: kernels
  /// do so anyway, and what it reads is not rounded then.
  bool computesInFull(GraphOpInterface op);
  /// Whether numbers of a value may be such that the small type lacks them.
  bool isOutside(mlir::Value value) { return ranges.isOutside(value); }
  /// Says of a value that came later that it is an activation.
  void addActivation(mlir::Value value);
  double largestFinite() const;

private:
  void assign();
  void addMask(mlir::Value value);
  void set(GraphOpInterface op, PrecisionKind kind);
  PrecisionKind kindOf(GraphOpInterface op);
  PrecisionKind ofOperands(GraphOpInterface op, bool ofSmall);
  bool isDistanceOfInputs(GraphOpInterface op);
  bool readsOutside(GraphOpInterface op);
  bool readsInexact(GraphOpInterface op);
  bool readsWide(GraphOpInterface op);
  bool takesInFull(mlir::OpOperand &use,
                   const llvm::DenseSet<mlir::Value> &taken);
  void findKept();

  mlir::Block &block;
  mlir::FloatType target;
  PrecisionNeeds needs;
  Ranges ranges;
  llvm::DenseMap<mlir::Value, PrecisionKind> kinds;
  /// Inputs of which a reader wants the full range, and what is made of them.
  llvm::DenseSet<mlir::Value> masks;
  /// Whether the block is that of steps, or between such: what it finds and
  /// gives lies in memory as f32.
  bool isOfSteps;
  /// What may leave the small type's range, and is read in f32 alone; what
  /// steps find.
  llvm::DenseSet<mlir::Value> kept;
};

} // namespace charonia::graph

#endif
