#include "codegen/gpu/Overhang.h"
#include "codegen/tile/analysis/Access.h"
#include "codegen/tile/analysis/Values.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// Follows results of dots to what stores them, along the axis that is rows.
class Follower {
public:
  explicit Follower(const RowNumber &rows) : rows(rows) {}

  /// Of the stores that were met.
  int64_t stored = 0;

  bool follow(Value value, unsigned axis) {
    if (!seen.insert(value).second)
      return true;
    return llvm::all_of(value.getUses(),
                        [&](OpOperand &use) { return followUse(use, axis); });
  }

private:
  bool followUse(OpOperand &use, unsigned axis) {
    Operation *op = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (auto store = dyn_cast<tile::StoreOp>(op))
      return number == 0 && isInside(store, axis);
    if (auto dot = dyn_cast<simt::WarpgroupDotOp>(op))
      return &use == &dot.getAccumulatorMutable() &&
             follow(dot.getResult(), axis);
    if (isa<simt::WaitDotsOp>(op))
      return follow(op->getResult(number), axis);
    if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      auto loop = dyn_cast<scf::ForOp>(yield->getParentOp());
      return loop && follow(loop.getRegionIterArg(number), axis) &&
             follow(loop.getResult(number), axis);
    }
    if (auto transpose = dyn_cast<tile::TransposeOp>(op))
      return follow(transpose.getResult(),
                    llvm::find(transpose.getPermutation(), axis) -
                        transpose.getPermutation().begin());
    if (auto spread = dyn_cast<tile::BroadcastOp>(op))
      return follow(spread.getResult(), spread.getAxes()[axis]);
    // What rows have together, each by itself.
    if (auto split = dyn_cast<tile::SplitAxisOp>(op))
      return split.getAxis() != axis &&
             follow(split.getResult(), axis + (split.getAxis() < axis));
    if (auto join = dyn_cast<tile::JoinAxesOp>(op)) {
      unsigned joined = join.getAxis();
      return axis != joined && axis != joined + 1 &&
             follow(join.getResult(), axis - (axis > joined));
    }
    if (auto part = dyn_cast<tile::CellPartOp>(op))
      return part.getAxis() != axis && follow(part.getResult(), axis);
    if (auto swap = dyn_cast<tile::SwapHalvesOp>(op))
      return swap.getAxis() != axis && follow(swap.getResult(), axis);
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      return reduce.getAxis() != axis &&
             llvm::all_of(op->getResults(), [&](Value result) {
               return follow(result, axis - (reduce.getAxis() < axis));
             });
    if (auto shared = dyn_cast<simt::ToSharedOp>(op))
      return followMemory(shared.getMemory(), axis);
    if (auto shared = dyn_cast<simt::StoreSharedOp>(op))
      return followMemory(shared.getMemory(), axis);
    if (op->hasTrait<OpTrait::Elementwise>() ||
        isa<simt::ConvertOp, tile::SplitSumOp, simt::ExchangeOp>(op))
      return llvm::all_of(op->getResults(),
                          [&](Value result) { return follow(result, axis); });
    return false;
  }

  /// What passes through shared memory as it is.
  bool followMemory(Value memory, unsigned axis) {
    auto shape = cast<simt::MemoryType>(memory.getType()).getShape();
    return llvm::all_of(memory.getUsers(), [&](Operation *user) {
      auto load = dyn_cast<simt::LoadSharedOp>(user);
      return isa<simt::StoreSharedOp>(user) ||
             (load && load.getResult().getType().getShape() == shape &&
              follow(load.getResult(), axis));
    });
  }

  /// An expression over the rows and the values of both sides.
  AffineExpr rebase(AffineExpr expr, unsigned dim, ValueRange symbols) {
    MLIRContext *context = expr.getContext();
    SmallVector<AffineExpr> to;
    for (Value symbol : symbols) {
      values.insert(symbol);
      to.push_back(getAffineSymbolExpr(
          llvm::find(values, symbol) - values.begin(), context));
    }
    SmallVector<AffineExpr> dims(dim + 1, getAffineDimExpr(1, context));
    dims[dim] = getAffineDimExpr(0, context);
    return expr.replaceDimsAndSymbols(dims, to);
  }

  /// Whether what a store writes of rows has a number less than `size` that is
  /// the row's: then no row beyond is stored.
  bool isRow(tile::StoreOp store, unsigned axis, AffineExpr number,
             AffineExpr size) {
    values.clear();
    AffineExpr row = rebase(rows.number, rows.dim, rows.values);
    number = rebase(number, axis, store.getSymbols());
    graph::Facts facts = tile::factsOf(
        {store.getValue().getType().getDimSize(axis)}, values.getArrayRef());
    std::optional<int64_t> count = graph::constantOf(
        graph::simplify(size, tile::factsOf({}, store.getSymbols())));
    if (!count || graph::constantOf(graph::simplify(row - number, facts)) != 0)
      return false;
    stored = std::max(stored, *count);
    return true;
  }

  /// What is inside of the buffer has, of the dimensions that rows move, a
  /// number less than the product of their sizes. Where rows go elsewhere their
  /// own number may be checked beside.
  bool isInside(tile::StoreOp store, unsigned axis) {
    MLIRContext *context = store.getContext();
    auto isOfRows = [&](AffineExpr coordinate) {
      return !coordinate.isFunctionOfDim(1 - axis);
    };
    for (int64_t i : store.getChecks())
      if (AffineExpr checked = store.getMap().getResult(i);
          isOfRows(checked) &&
          isRow(store, axis, checked, store.getShape().getResult(i)))
        return true;
    AffineExpr sum = getAffineConstantExpr(0, context),
               size = getAffineConstantExpr(1, context);
    for (int64_t i = int64_t(store.getRank()) - 1; i >= 0; --i) {
      AffineExpr coordinate = store.getMap().getResult(i);
      if (!coordinate.isFunctionOfDim(axis))
        continue;
      if (!isOfRows(coordinate))
        return false;
      sum = sum + coordinate * size;
      size = size * store.getShape().getResult(i);
    }
    return isRow(store, axis, sum, size);
  }

  const RowNumber &rows;
  DenseSet<Value> seen;
  llvm::SetVector<Value> values;
};

} // namespace

std::optional<int64_t> charonia::gpu::storedRows(simt::ToSharedOp operand,
                                                 const RowNumber &rows) {
  Follower follower(rows);
  for (OpOperand &use : operand.getMemory().getUses()) {
    auto dot = dyn_cast<simt::WarpgroupDotOp>(use.getOwner());
    if (!dot || !follower.follow(dot.getResult(), use.getOperandNumber()))
      return std::nullopt;
  }
  return follower.stored ? std::optional(follower.stored) : std::nullopt;
}
