// Which operators of a function share a kernel.
//
// The plan reads GraphOpInterface alone. It is built in stages, each by greedy
// growth with a check that no cycle between kernels arises:
//   1. every contraction takes the pointwise operators that follow it element
//   by
//      element (through views) as its epilogue;
//   2. every reduction or row normalization takes pointwise operators and
//   further
//      reductions over the same rows;
//   3. windows and the remaining pointwise and indexing operators take the
//      pointwise operators that follow them;
//   4. groups without an anchor (a contraction, reduction or window) join the
//   group that
//      reads them, where that recomputes nothing of value;
//   5. on a GPU, small sums join the only group that reads them: each of its
//      program instances computes them again, which costs less than a kernel.
#ifndef CHARONIA_GRAPH_ANALYSIS_FUSIONPLAN_H
#define CHARONIA_GRAPH_ANALYSIS_FUSIONPLAN_H

#include "graph/analysis/Coverage.h"
#include "graph/analysis/IterationSpace.h"
#include "llvm/ADT/SetVector.h"

namespace charonia::graph {

/// Bounds of one kernel; more helps no one and makes code and argument lists
/// long.
struct FusionLimits {
  unsigned maxOperators = 96;
  unsigned maxInputs = 48;
  /// Row reductions with fewer rows than this, and rows longer than the next,
  /// keep full-size operators out: one program instance a row could not feed a
  /// chip.
  int64_t minRows = 32, longRow = 1 << 15;
  /// Cheap operators that may be computed once more for each reader or along a
  /// broadcast, instead of being stored.
  unsigned maxRecomputed = 4;
  /// Instructions for a register of results (see estimateCode): of a kernel
  /// whose tile may be one register, of one that holds a row in some registers,
  /// and behind a contraction or a window, whose tile has some dozens. The time
  /// that code generation takes grows with the square of the product.
  int64_t maxCode = 8192, maxRowCode = 2048, maxEpilogueCode = 512;
  /// Views in turn that move elements and are not stored between: their
  /// coordinates are composed, and where no division is resolved each doubles
  /// them.
  unsigned maxViews = 6;
  /// Terms of coordinates that are composed by views, also with pointwise
  /// operators between them, above which the next view that moves elements is
  /// stored.
  unsigned maxTerms = 128;
  /// Groups that are searched for a cycle before an operator stays by itself;
  /// in all searches together so many times the number of groups, after which
  /// each may look at a few.
  unsigned maxSearched = 4096, maxSearches = 256, minSearched = 32;
  /// Whether what products and gathers of rows would read across their vectors,
  /// tile after tile, is stored: on a CPU, where a kernel costs little and
  /// lanes that lie apart are picked one by one.
  bool denseRows = false;
  /// Elements of the widest vector that code may be made for.
  int64_t lanes = 16;
  /// Rows up to which a product widens its weights where it reads them, once
  /// for each tile of rows: any on a CPU, where that is little beside a tile.
  int64_t widenedRows = 0;
  /// Multiprocessors of a GPU, where a kernel costs a microsecond or more; 0 is
  /// a CPU, where it costs little.
  int64_t instances = 0;
  /// What an instance may read for sums that it computes again, and all of them
  /// together, in bytes: what comes from the second-level cache meanwhile.
  int64_t maxAgainOfOne = 40 << 10, maxAgainOfAll = 4 << 20;
};

/// Has a view's result stored as it lies, though its readers could do without:
/// they read it often.
void setStored(mlir::Operation *view);
bool isStored(mlir::Operation *view);

class FusionPlan {
public:
  struct Group {
    llvm::SmallVector<mlir::Operation *> ops;
    IterationSpace space;
    /// The contraction, window, opaque operator or first reduction, if any.
    GraphOpInterface anchor;
    /// What readers outside need, in the order of the kernel's results. The
    /// first is the one that is cut into tiles: coordinates of the others
    /// follow from its. Values of the whole space come before row values, and
    /// of them what a product goes into, from which its tile is chosen.
    llvm::SmallVector<mlir::Value> results;
    /// What each instance reads for sums that it computes again.
    int64_t againBytes = 0;
    /// Whether it has rows that lie rolled, by several views together.
    bool rolls = false;
    bool hasAnchor(OpRole role) const {
      return anchor && GraphOpInterface(anchor).getRole() == role;
    }
  };

  FusionPlan(mlir::Block &block, llvm::ArrayRef<Symbol> symbols,
             FusionLimits limits = {});

  /// Groups in an order of execution, without empty ones; operators of a group
  /// in the block's order.
  llvm::SmallVector<Group *> order() const;
  /// The group of an operator; null for inlined operators and sources.
  Group *groupOf(mlir::Operation *op) const { return groups.lookup(op); }
  /// Whether each kernel that reads the result gets its own copy of the
  /// operator: views, splat constants, what has no operands, cheap operators
  /// with several readers.
  bool isInlined(mlir::Operation *op) const { return inlined.contains(op); }
  /// What a kernel hands to another, or keeps to itself.
  struct Decision {
    mlir::Value value;
    const Group *from, *to; ///< The same: its reader is in the same kernel.
    int64_t bytes;          ///< That are, or would be, neither stored nor read.
    const char *why;        ///< What forbids one kernel for both.
  };
  /// At the optimal values of the shape symbols, kernels in order.
  std::vector<Decision> decisions() const;
  /// Groups that were looked at in search of cycles.
  uint64_t getSearched() const { return searched; }

private:
  using Readers = llvm::SmallSetVector<mlir::OpOperand *, 8>;
  using Sources = llvm::SmallSetVector<mlir::Operation *, 8>;

  static bool isRowRole(OpRole role) {
    return role == OpRole::Reduction || role == OpRole::RowNormalization;
  }
  static OpRole roleOf(mlir::Operation *op) {
    return llvm::cast<GraphOpInterface>(op).getRole();
  }

  void makeGroup(mlir::Operation *op);
  void classify();
  void forceReturned();
  void forceTangledViews();
  mlir::Value behindAliases(mlir::Value value) const;
  mlir::Operation *scattersBehind(mlir::Value value) const;
  void forceStridedReads();
  mlir::Operation *scattersTermsOf(mlir::OpOperand &use, unsigned terms) const;
  void forceSingleReads();
  void forceChosenRows();
  int64_t chosenRows(mlir::OpOperand &use,
                     llvm::SmallVectorImpl<mlir::Operation *> &choosers) const;
  void forceRuns();
  void forceJoinedParts();
  void storeCutRuns(mlir::Value value, int64_t row);
  bool joinsDims(mlir::Value value) const;
  bool cutsRun(GraphOpInterface op, int64_t row) const;
  bool cutsRun(GraphOpInterface op, int64_t row,
               llvm::ArrayRef<int64_t> values) const;
  llvm::SmallVector<std::optional<int64_t>>
  stepsOf(GraphOpInterface op, unsigned operand,
          llvm::ArrayRef<int64_t> values) const;
  void inlineWidening();
  void keepRows(llvm::ArrayRef<mlir::Operation *> choosers);
  bool crossesColumns(mlir::OpOperand &operand,
                      std::optional<unsigned> along) const;

  /// What forbids that the group computes the operator behind its own, where
  /// `place` is; null: nothing does.
  const char *whyNotBehind(const Group &group, GraphOpInterface op,
                           std::optional<IterationSpace::Place> &place) const;
  /// Whether an operator has a place only if views may roll rows on the way.
  bool needsRoll(const Group &group, GraphOpInterface op) const;
  bool tryAbsorb(Group &group, GraphOpInterface op);
  bool tryAbsorbSibling(Group &group, GraphOpInterface op);
  bool belongsToReaders(GraphOpInterface op) const;
  void growForward(GraphOpInterface root);
  bool hasEnoughRows(const IterationSpace &space) const;

  void joinReaders();
  bool tryJoin(Group &producer, Group &reader,
               llvm::ArrayRef<mlir::OpOperand *> uses, bool readElsewhere);
  bool tryInline(Group &producer, llvm::ArrayRef<mlir::OpOperand *> readers);
  /// What forbids that the reader computes the producer's result at `use`,
  /// where it needs it; null: nothing does.
  const char *whyNotInFront(const Group &producer, const Group &reader,
                            mlir::OpOperand &use) const;
  const char *whyApart(const Group &from, const Group &to,
                       mlir::OpOperand &use) const;
  bool isExpensive(const Group &group) const;
  void placeBackward(IterationSpace &space, mlir::OpOperand &use) const;

  void joinSums();
  Group *onlyReader(const Group &producer) const;
  /// What forbids that each instance of the reader computes the producer's sums
  /// again, of which it reads one at `use`; null: nothing does.
  const char *whyNotAgain(const Group &producer, const Group &reader,
                          mlir::OpOperand &use) const;
  bool isWorthAgain(const Group &producer, int64_t stored,
                    int64_t computed) const;
  bool readsWholeDims(mlir::OpOperand &use) const;
  bool isViewOf(mlir::Value value, mlir::Value input) const;
  int64_t bytesAgain(const Group &producer, mlir::OpOperand &use) const;
  int64_t instancesOf(const Group &group, int64_t bytes) const;
  static constexpr const char *kTooOften =
      "each program instance would compute it again";

  bool isBetterStored(const Group &group, GraphOpInterface longer) const;
  void sinkLonger();
  void sinkViews();
  void splitUnrelated();
  /// Values of the whole space, and of them what a product goes into, apart
  /// from those of rows and cells.
  struct Results {
    llvm::SmallVector<mlir::Value> products, others, rows;
  };
  Results resultsOf(const Group &group,
                    llvm::ArrayRef<mlir::Operation *> body) const;
  bool orderResults(Group &group) const;
  llvm::SmallVector<mlir::Operation *> bodyOf(const Group &group) const;
  bool isInMemory(mlir::Value value, const Group &group) const;

  /// Uses of a value by operators in groups or by the terminator, through
  /// inlined ones.
  void collectReaders(mlir::Value value, Readers &readers) const;
  Readers readersOf(mlir::Operation *op) const;
  /// Operators in groups that `op` reads, through inlined ones.
  void collectSources(mlir::Operation *op, Sources &sources) const;
  /// Whether one of `sources` is, or depends on, an operator of `target`.
  bool reaches(const Group &target, const Sources &sources);
  void merge(Group &from, Group &into);
  bool withinLimits(const Group &group,
                    llvm::ArrayRef<mlir::Operation *> more) const;
  llvm::DenseSet<mlir::Value>
  inputsOf(llvm::ArrayRef<mlir::Operation *> ops) const;
  /// At the optimal values of the shape symbols.
  int64_t elementsOf(mlir::Value value) const;
  int64_t elementsOf(llvm::ArrayRef<mlir::AffineExpr> shape) const;
  llvm::SmallVector<int64_t> sizesOf(mlir::Value value,
                                     llvm::ArrayRef<int64_t> at) const;

  mlir::Block &block;
  llvm::SmallVector<int64_t> optimum, divisors; ///< Of symbols.
  FusionLimits limits;
  llvm::DenseMap<mlir::Operation *, unsigned> position;
  /// Groups with operators in front of a position and at or behind it.
  Coverage spans;
  llvm::DenseSet<mlir::Operation *> inlined;
  /// Views that are stored so that no chain of them is long: nothing in front
  /// of one is in a kernel with what follows it.
  llvm::DenseSet<mlir::Operation *> tangled;
  /// Views that take rows apart that data have chosen: kernels of their own.
  llvm::DenseSet<mlir::Operation *> across;
  /// What is stored so that readers find rows in it: no reader has it.
  llvm::DenseSet<mlir::Operation *> dense;
  llvm::DenseMap<mlir::Operation *, Group *> groups;
  std::vector<std::unique_ptr<Group>> storage;
  uint64_t searched = 0;
};

} // namespace charonia::graph

#endif
