#include "codegen/emit/KeepRows.h"
#include "codegen/tile/analysis/AlikeLoops.h"
#include "codegen/tile/analysis/Values.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;

namespace {

/// From how many operations on an element on keeping it costs less, and what
/// may be kept: it should stay in a core's own cache.
constexpr int64_t leastWork = 12, mostBytes = 256 << 10;

/// Operations on an element, as one for what the CPU has an instruction for.
int64_t workOf(Operation *op) {
  if (isa<arith::DivFOp, math::SqrtOp, math::RsqrtOp>(op))
    return 4;
  if (isa<math::AbsFOp, math::AbsIOp, math::CopySignOp, math::FloorOp,
          math::CeilOp, math::RoundEvenOp, math::TruncOp, math::FmaOp>(op))
    return 1;
  return isa_and_present<math::MathDialect>(op->getDialect()) ? 16 : 1;
}

class Keeper {
public:
  explicit Keeper(func::FuncOp function)
      : function(function), written(tile::writtenBuffers(function)) {}

  void run(Block &block) {
    Value open;
    for (auto [earlier, later] : pairsOf(block)) {
      int64_t count = tile::rangeOf(earlier.getUpperBound()).high;
      if (count != graph::Interval::noHigh)
        share(earlier, later, count);
      else if (!open && haveInCommon(earlier, later))
        open = earlier.getUpperBound();
    }
    if (open && block.getTerminator()->getNumOperands() == 0)
      keepWhatFits(block, open);
  }

private:
  /// Loops over the same numbers from 0 on, each pair in its order.
  SmallVector<std::pair<scf::ForOp, scf::ForOp>> pairsOf(Block &block) const {
    SmallVector<std::pair<scf::ForOp, scf::ForOp>> pairs;
    SmallVector<scf::ForOp> loops(block.getOps<scf::ForOp>());
    for (auto [i, later] : llvm::enumerate(loops))
      for (scf::ForOp earlier : ArrayRef(loops).take_front(i))
        if (countAlike(earlier, later))
          pairs.push_back({earlier, later});
    return pairs;
  }

  bool countAlike(scf::ForOp earlier, scf::ForOp later) const {
    auto counts = [](scf::ForOp loop) {
      return matchPattern(loop.getLowerBound(), m_Zero()) &&
             matchPattern(loop.getStep(), m_One());
    };
    return counts(earlier) && counts(later) &&
           tile::LoopComparison(earlier, later, written)
               .areAlike(earlier.getUpperBound(), later.getUpperBound());
  }

  /// What computing `value` takes in the body of `loop`, up to `leastWork`.
  int64_t workFor(Value value, scf::ForOp loop) {
    int64_t work = 0;
    SmallVector<Operation *> stack;
    llvm::SmallPtrSet<Operation *, 16> seen;
    auto push = [&](Value v) {
      Operation *op = v.getDefiningOp();
      if (op && op->getBlock() == loop.getBody() && seen.insert(op).second)
        stack.push_back(op);
    };
    push(value);
    while (!stack.empty() && work < leastWork) {
      Operation *op = stack.pop_back_val();
      work += workOf(op);
      for (Value operand : op->getOperands())
        push(operand);
    }
    return work;
  }

  static bool canBeKept(Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile && isa<FloatType, IntegerType>(tile.getElementType()) &&
           tile.getElementTypeBitWidth() >= 8;
  }

  /// What `earlier` computes that `op` of `later` would compute again at some
  /// cost; null where there is nothing.
  Value computedBefore(Operation &op, scf::ForOp earlier, scf::ForOp later) {
    if (op.getNumResults() != 1 || !canBeKept(op.getResult(0).getType()) ||
        op.use_empty() || workFor(op.getResult(0), later) < leastWork)
      return {};
    tile::LoopComparison comparison(earlier, later, written);
    for (Operation &own : earlier.getBody()->without_terminator())
      if (own.getName() == op.getName() &&
          comparison.areAlike(own.getResult(0), op.getResult(0)))
        return own.getResult(0);
    return {};
  }

  bool haveInCommon(scf::ForOp earlier, scf::ForOp later) {
    return llvm::any_of(later.getBody()->without_terminator(),
                        [&](Operation &op) {
                          return computedBefore(op, earlier, later) != Value();
                        });
  }

  void share(scf::ForOp earlier, scf::ForOp later, int64_t count) {
    // From the last operator to the first, so that the most is saved. None goes
    // before its readers.
    SmallVector<Operation *> ops;
    for (Operation &op : later.getBody()->without_terminator())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops)) {
      if (Value computed = computedBefore(*op, earlier, later))
        keep(computed, op->getResult(0), earlier, later, count);
      if (isOpTriviallyDead(op))
        op->erase();
    }
  }

  /// A copy of what `block` has behind the definition of `count`, for no more
  /// than a constant, and this.
  static std::pair<Block *, arith::ConstantIndexOp> versionOf(Block &block,
                                                              Value count) {
    Operation *definition = count.getDefiningOp();
    bool isInside = definition && definition->getBlock() == &block;
    auto from = isInside ? std::next(definition->getIterator()) : block.begin();
    OpBuilder b(&block, from);
    Location loc = count.getLoc();
    auto most = arith::ConstantIndexOp::create(b, loc, 0);
    Value fits =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, count, most);
    auto branch = scf::IfOp::create(b, loc, fits, /*withElseRegion=*/true);
    Block &copy = branch.getThenRegion().front(),
          &others = branch.getElseRegion().front();
    others.getOperations().splice(others.begin(), block.getOperations(), from,
                                  block.getTerminator()->getIterator());
    IRMapping mapping;
    b.setInsertionPointToStart(&copy);
    for (Operation &op : others.without_terminator())
      b.clone(op, mapping);
    return {&copy, most};
  }

  /// Of rows of an open number of tiles nobody knows whether there is room for
  /// them: those that fit have a body of their own, in which they are kept.
  void keepWhatFits(Block &block, Value count) {
    auto [fitting, limit] = versionOf(block, count);
    int64_t before = bytes;
    kept.clear();
    for (auto [earlier, later] : pairsOf(*fitting))
      if (tile::LoopComparison(earlier, later, written)
              .areAlike(earlier.getUpperBound(), count))
        share(earlier, later, /*count=*/1);
    // Bodies for other sizes use the same memory of a cache.
    int64_t each = std::exchange(bytes, before) - before,
            most = each ? (mostBytes - before) / each : 0;
    OpBuilder b(limit);
    limit.setValueAttr(b.getIndexAttr(most));
    for (tile::LocalOp row : kept)
      resize(row, std::max<int64_t>(most, 1));
  }

  /// Makes room for `count` tiles in the place of one.
  static void resize(tile::LocalOp row, int64_t count) {
    row.setElements(row.getElements() * count);
    for (Operation *user : row.getBuffer().getUsers()) {
      if (auto store = dyn_cast<tile::StoreOp>(user))
        store.setShape(
            placeOf(cast<RankedTensorType>(store.getValue().getType()), count)
                .shape);
      else
        cast<tile::LoadOp>(user).setShape(
            placeOf(cast<RankedTensorType>(user->getResult(0).getType()), count)
                .shape);
    }
  }

  /// A tile of the row that is kept, at the counter of `loop`.
  struct Place {
    AffineMap map, shape;
  };
  static Place placeOf(RankedTensorType tile, int64_t count) {
    MLIRContext *context = tile.getContext();
    SmallVector<AffineExpr> at{getAffineSymbolExpr(0, context)},
        extents{getAffineConstantExpr(count, context)};
    for (auto [i, extent] : llvm::enumerate(tile.getShape())) {
      at.push_back(getAffineDimExpr(i, context));
      extents.push_back(getAffineConstantExpr(extent, context));
    }
    return {AffineMap::get(tile.getRank(), 1, at, context),
            AffineMap::get(0, 1, extents, context)};
  }

  void keep(Value computed, Value again, scf::ForOp earlier, scf::ForOp later,
            int64_t count) {
    auto tile = cast<RankedTensorType>(computed.getType());
    int64_t each = tile.getNumElements(),
            width = tile.getElementTypeBitWidth() / 8;
    Value &row = rows[computed];
    if (!row) {
      if (count <= 0 || count > (mostBytes - bytes) / (each * width))
        return;
      bytes += count * each * width;
      OpBuilder b(earlier);
      auto local = tile::LocalOp::create(
          b, earlier.getLoc(),
          tile::BufferType::get(tile.getContext(), tile.getElementType()),
          count * each);
      kept.push_back(local);
      row = local;
      Place place = placeOf(tile, count);
      b.setInsertionPointAfterValue(computed);
      tile::StoreOp::create(b, computed.getLoc(), computed, row,
                            earlier.getInductionVar(), place.map, place.shape,
                            tile.getRank() + 1, ArrayRef<int64_t>{},
                            tile::UpdateAttr());
    }
    Place place = placeOf(tile, count);
    OpBuilder b(again.getContext());
    b.setInsertionPointAfterValue(again);
    Value kept = tile::LoadOp::create(
        b, again.getLoc(), tile, row, later.getInductionVar(), place.map,
        place.shape, tile.getRank() + 1, ArrayRef<int64_t>{},
        /*independent=*/false);
    again.replaceAllUsesWith(kept);
  }

  func::FuncOp function;
  llvm::SmallPtrSet<Value, 4> written;
  /// What is kept, and where.
  llvm::DenseMap<Value, Value> rows;
  int64_t bytes = 0;
  /// The last that were made.
  SmallVector<tile::LocalOp> kept;
};

} // namespace

void emit::keepRows(func::FuncOp function) {
  SmallVector<Block *> blocks;
  function.walk([&](Block *block) {
    if (isa<func::FuncOp, scf::ForOp, scf::IfOp>(block->getParentOp()))
      blocks.push_back(block);
  });
  Keeper keeper(function);
  for (Block *block : blocks)
    keeper.run(*block);
}
