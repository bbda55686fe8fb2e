// Lowers the ordered operators to steps for GPUs, each in its own way: how the
// work of a scatter, of a scan and of a selection is shared has nothing in
// common that an interface could ask for. An operator of role Ordered that is
// not named here runs as its rule is written, one program instance a row.
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include <limits>

namespace charonia::graph {
#define GEN_PASS_DEF_STAGEORDERED
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// Writes the steps of one operator, in front of it.
class Steps {
public:
  Steps(Operation *op, ArrayRef<int64_t> symbols)
      : b(op), location(op->getLoc()), symbols(symbols) {}

  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, location, std::forward<Args>(args)...)->getResult(0);
  }
  AffineExpr number(int64_t value) { return b.getAffineConstantExpr(value); }
  int64_t sizeOf(ArrayRef<AffineExpr> extents) const {
    return evaluate(numElements(extents, b.getContext()), symbols).value_or(1);
  }

  Value cast(Value value, Type element) {
    if (getElementTypeOrSelf(value) == element)
      return value;
    return copy(value, element);
  }
  /// ... of its own memory, whatever the type is.
  Value copy(Value value, Type element) {
    return make<CastOp>(withElement(value.getType(), element), value,
                        TypeAttr::get(element));
  }
  Value reshape(Value value, ArrayRef<AffineExpr> shape) {
    return make<ReshapeOp>(makeType(shape, getElementTypeOrSelf(value)), value);
  }
  /// `shape` elements from `start` of dimension `d` on.
  Value slice(Value value, int64_t d, AffineExpr start,
              ArrayRef<AffineExpr> shape) {
    Exprs starts(shape.size(), number(0));
    starts[d] = start;
    return make<SliceOp>(makeType(shape, getElementTypeOrSelf(value)), value,
                         mapOver(starts),
                         SmallVector<int64_t>(shape.size(), 1));
  }
  /// The value moved by `low` along `d`, and cut or filled up to `shape`.
  Value fit(Value value, int64_t d, int64_t low, TypedAttr fill,
            ArrayRef<AffineExpr> shape) {
    Exprs lows(shape.size(), number(0));
    lows[d] = number(low);
    Type element = getElementTypeOrSelf(value);
    Value scalar = make<ConstantOp>(
        DenseElementsAttr::get(RankedTensorType::get({}, element), fill));
    return make<PadOp>(makeType(shape, element), PadMode::constant, value,
                       scalar, mapOver(lows));
  }

  /// Dimension `d` of `value` as parts of `length`, filled up with `fill`.
  Value inParts(Value value, int64_t d, int64_t length, TypedAttr fill) {
    Exprs shape = getShape(value), parted = shape;
    AffineExpr parts = (shape[d] + (length - 1)).floorDiv(length);
    shape[d] = parts * length;
    parted[d] = parts;
    parted.insert(parted.begin() + d + 1, number(length));
    for (Exprs *extents : {&shape, &parted})
      for (AffineExpr &e : *extents)
        e = simplify(e);
    return reshape(fit(value, d, 0, fill, shape), parted);
  }

  OpBuilder b;

private:
  AffineMap mapOver(ArrayRef<AffineExpr> results) {
    unsigned used = 0;
    for (AffineExpr result : results)
      result.walk([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          used = std::max(used, symbol.getPosition() + 1);
      });
    return AffineMap::get(0, used, results, b.getContext());
  }

  Location location;
  ArrayRef<int64_t> symbols;
};

class StageOrdered
    : public charonia::graph::impl::StageOrderedBase<StageOrdered> {
  void runOnOperation() override {
    for (const Symbol &s :
         getSymbols(getOperation()->getParentOfType<ModuleOp>()))
      symbols.push_back(s.opt);
    SmallVector<Operation *> ops;
    getOperation().walk([&](GraphOpInterface op) {
      if (op.getRole() == OpRole::Ordered)
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto elements = dyn_cast<ScatterElementsOp>(op))
        updateInPlace(elements);
      else if (auto tuples = dyn_cast<ScatterNDOp>(op))
        updateInPlace(tuples);
      else if (auto scan = dyn_cast<ScanOp>(op))
        scanParts(scan);
      else if (auto sort = dyn_cast<SortOp>(op))
        selectInParts(sort);
    }
    eraseDead(getOperation());
  }

  //===--- Scatters -------------------------------------------------------===//

  /// What updates of a small type meet in: devices update whole words.
  static Type wordOf(Type element, OpBuilder &b) {
    if (element.getIntOrFloatBitWidth() >= 32)
      return element;
    return isa<FloatType>(element) ? Type(b.getF32Type())
                                   : Type(b.getI32Type());
  }

  template <typename Op> void updateInPlace(Op op) {
    if (op.getInPlace())
      return;
    Steps steps(op, symbols);
    Type element = getElementTypeOrSelf(op.getType()), word = element;
    if (op.getReduction() != ScatterReduction::none)
      word = wordOf(element, steps.b);
    // A scatter's result that nothing else reads is such memory already.
    Value input = op.getInput();
    auto before = input.getDefiningOp<GraphOpInterface>();
    bool isFree = before && before.getUpdatedOperand() && input.hasOneUse() &&
                  word == element;
    auto staged = llvm::cast<Op>(steps.b.clone(*op));
    steps.b.setInsertionPoint(staged);
    staged.getInputMutable().assign(isFree ? input : steps.copy(input, word));
    staged.getUpdatesMutable().assign(steps.cast(op.getUpdates(), word));
    staged.setInPlace(true);
    staged.getResult().setType(withElement(op.getType(), word));
    steps.b.setInsertionPointAfter(staged);
    op.getResult().replaceAllUsesWith(steps.cast(staged.getResult(), element));
  }

  //===--- Scans ----------------------------------------------------------===//

  /// Few, long rows: each part is scanned by itself, then what all parts before
  /// it sum up to is added.
  void scanParts(ScanOp op) {
    Exprs shape = getShape(op.getInput()), rows = shape;
    int64_t axis = op.getAxis();
    rows.erase(rows.begin() + axis);
    Steps steps(op, symbols);
    if (steps.sizeOf(shape[axis]) < 8 * scanLength ||
        steps.sizeOf(rows) > fewRows)
      return;
    TypedAttr neutral;
    Type element = getElementTypeOrSelf(op.getType()), wide = element;
    if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
      wide = steps.b.getF32Type();
    // Products of floats are taken in order (codegen/emit/rules/Ordered.cpp).
    if (op.getKind() == ReduceKind::sum ||
        (op.getKind() == ReduceKind::prod && !isa<FloatType>(element)))
      neutral = numberOf(wide, op.getKind() == ReduceKind::prod);
    if (!neutral)
      return;
    auto scanned = [&](Value value, int64_t along) {
      return steps.make<ScanOp>(value.getType(), op.getKind(), value, along,
                                op.getReverse());
    };
    Value parts = steps.inParts(steps.cast(op.getInput(), wide), axis,
                                scanLength, neutral),
          each = scanned(parts, axis + 1);
    Exprs ends = getShape(parts);
    ends[axis + 1] = steps.number(1);
    Value totals = scanned(
        steps.slice(each, axis + 1,
                    steps.number(op.getReverse() ? 0 : scanLength - 1), ends),
        axis);
    Value before =
        steps.fit(totals, axis, op.getReverse() ? -1 : 1, neutral, ends);
    Value result = op.getKind() == ReduceKind::sum
                       ? steps.make<AddOp>(before, each)
                       : steps.make<MulOp>(before, each);
    Exprs joined = shape;
    joined[axis] = simplify(getShape(parts)[axis] * scanLength);
    result = steps.slice(steps.reshape(result, joined), axis, steps.number(0),
                         shape);
    op.getResult().replaceAllUsesWith(steps.cast(result, element));
  }

  static TypedAttr numberOf(Type element, int64_t value) {
    if (isa<FloatType>(element))
      return FloatAttr::get(element, double(value));
    return IntegerAttr::get(element, value);
  }

  //===--- Sorts ----------------------------------------------------------===//

  /// The least few of a long row: those of each part of it, of which the least
  /// are taken in the same way. What is behind them may be anything.
  void selectInParts(SortOp op) {
    Exprs shape = getShape(op.getInput());
    int64_t last = shape.size() - 1;
    AffineMap count = op.getCount();
    auto kept = constantOf(count.getResult(0));
    Steps steps(op, symbols);
    if (!kept || *kept < 1 || *kept > sortLength / 4)
      return;
    TypedAttr most = numberOf(getElementTypeOrSelf(op.getType()),
                              std::numeric_limits<int64_t>::max());
    Value row = op.getInput();
    auto isLong = [&] {
      return steps.sizeOf(getShape(row)[last]) >= 2 * sortLength;
    };
    if (!isLong())
      return;
    while (isLong()) {
      Value parts = steps.inParts(row, last, sortLength, most),
            sorted = steps.make<SortOp>(parts.getType(), parts, count);
      Exprs best = getShape(parts), joined = getShape(row);
      best.back() = steps.number(*kept);
      joined[last] = simplify(best[last] * *kept);
      row = steps.reshape(steps.slice(sorted, last + 1, steps.number(0), best),
                          joined);
    }
    Value sorted = steps.make<SortOp>(row.getType(), row, count);
    op.getResult().replaceAllUsesWith(steps.fit(sorted, last, 0, most, shape));
  }

  /// Elements of a part: of a scan, what one instance takes at once; of a sort,
  /// what fits into shared memory.
  static constexpr int64_t scanLength = 1024, sortLength = 2048;
  /// Rows that leave a chip idle where each has one program instance.
  static constexpr int64_t fewRows = 64;

  SmallVector<int64_t> symbols;
};

} // namespace
