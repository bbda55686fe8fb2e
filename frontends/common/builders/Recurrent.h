// Recurrent layers: written out step by step, or repeated where their number is
// open or large.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_RECURRENT_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_RECURRENT_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

enum class RecurrentCell {
  Rnn,  ///< One gate.
  Gru,  ///< Update, reset, hidden.
  Lstm, ///< Input, output, forget, cell.
};

/// An activation function, in lower case, and its parameters, for those that
/// have such.
struct RecurrentActivation {
  std::string name;
  double alpha = 0, beta = 0;
};

/// One direction of a layer. The gates of weights and biases follow each other
/// in the order that RecurrentLayer::order says. The layer's shapes are checked
/// by its importer, but for those of `hidden` and `cell`.
struct RecurrentDirection {
  bool isBackward = false;
  mlir::Value input, recurrent;         ///< [gates * hidden, features], ...
  mlir::Value inputBias, recurrentBias; ///< [gates * hidden]; may be null.
  /// The state to start from, [batch, hidden] ([batch, projected] of `hidden`
  /// with a projection); zeros where null.
  mlir::Value hidden, cell;
  /// Of LSTM, [projected, hidden]: what is put out and goes into the next step
  /// is the state times this; `recurrent` has so many columns. May be null.
  mlir::Value projection;
  /// [3 * hidden] of input, output and forget gate; may be null.
  mlir::Value peepholes;
  /// Of gates, then of what is stored.
  llvm::SmallVector<RecurrentActivation> activations;
};

struct RecurrentLayer {
  RecurrentCell cell = RecurrentCell::Rnn;
  /// Where each gate of the cell lies, in the order of RecurrentCell.
  llvm::SmallVector<int64_t> order;
  int64_t hidden = 0;
  mlir::AffineExpr steps, batch;
  mlir::Value input;   ///< [steps, batch, features]
  mlir::Value lengths; ///< [batch], may be null.
  /// Of GRU: the reset gate is applied to the product; it lies before the
  /// hidden gate where it is not.
  bool resetsLate = false;
  /// Of LSTM: what is not taken in is kept.
  bool joinsForget = false;
  /// Operands of gates are cut to this magnitude; 0 for none.
  double clip = 0;
};

struct RecurrentStates {
  mlir::Value outputs;      ///< [steps, batch, hidden or projected]
  mlir::Value hidden, cell; ///< The last.
};

/// How many gates a cell has, and how many activations.
int64_t gatesOf(RecurrentCell cell);
int64_t activationsOf(RecurrentCell cell);
/// Activations where none are given.
llvm::SmallVector<RecurrentActivation> defaultActivations(RecurrentCell cell);
/// How many parameters an activation has; none for names that are no such.
std::optional<unsigned> recurrentParameters(llvm::StringRef name);
/// Fails for a length that no layer has, or where the steps of so many
/// directions are too many to be written out for a whole model.
llvm::LogicalResult checkSteps(mlir::AffineExpr steps, int64_t directions,
                               Emitter &e);
/// The states of a direction; null after a failure.
RecurrentStates buildRecurrent(const RecurrentLayer &layer,
                               const RecurrentDirection &direction, Emitter &e);

} // namespace charonia::frontend

#endif
