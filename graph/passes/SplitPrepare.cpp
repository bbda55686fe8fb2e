#include "graph/analysis/Computing.h"
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Weights.h"
#include "graph/analysis/Widening.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/PrepareFunction.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_SPLITPREPARE
#include "graph/passes/Passes.h.inc"

namespace {

/// What a value made of weights may take of an engine: some more than the
/// weights themselves, and what constants alone give if it is small.
constexpr int64_t growth = 2, smallBytes = 4 << 20;

/// What positions alone give, as the diagonal of a matrix, is computed where it
/// is wanted if that takes so few operations an element and storing it so many
/// bytes: memory is read no faster.
constexpr int64_t fewOperations = 8, manyBytes = 1 << 16, much = 8;

class Splitter {
public:
  Splitter(ModuleOp module, int64_t widenedRows)
      : prepare(module), optimum(getOptimum(getSymbols(module))),
        widenedRows(widenedRows) {}

  void run(func::FuncOp function) {
    SmallVector<OpOperand *> frontier;
    for (Operation &op : function.getBody().front()) {
      bool inside = op.getNumResults() == 1 && weightsOnly(op.getResult(0));
      for (OpOperand &operand : op.getOpOperands())
        if (!inside && weightsOnly(operand.get()))
          frontier.push_back(&operand);
    }
    for (OpOperand *use : frontier)
      split(*use);
  }
  void finish() { prepare.finish(); }

private:
  static bool isSource(Operation *op) {
    return cast<GraphOpInterface>(op).getRole() == OpRole::Source;
  }

  /// Whether the reader may as well compose the view's map with its own. `map`
  /// leads from the operand's coordinates to those of the view's operand.
  static bool isComposed(Operation *op, OpOperand &use, AffineMap map) {
    auto view = cast<GraphOpInterface>(op);
    if (view.getRole() != OpRole::View || isStored(op))
      return false;
    Exprs from = getShape(op->getOperand(0)), to = getShape(op->getResult(0));
    if (isSameBytes(op) || keepsInnermost(view.getOperandMap(0), to, from))
      return true;
    if (numElements(to, op->getContext()) !=
        numElements(from, op->getContext()))
      return true; // a broadcast, which would only store more, or a part
    // A dot takes either orientation of a matrix. Of anything that has more
    // parts, as a filter with its window, it wants columns or the innermost
    // terms side by side.
    auto reader = dyn_cast<GraphOpInterface>(use.getOwner());
    return reader && reader.getRole() == OpRole::Contraction &&
           reader.getOperandReads(use.getOperandNumber()) == 1 &&
           ((isDot(reader) && !isSingle(reader) &&
             countMovedParts(view.getOperandMap(0), from) <= 2) ||
            runsAlongColumns(reader, use.getOperandNumber(), map, from));
  }

  /// Whether each column is a sum over terms that others share.
  static bool isDot(GraphOpInterface reader) {
    return llvm::any_of(reader.getResultDimKinds(), [](DimKind kind) {
      return kind == DimKind::Column || kind == DimKind::Whole;
    });
  }

  /// Whether there is one column: its terms should lie side by side.
  static bool isSingle(GraphOpInterface reader) {
    std::optional<Columns> columns = reader.getColumns();
    return columns && constantOf(getShape(reader->getOperand(
                          columns->operand))[columns->operandDim]) == 1;
  }

  /// Whether neighbours in a memory of shape `memory` are neighbouring columns
  /// of the reader, as in packed panels: elements, or words of 32 bits that
  /// have some neighbouring terms of a column.
  static bool runsAlongColumns(GraphOpInterface reader, unsigned operand,
                               AffineMap map, ArrayRef<AffineExpr> memory) {
    std::optional<Columns> columns = reader.getScaledColumns();
    if (!columns || columns->operand != operand)
      return false;
    constexpr int64_t wordBits = 32;
    Type element = getElementTypeOrSelf(reader->getOperand(operand).getType());
    int64_t bits = element.getIntOrFloatBitWidth();
    for (auto [e, extent] :
         llvm::reverse(llvm::zip_equal(map.getResults(), memory))) {
      std::optional<int64_t> known = constantOf(extent);
      if (known == 1)
        continue;
      if (isRunOf(e, columns->operandDim, map.getNumDims()))
        return true;
      bool isWord = known && *known <= wordBits && *known * bits == wordBits &&
                    isRun(e, map.getNumDims());
      if (!isWord)
        return false;
      bits = wordBits;
    }
    return false;
  }

  /// Whether `e` rises by one with one dim alone.
  static bool isRun(AffineExpr e, unsigned dims) {
    return llvm::any_of(llvm::seq(dims),
                        [&](unsigned d) { return isRunOf(e, d, dims); });
  }

  /// Whether `e` rises by one with `dim`, perhaps from zero again and again, as
  /// in panels, or by more now and then, as behind the padding of a group, and
  /// with no other.
  static bool isRunOf(AffineExpr e, unsigned dim, unsigned dims) {
    for (unsigned d = 0; d < dims; ++d)
      if (e.isFunctionOfDim(d) != (d == dim))
        return false;
    while (e.getKind() == AffineExprKind::Mod)
      e = cast<AffineBinaryOpExpr>(e).getLHS();
    AffineExpr self = getAffineDimExpr(dim, e.getContext());
    bool rises = false;
    for (const Sum::Term &term : Sum(e).terms) {
      bool isSelf = term.atoms.size() == 1 && term.atoms.front() == self;
      rises |= isSelf && term.coefficient == 1;
      bool isStep = term.atoms.size() == 1 &&
                    term.atoms.front().getKind() == AffineExprKind::FloorDiv;
      if (!(isSelf ? term.coefficient == 1 : isStep))
        return false;
    }
    return rises;
  }

  /// Of a permutation from `map`'s dims to a tensor of shape `memory`: the runs
  /// of dimensions that stay together, not counting dimensions of one element.
  static unsigned countMovedParts(AffineMap map, ArrayRef<AffineExpr> memory) {
    unsigned parts = 0;
    int64_t previous = -2;
    for (auto [e, extent] : llvm::zip_equal(map.getResults(), memory)) {
      if (constantOf(extent) == 1)
        continue;
      auto dim = dyn_cast<AffineDimExpr>(e);
      if (!dim)
        return std::numeric_limits<unsigned>::max();
      if ((int64_t)dim.getPosition() != previous + 1)
        ++parts;
      previous = dim.getPosition();
    }
    return parts;
  }

  /// The operators by which every run may as well compute the value: few on an
  /// element, of positions and of what is much smaller. None where it is better
  /// stored.
  llvm::SetVector<Operation *> computedAgain(Value value, OpOperand &use) {
    auto reader = dyn_cast<GraphOpInterface>(use.getOwner());
    auto bytes = [](Value v) {
      return byteSize(cast<RankedTensorType>(v.getType()));
    };
    if ((reader && reader.getRole() != OpRole::Pointwise) ||
        bytes(value) < manyBytes)
      return {};
    int64_t left = fewOperations;
    llvm::SetVector<Operation *> again;
    again.insert(value.getDefiningOp());
    for (size_t i = 0; i < again.size(); ++i) {
      auto op = cast<GraphOpInterface>(again[i]);
      OpRole role = op.getRole();
      if (op.isExpensive() || !(role == OpRole::View ||
                                role == OpRole::Pointwise || isPosition(op)))
        return {};
      left -= role == OpRole::Pointwise ? op.getCodeSize() : 0;
      if (left < 0)
        return {};
      for (Value operand : op->getOperands())
        if (bytes(operand) > bytes(value) / much)
          again.insert(operand.getDefiningOp());
    }
    return again;
  }
  static bool isPosition(Operation *op) {
    return op->getNumOperands() == 0 &&
           cast<GraphOpInterface>(op).getRole() == OpRole::Indexing;
  }

  void split(OpOperand &use) {
    // Narrow weights are widened where they are multiplied.
    if (widensInside(use, optimum, widenedRows) &&
        !wideningOf(use, weightsOnly).empty())
      return;
    Operation *op = use.get().getDefiningOp();
    OpOperand *cut = &use;
    Exprs extents = getShape(use.get());
    AffineMap map =
        AffineMap::getMultiDimIdentityMap(extents.size(), op->getContext());
    for (;;) {
      if (auto view = cast<GraphOpInterface>(op);
          view.getRole() == OpRole::View)
        map = composeMaps(view.getOperandMap(0), map, extents);
      if (!isComposed(op, use, map))
        break;
      cut = &op->getOpOperand(0);
      op = cut->get().getDefiningOp();
    }
    // What reads nothing is computed sooner than fetched.
    if (isSource(op) || op->getNumOperands() == 0)
      return;
    Value value = cut->get();
    if (auto again = computedAgain(value, use); !again.empty()) {
      for (Operation *kept : again)
        for (OpOperand &operand : kept->getOpOperands())
          if (Operation *below = operand.get().getDefiningOp();
              !again.contains(below) && !isPosition(below))
            split(operand);
      return;
    }
    if (Value done = prepared.lookup(value)) {
      cut->set(done);
      return;
    }
    int64_t bytes = byteSize(cast<RankedTensorType>(value.getType()));
    if (bytes > std::max(growth * weightsOnly.sourceBytes(value), smallBytes)) {
      for (OpOperand &operand : op->getOpOperands())
        split(operand);
      return;
    }
    OpBuilder outside(op);
    Value weight = prepare.publish(prepare.import(value), outside);
    prepared[value] = weight;
    cut->set(weight);
  }

  PrepareFunction prepare;
  SmallVector<int64_t> optimum;
  int64_t widenedRows;
  WeightsOnly weightsOnly;
  llvm::DenseMap<Value, Value> prepared;
};

struct SplitPrepare : impl::SplitPrepareBase<SplitPrepare> {
  using SplitPrepareBase::SplitPrepareBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions = getComputing(getOperation());
    if (functions.empty())
      return;
    Splitter splitter(getOperation(), widenedRows);
    for (func::FuncOp function : functions)
      splitter.run(function);
    splitter.finish();
    // What moved has no readers left.
    for (func::FuncOp function : functions)
      eraseDead(function);
  }
};

} // namespace
} // namespace charonia::graph
