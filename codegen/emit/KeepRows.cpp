#include "codegen/emit/KeepRows.h"
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

/// What values of two loops' bodies have in common.
class Comparison {
public:
  Comparison(scf::ForOp first, scf::ForOp second,
             const llvm::SmallPtrSetImpl<Value> &written)
      : first(first), second(second), written(written) {}

  /// Whether `x`, of the first loop or around it, is `y` of the second in the
  /// iteration of the same number.
  bool areAlike(Value x, Value y) {
    if (x == y)
      return !isCarried(x);
    if (x == first.getInductionVar())
      return y == second.getInductionVar();
    auto [it, isNew] = known.try_emplace({x, y}, false);
    if (!isNew)
      return it->second;
    bool alike = isa<OpResult>(x) && isa<OpResult>(y) &&
                 cast<OpResult>(x).getResultNumber() ==
                     cast<OpResult>(y).getResultNumber() &&
                 doAlike(x.getDefiningOp(), y.getDefiningOp());
    return known[{x, y}] = alike;
  }

private:
  bool isCarried(Value value) {
    return llvm::is_contained(first.getRegionIterArgs(), value) ||
           llvm::is_contained(second.getRegionIterArgs(), value);
  }

  bool doAlike(Operation *a, Operation *b) {
    if (a == b)
      return true;
    if (a->getName() != b->getName() || a->getNumRegions() > 0 ||
        a->getNumOperands() != b->getNumOperands() ||
        a->getResultTypes() != b->getResultTypes() ||
        a->getAttrDictionary() != b->getAttrDictionary())
      return false;
    auto load = dyn_cast<tile::LoadOp>(a);
    if (load ? written.contains(load.getBuffer()) : !isPure(a))
      return false;
    return llvm::all_of(llvm::zip_equal(a->getOperands(), b->getOperands()),
                        [&](auto pair) {
                          return areAlike(std::get<0>(pair), std::get<1>(pair));
                        });
  }

  scf::ForOp first, second;
  const llvm::SmallPtrSetImpl<Value> &written;
  llvm::DenseMap<std::pair<Value, Value>, bool> known;
};

bool areEqual(Value x, Value y) {
  APInt a, b;
  return x == y || (matchPattern(x, m_ConstantInt(&a)) &&
                    matchPattern(y, m_ConstantInt(&b)) && a == b);
}

class Keeper {
public:
  explicit Keeper(func::FuncOp function) : function(function) {
    function.walk(
        [&](tile::StoreOp store) { written.insert(store.getBuffer()); });
    function.walk([&](tile::SortOp sort) { written.insert(sort.getBuffer()); });
  }

  void run(Block &block) {
    SmallVector<scf::ForOp> loops(block.getOps<scf::ForOp>());
    for (auto [i, later] : llvm::enumerate(loops))
      for (scf::ForOp earlier : ArrayRef(loops).take_front(i))
        if (areEqual(earlier.getLowerBound(), later.getLowerBound()) &&
            areEqual(earlier.getUpperBound(), later.getUpperBound()) &&
            areEqual(earlier.getStep(), later.getStep()) &&
            matchPattern(later.getLowerBound(), m_Zero()) &&
            matchPattern(later.getStep(), m_One()))
          share(earlier, later);
  }

private:
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

  void share(scf::ForOp earlier, scf::ForOp later) {
    // From the last operator to the first, so that the most is saved. None goes
    // before its readers.
    SmallVector<Operation *> ops;
    for (Operation &op : later.getBody()->without_terminator())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops)) {
      Comparison comparison(earlier, later, written);
      if (op->getNumResults() == 1 && canBeKept(op->getResult(0).getType()) &&
          !op->use_empty() && workFor(op->getResult(0), later) >= leastWork)
        for (Operation &own : earlier.getBody()->without_terminator())
          if (own.getName() == op->getName() &&
              comparison.areAlike(own.getResult(0), op->getResult(0))) {
            keep(own.getResult(0), op->getResult(0), earlier, later);
            break;
          }
      if (isOpTriviallyDead(op))
        op->erase();
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

  void keep(Value computed, Value again, scf::ForOp earlier, scf::ForOp later) {
    auto tile = cast<RankedTensorType>(computed.getType());
    int64_t count = tile::rangeOf(earlier.getUpperBound()).high,
            each = tile.getNumElements(),
            width = tile.getElementTypeBitWidth() / 8;
    Value &row = rows[computed];
    if (!row) {
      if (count <= 0 || count > (mostBytes - bytes) / (each * width))
        return;
      bytes += count * each * width;
      OpBuilder b(earlier);
      row = tile::LocalOp::create(
          b, earlier.getLoc(),
          tile::BufferType::get(tile.getContext(), tile.getElementType()),
          count * each);
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
  llvm::SmallPtrSet<Value, 8> written;
  /// What is kept, and where.
  llvm::DenseMap<Value, Value> rows;
  int64_t bytes = 0;
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
