// Loops whose number of steps is a size: one step is built and repeated.
#ifndef CHARONIA_FRONTENDS_COMMON_OPENLOOPS_H
#define CHARONIA_FRONTENDS_COMMON_OPENLOOPS_H

#include "frontends/common/LoopConditions.h"
#include "frontends/common/RepeatedSteps.h"
#include "frontends/common/Steps.h"
#include "llvm/ADT/BitVector.h"
#include <functional>

namespace charonia::frontend {

/// Steps of a loop that the runtime plans at most.
constexpr int64_t maxRepeatedSteps = int64_t(1) << 20;

/// A loop, as its frontend tells of it.
struct OpenLoop {
  /// What a step gives.
  struct Step {
    /// The states of the step behind. While a loop is looked into: those that
    /// are asked for.
    Values states;
    /// Of all steps, to be stacked along a first dimension.
    Values outputs;
    /// Where this step's lie among them; empty: at its number.
    llvm::SmallVector<mlir::AffineExpr> places;
    /// Null where there is none. See `testsBefore`.
    mlir::Value condition;
  };
  /// What is asked of one that looks into the loop: these states of the next
  /// step alone, and the condition.
  using Wanted = llvm::BitVector;

  /// The states before the first step. A null one is zeros if a step sets it,
  /// whatever steps find, and else stays null.
  Values states;
  /// States that every step gives on as they are; none by default.
  llvm::BitVector kept;
  /// How many steps there are at most; null where only the condition says.
  mlir::AffineExpr most;
  /// Whether the condition of a step says that it is taken, or that the one
  /// behind it is; then `first` says whether the first is, null if it always
  /// is.
  bool testsBefore = false;
  mlir::Value first;
  /// Builds step `number` of these states. `wanted` is not null where what is
  /// built is looked at and dropped.
  std::function<std::optional<Step>(mlir::AffineExpr number,
                                    llvm::ArrayRef<mlir::Value> states,
                                    const Wanted *wanted)>
      take;
  /// Gives what takes back all messages from now on, and begins the loop's node
  /// again.
  std::function<std::function<void()>()> mark;
  /// What to do where data says how many steps there are.
  const char *dataRemedy;
};

/// What a loop leaves.
struct LoopResults {
  Values states, outputs;
  mlir::AffineExpr count;
};

/// A state that is `first` + `stride` * the step's number.
struct Induction {
  mlir::AffineExpr first;
  int64_t stride = 1;
  mlir::AffineExpr at(mlir::AffineExpr step) const {
    return graph::simplify(first + step * stride);
  }
};

/// Whether a loop may be worth repeating, by its condition in front of the
/// first step: that is not known, or compares with sizes that are open, or with
/// what is many steps away. Others are written out, and need no look, which
/// inside of other loops costs as much as a step.
bool mayRepeat(mlir::Value condition, Emitter &e);

/// Builds a loop that is repeated. States that count by a number each step are
/// expressions inside of it.
class LoopBuilder {
public:
  /// Looks into the loop: what counts, and how many steps there are.
  LoopBuilder(const OpenLoop &loop, Emitter &e);

  ~LoopBuilder();
  LoopBuilder(const LoopBuilder &) = delete;
  LoopBuilder &operator=(const LoopBuilder &) = delete;

  /// Whether how many steps there are follows from sizes, and is open, or 0, or
  /// more than are written out. Not where data may end so many that all of them
  /// would be too much.
  bool canRepeat() const;
  /// Whether nothing ends the steps once there is one: `most` is not known, and
  /// the condition of each is seen to hold.
  bool isEndless() const { return !loop.most && holds; }
  /// How many steps there are, where that is a number.
  std::optional<StepCount> known() const;
  /// Once, where it can. A failure where a step cannot be built; nothing, and
  /// no message of it, where so many can be written out instead.
  std::optional<llvm::FailureOr<LoopResults>> build();

private:
  bool isKept(size_t i) const {
    return i < loop.kept.size() && loop.kept.test(i);
  }
  mlir::Value stateAt(size_t i, mlir::AffineExpr step);
  mlir::Value placeholder(size_t i);
  void findCandidates();
  bool lookOnce(const Values &opaque);
  std::optional<OpenLoop::Step> look(const Values &opaque,
                                     const OpenLoop::Wanted &wanted);
  bool carries() const;
  bool mayGrow() const;
  bool dropWhatCannotBeSeen(const Values &opaque,
                            const OpenLoop::Wanted &wanted);
  std::optional<int64_t> strideOf(size_t i, mlir::Value next);
  bool readSteps(const OpenLoop::Step &step);
  void readCount(const OpenLoop::Step &step);
  void setCount(const Duration &duration);
  bool fit(llvm::ArrayRef<mlir::Value> compared);
  bool canWriteOut() const;
  Values begin();
  std::optional<OpenLoop::Step> takeStep(const Values &states);
  bool isWrittenOut(const std::optional<OpenLoop::Step> &step,
                    const Symbols::Supposed &supposed, mlir::Operation *last,
                    mlir::Block &block);
  Values outputsThatFollow(const OpenLoop::Step &step);
  bool tabulate(const OpenLoop::Step &step);
  bool leavesBatch(const OpenLoop::Step &step) const;
  std::optional<LoopResults> repeat(const std::function<void()> &forget);
  Values nextOf(const OpenLoop::Step &step) const;
  mlir::Value carry(std::optional<size_t> state, mlir::Value init);
  bool keepEnded(OpenLoop::Step &step);
  bool checkStates(const OpenLoop::Step &step);
  bool checkInductions(const OpenLoop::Step &step);
  void learnResults(const OpenLoop::Step &step, LoopResults &left);
  std::optional<LoopResults> finish(OpenLoop::Step &step);

  const OpenLoop &loop;
  Emitter &e;
  Symbols &symbols;
  /// The counter, and the number of a step.
  mlir::AffineExpr symbol, number;
  /// How many steps there are; null where that does not follow from sizes.
  mlir::AffineExpr count;
  /// Whether data never ends the loop before.
  bool isExact = true;
  /// Whether the condition holds in all steps.
  bool holds = false;
  std::vector<std::optional<Induction>> inductions;
  std::optional<RepeatedSteps> steps;
  /// By state: what a step finds; null where that follows from its number, or
  /// is what the first one found.
  Values carried;
  /// What is carried, in order, and what is carried on: of a state, or whether
  /// the loop goes on.
  llvm::SmallVector<std::optional<size_t>> order;
  mlir::Value goesOn;
  /// By state: whether all of it follows from constants, sizes and the step's
  /// number. Those that are known now are tables, of which each step reads its
  /// row; by output, too.
  llvm::BitVector follow;
  std::vector<mlir::DenseElementsAttr> tables, outputTables;
};

} // namespace charonia::frontend

#endif
