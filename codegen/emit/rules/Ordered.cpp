// Scans and sorts: rows are walked from end to end, in blocks.
#include "codegen/emit/KernelShape.h"
#include "codegen/emit/rules/Rules.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

int64_t emit::orderedBlock(const Demand &demand) {
  constexpr int64_t most = 1024;
  int64_t others = 1;
  for (int64_t extent : demand.tile)
    others *= extent;
  return std::max<int64_t>(most / others, 1);
}

namespace {

/// What is left of a tile without the axis `along`.
Value combineAlong(TileEmitter &e, Value tile, int64_t along,
                   const ReductionOf &reduction) {
  OpBuilder &b = e.b();
  auto from = cast<RankedTensorType>(tile.getType());
  Type type = from.getElementType();
  SmallVector<int64_t> shape(from.getShape());
  shape.erase(shape.begin() + along);
  auto reduce = tile::ReduceOp::create(
      b, e.loc(), TypeRange{e.tileType(shape, type)}, tile, along);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&reduce.getCombiner());
  Value x = body->addArgument(type, e.loc()),
        y = body->addArgument(type, e.loc());
  tile::YieldOp::create(b, e.loc(), reduction(b, e.loc(), x, y));
  return reduce.getResult(0);
}

/// A scan of the rows that one program instance has. What a block begins with
/// is carried from the block before.
class ScanEmitter {
public:
  ScanEmitter(graph::ScanOp op, TileEmitter &e, const Demand &demand,
              Value buffer)
      : op(op), e(e), b(e.b()), demand(demand), buffer(buffer),
        shape(graph::getShape(op.getInput())), axis(op.getAxis()),
        reduction{op.getKind(), isUnsignedElement(op.getType())},
        type(e.computeType(getElementTypeOrSelf(op.getType()))) {}

  LogicalResult run() {
    AffineExpr n = e.simplify(shape[axis], {});
    bool contiguous = endsWithLast({axis}, shape);
    if (e.getTarget().kind == EmitTarget::Kind::Cpu)
      return contiguous ? cpuRows(n) : oneByOne(n);
    if (op.combinesOneByOne())
      return contiguous ? rows(n, oneByOneBlock(n)) : someAtOnce(n);
    if (contiguous && demand.tile.empty())
      return gpuRow(n);
    // Short rows at once; of long ones that lie across memory some elements, so
    // that they are on their way together.
    auto known = graph::constantOf(n);
    int64_t most =
        contiguous ? std::min<int64_t>(orderedBlock(demand), 256) : 8;
    return rows(
        n, known ? std::min<int64_t>(most, llvm::bit_ceil<uint64_t>(
                                               std::max<int64_t>(*known, 1)))
                 : most);
  }

private:
  int64_t cpuBlock(AffineExpr n) const {
    int64_t most = 4 * e.getTarget().vectorElements;
    return std::clamp<int64_t>(graph::constantOf(n).value_or(most), 1, most);
  }

  /// Rows of an open length may be short.
  LogicalResult cpuRows(AffineExpr n) {
    int64_t least = e.getTarget().vectorElements;
    if (graph::constantOf(n) || graph::boundsOf(n, e.facts({})).low > least)
      return rows(n, cpuBlock(n));
    return e.branchOnExtent(
        n, least, [&] { return rows(n, least); },
        [&] { return rows(n, cpuBlock(n)); });
  }

  /// What the rows begin with.
  FailureOr<SmallVector<Value>> start() {
    if (!op.getInitial())
      return SmallVector<Value>{neutral(demand.tile)};
    Exprs rows = graph::getShape(op.getInitial());
    auto combine = [&](OpBuilder &b, Location loc, ArrayRef<Value> x,
                       ArrayRef<Value> y) {
      return SmallVector<Value>{reduction(b, loc, x[0], y[0])};
    };
    return reduceOver(e, demand, rows[axis], endsWithLast({axis}, rows),
                      {reduction.neutral(type)}, combine,
                      [&](const Demand &axes,
                          AffineExpr index) -> FailureOr<SmallVector<Value>> {
                        Demand d = axes;
                        d.value = op.getInitial();
                        d.coordinates[axis] = index;
                        FailureOr<Value> x = e.emit(d);
                        if (failed(x))
                          return failure();
                        return SmallVector<Value>{*x};
                      });
  }

  /// Elements of a row that one thread holds.
  int64_t oneByOneBlock(AffineExpr n) const {
    constexpr int64_t most = 128;
    return std::min<int64_t>(
        most, llvm::bit_ceil<uint64_t>(
                  std::max<int64_t>(graph::constantOf(n).value_or(most), 1)));
  }

  Value neutral(ArrayRef<int64_t> tile) {
    return e.splat(reduction.neutral(type), tile);
  }

  /// The input, or the result, at `index` along the axis.
  Demand at(const Demand &like, Value value, AffineExpr index) {
    Demand d = like;
    d.value = value;
    d.coordinates[axis] = op.getReverse() ? shape[axis] - 1 - index : index;
    return d;
  }
  FailureOr<Value> read(const Demand &like, AffineExpr index) {
    return e.emit(at(like, op.getInput(), index));
  }
  void write(const Demand &like, AffineExpr index, Value tile) {
    e.storeResult(tile, buffer, at(like, op.getResult(), index));
  }

  /// Result and total of a block along the last axis of its tile.
  std::pair<Value, Value> scan(Value block, Value carry) {
    auto rank = cast<RankedTensorType>(block.getType()).getRank();
    auto scan = tile::ScanOp::create(
        b, e.loc(), {block.getType(), carry.getType()}, block, carry, rank - 1);
    if (op.combinesOneByOne())
      scan->setAttr(tile::kOneByOneAttr, b.getUnitAttr());
    OpBuilder::InsertionGuard guard(b);
    Block *body = b.createBlock(&scan.getCombiner());
    Value x = body->addArgument(type, e.loc()),
          y = body->addArgument(type, e.loc());
    tile::YieldOp::create(b, e.loc(), reduction(b, e.loc(), x, y));
    return {scan.getResult(), scan.getTotal()};
  }

  /// Blocks of `block` elements of each row of the tile.
  LogicalResult rows(AffineExpr n, int64_t block) {
    if (block == 1)
      return oneByOne(n);
    Demand inner = e.addAxis(demand, block);
    auto body = [&](AffineExpr i,
                    ArrayRef<Value> carry) -> FailureOr<SmallVector<Value>> {
      AffineExpr index = i * block + e.axis(demand.rank());
      FailureOr<Value> x = read(inner, index);
      if (failed(x))
        return failure();
      auto [result, total] = scan(*x, carry[0]);
      write(inner, index, result);
      return SmallVector<Value>{total};
    };
    FailureOr<SmallVector<Value>> first = start();
    AffineExpr blocks = e.isOneTile(n, block)
                            ? e.constant(1)
                            : (n + (block - 1)).floorDiv(block);
    return success(succeeded(first) && succeeded(e.loop(blocks, *first, body)));
  }

  /// Rows across memory, an element of each at a time.
  LogicalResult oneByOne(AffineExpr n) {
    FailureOr<SmallVector<Value>> first = start();
    return success(succeeded(first) &&
                   succeeded(elements(n, 1, e.constant(0), *first)));
  }

  /// The same: some elements of each row are on their way together, and what
  /// is left of a row follows.
  LogicalResult someAtOnce(AffineExpr n) {
    constexpr int64_t together = 32;
    AffineExpr blocks = e.simplify(n.floorDiv(together), {});
    FailureOr<SmallVector<Value>> carry = start();
    if (succeeded(carry))
      carry = elements(blocks, together, e.constant(0), *carry);
    if (failed(carry))
      return failure();
    AffineExpr rest = e.simplify(n - blocks * together, {});
    if (graph::constantOf(rest) == 0)
      return success();
    return success(succeeded(elements(rest, 1, blocks * together, *carry)));
  }

  /// `count` times the next `together` elements of each row, from `first` on.
  FailureOr<SmallVector<Value>> elements(AffineExpr count, int64_t together,
                                         AffineExpr first,
                                         ArrayRef<Value> initial) {
    auto body = [&](AffineExpr i,
                    ArrayRef<Value> carry) -> FailureOr<SmallVector<Value>> {
      SmallVector<Value> terms;
      for (int64_t k = 0; k < together; ++k) {
        FailureOr<Value> x = read(demand, first + i * together + k);
        if (failed(x))
          return failure();
        terms.push_back(*x);
      }
      Value total = carry[0];
      for (auto [k, x] : llvm::enumerate(terms)) {
        total = reduction(b, e.loc(), total, x);
        write(demand, first + i * together + int64_t(k), total);
      }
      return SmallVector<Value>{total};
    };
    return e.loop(count, initial, body);
  }

  /// What is in front of each of some totals.
  Value before(Value totals, int64_t count) {
    auto square = e.tileType({count, count}, type);
    Value others = tile::BroadcastOp::create(b, e.loc(), square, totals,
                                             ArrayRef<int64_t>{1});
    Value isBefore =
        arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt,
                              e.emitIndex(e.axis(1), {count, count}),
                              e.emitIndex(e.axis(0), {count, count}));
    return reduceTile(arith::SelectOp::create(b, e.loc(), isBefore, others,
                                              neutral({count, count})),
                      1);
  }

  Value reduceTile(Value tile, int64_t along) {
    return combineAlong(e, tile, along, reduction);
  }

  /// One long row: each warp scans a part of the block, and what the parts
  /// before it sum up to is added.
  LogicalResult gpuRow(AffineExpr n) {
    constexpr int64_t part = 128;
    int64_t parts = e.getSchedule().warps, block = part * parts;
    Demand inner = e.addAxis(e.addAxis(demand, parts), part);
    auto body = [&](AffineExpr i,
                    ArrayRef<Value> carry) -> FailureOr<SmallVector<Value>> {
      AffineExpr index = i * block + e.axis(0) * part + e.axis(1);
      FailureOr<Value> x = read(inner, index);
      if (failed(x))
        return failure();
      auto [result, totals] = scan(*x, neutral({parts}));
      auto each = e.tileType({parts}, type);
      Value start = tile::BroadcastOp::create(b, e.loc(), each, carry[0],
                                              ArrayRef<int64_t>{});
      start = reduction(b, e.loc(), start, before(totals, parts));
      Value spread = tile::BroadcastOp::create(b, e.loc(), result.getType(),
                                               start, ArrayRef<int64_t>{0});
      write(inner, index, reduction(b, e.loc(), spread, result));
      return SmallVector<Value>{
          reduction(b, e.loc(), carry[0], reduceTile(totals, 0))};
    };
    FailureOr<SmallVector<Value>> first = start();
    return success(
        succeeded(first) &&
        succeeded(e.loop((n + (block - 1)).floorDiv(block), *first, body)));
  }

  graph::ScanOp op;
  TileEmitter &e;
  OpBuilder &b;
  const Demand &demand;
  Value buffer;
  Exprs shape;
  int64_t axis;
  ReductionOf reduction;
  Type type;
};

LogicalResult scan(graph::ScanOp op, TileEmitter &e, const Demand &demand,
                   Value buffer) {
  return ScanEmitter(op, e, demand, buffer).run();
}

/// The row becomes the result's and is sorted there.
LogicalResult sort(graph::SortOp op, TileEmitter &e, const Demand &demand,
                   Value buffer) {
  Exprs shape = graph::getShape(op.getResult());
  AffineExpr n = shape.back();
  int64_t block = 4 * e.getTarget().vectorElements;
  if (e.getTarget().kind == EmitTarget::Kind::Gpu)
    block =
        std::min<int64_t>(1024, llvm::bit_ceil<uint64_t>(std::max<int64_t>(
                                    graph::constantOf(n).value_or(1024), 1)));
  Demand inner = e.addAxis(demand, block);
  auto copy = [&](AffineExpr i,
                  ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
    Demand at = inner;
    at.coordinates.back() = i * block + e.axis(demand.rank());
    Demand input = at;
    input.value = op.getInput();
    FailureOr<Value> keys = e.emit(input);
    if (failed(keys))
      return failure();
    e.storeResult(*keys, buffer, at);
    return SmallVector<Value>{};
  };
  if (failed(e.loop((n + (block - 1)).floorDiv(block), {}, copy)))
    return failure();
  AffineExpr first = e.constant(0);
  for (auto [c, extent] : llvm::zip(demand.coordinates, shape))
    first = first * extent + c;
  Value count = e.materialize(e.simplify(n, {})),
        kept = e.materialize(e.simplify(op.getCount().getResult(0), {}));
  kept = arith::MinSIOp::create(e.b(), e.loc(), kept, count);
  tile::SortOp::create(e.b(), e.loc(), buffer,
                       e.materialize(e.simplify(first, {})), count, kept);
  return success();
}

} // namespace

void emit::registerOrderedRules(MLIRContext *c) {
  graph::SortOp::attachInterface<OrderedRule<graph::SortOp, sort>>(*c);
  graph::ScanOp::attachInterface<OrderedRule<graph::ScanOp, scan>>(*c);
}
