// The operands of a node as importers read them.
#ifndef CHARONIA_FRONTENDS_COMMON_OPERANDS_H
#define CHARONIA_FRONTENDS_COMMON_OPERANDS_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// Operands by position, and checked readings of what has to be known of them:
/// each fails the node with a message.
class Operands {
public:
  Operands(Emitter &emitter, Values inputs)
      : emitter(emitter), inputs(std::move(inputs)) {}
  virtual ~Operands() = default;

  /// An absent optional operand is null.
  unsigned numInputs() const { return inputs.size(); }
  bool has(unsigned i) const { return i < inputs.size() && inputs[i]; }
  mlir::Value input(unsigned i) const {
    return i < inputs.size() ? inputs[i] : mlir::Value();
  }
  mlir::ValueRange allInputs() const { return inputs; }
  /// The name in the model, for messages.
  virtual std::string inputName(unsigned i) const = 0;
  /// How else a user gets rid of what depends on data, as in ", or simplify the
  /// model"; may be empty.
  virtual std::string otherRemedy() const { return ""; }

  /// `value`, in [-rank, rank), as a dimension index.
  llvm::FailureOr<int64_t> axis(int64_t value, int64_t rank);
  /// Distinct dimension indices, in the order given.
  llvm::FailureOr<llvm::SmallVector<int64_t>>
  axes(llvm::ArrayRef<int64_t> values, int64_t rank);
  /// Elements of operand i, sizes computed from shapes; entries may be null.
  llvm::FailureOr<Exprs> partlyKnown(unsigned i);
  /// ... all known.
  llvm::FailureOr<Exprs> known(unsigned i);
  /// Elements of operand i as integers known now.
  llvm::FailureOr<llvm::SmallVector<int64_t>> constants(unsigned i);
  /// ... of any numeric type.
  llvm::FailureOr<llvm::SmallVector<double>> constantNumbers(unsigned i);
  /// One such element.
  llvm::FailureOr<int64_t> constantInteger(unsigned i);
  llvm::FailureOr<double> constantNumber(unsigned i);
  /// Fails because operand i has to be known and is not.
  llvm::LogicalResult dependsOnData(unsigned i);
  /// Fails unless operand i has this rank.
  llvm::LogicalResult needsRank(unsigned i, int64_t low, int64_t high);

protected:
  Emitter &emitter;
  Values inputs;
};

} // namespace charonia::frontend

#endif
