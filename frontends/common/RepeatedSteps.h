// Steps that are as many as a size says, of which the compiler sees one.
#ifndef CHARONIA_FRONTENDS_COMMON_REPEATEDSTEPS_H
#define CHARONIA_FRONTENDS_COMMON_REPEATEDSTEPS_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// So many steps that are known are written out, and not repeated: each takes
/// the compiler's time, a second for some 100 of a recurrent layer, and steps
/// of states gain nothing across more of them.
constexpr int64_t mostWrittenOut = 64;
/// Where what steps multiply by, or the branch that they take, may be known
/// once they are written out, data may end them, or they carry nothing and
/// become a batch.
constexpr int64_t mostWrittenOutToKnow = 512;

/// Builds graph.iterate: make one, `carry` the states, build what a step
/// computes of them and of the parts of tensors at `counter`, `finish`. Steps
/// inside of steps are refused, as the emitter's failure.
class RepeatedSteps {
public:
  /// For 0 to `count` - 1.
  RepeatedSteps(mlir::AffineExpr count, Emitter &e);
  /// With a counter that Symbols made.
  RepeatedSteps(mlir::AffineExpr symbol, mlir::AffineExpr count, Emitter &e);
  ~RepeatedSteps();
  RepeatedSteps(const RepeatedSteps &) = delete;
  RepeatedSteps &operator=(const RepeatedSteps &) = delete;

  /// The size that is a step's number; null after a failure.
  mlir::AffineExpr counter;

  /// What a step finds of the one before, `init` in the first.
  mlir::Value carry(mlir::Value init);
  /// Whether `next` may be of the types and sizes of what is carried; fails,
  /// and assumes nothing, where it is not.
  bool mayCarryOn(llvm::ArrayRef<mlir::Value> next);
  /// `next` of what is carried is for the step behind. Gives the last of these,
  /// then the outputs of all steps, each with a first dimension of `count` in
  /// which this step is element places[i]. Null values after a failure.
  Values finish(llvm::ArrayRef<mlir::Value> next,
                llvm::ArrayRef<mlir::Value> outputs,
                llvm::ArrayRef<mlir::AffineExpr> places);

private:
  void failUnlike(mlir::Value before, mlir::Value after);
  bool mayBeAlike(mlir::Value before, mlir::Value after);
  void assumeAlike(mlir::Value before, mlir::Value after);

  Emitter &e;
  /// One more than `counter`.
  mlir::AffineExpr symbol;
  mlir::AffineExpr count;
  Values carried;
  bool isOutermost;
};

} // namespace charonia::frontend

#endif
