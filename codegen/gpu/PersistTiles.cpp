#include "codegen/gpu/PersistTiles.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/KeepRows.h"
#include "codegen/gpu/Loops.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// A kernel of one loop over terms, and what it does of each tile.
struct Tiles {
  tile::ProgramIdOp id;
  scf::ForOp inner;
  /// What an instance walks along: the tile's number, or of tiles in several
  /// blocks, one block after another, its number in a block.
  Value walked;
  /// `block` is a tile's block, where there are several.
  Operation *block = nullptr;
  int64_t blocks = 1;
  /// Tiles of a block, and iterations of the loop over terms.
  int64_t count = 0, trips = 0;
  SmallVector<Stream> streams;
};

/// Takes a tile's number apart if all that is asked of it are the quotient and
/// the remainder of one division.
void findBlocks(Tiles &tiles) {
  tiles.walked = tiles.id.getResult();
  arith::RemUIOp rest;
  arith::DivUIOp block;
  APInt divisor;
  for (Operation *user : tiles.walked.getUsers()) {
    if (user->getOperand(0) != tiles.walked)
      return;
    if (auto op = dyn_cast<arith::RemUIOp>(user); op && !rest)
      rest = op;
    else if (auto op = dyn_cast<arith::DivUIOp>(user); op && !block)
      block = op;
    else
      return;
  }
  APInt other;
  if (!rest || !block ||
      !matchPattern(rest.getRhs(), m_ConstantInt(&divisor)) ||
      !matchPattern(block.getRhs(), m_ConstantInt(&other)) ||
      divisor != other || divisor.isZero() ||
      tiles.count % divisor.getSExtValue() != 0)
    return;
  tiles.walked = rest;
  tiles.block = block;
  tiles.blocks = tiles.count / divisor.getSExtValue();
  tiles.count = divisor.getSExtValue();
}

/// The kernel, if it is of one loop over terms and a known number of tiles,
/// none of which needs another instance.
std::optional<Tiles> findTiles(func::FuncOp function) {
  Tiles tiles;
  auto grid = function->getAttrOfType<AffineMapAttr>(tile::kGridAttr);
  if (!grid || !grid.getValue().isSingleConstant() ||
      function->hasAttr(tile::kClusterAttr) ||
      function->hasAttr(tile::kScratchAttr) ||
      !function.getBody().hasOneBlock())
    return std::nullopt;
  tiles.count = grid.getValue().getSingleConstantResult();
  for (Operation &op : function.getBody().front()) {
    if (auto id = dyn_cast<tile::ProgramIdOp>(op)) {
      if (tiles.id)
        return std::nullopt;
      tiles.id = id;
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (tiles.inner || loop.getBody()->getOps<simt::WarpgroupDotOp>().empty())
        return std::nullopt;
      tiles.inner = loop;
    } else if (op.getNumRegions() ||
               isa<tile::SplitSumOp, simt::ExchangeOp, simt::ToSharedOp>(op)) {
      return std::nullopt;
    }
  }
  if (!tiles.id || !tiles.inner)
    return std::nullopt;
  std::optional<int64_t> trips = countOf(tiles.inner);
  if (!trips || *trips < 2)
    return std::nullopt;
  tiles.trips = *trips;
  tiles.streams = findStreams(tiles.inner);
  findBlocks(tiles);
  return tiles;
}

/// Instances of a multiprocessor that have room for all terms of both operands
/// beside what goes through shared memory to be stored.
int64_t residentsOf(func::FuncOp function, Tiles &tiles,
                    const GpuTarget &target, unsigned warps) {
  constexpr int64_t most = 4, otherWords = 64, words = 65536, lanes = 32;
  int64_t bytes = 0, held = otherWords;
  for (const Stream &stream : tiles.streams)
    bytes += tiles.trips *
             simt::ToSharedOp(stream.op).getMemory().getType().getBytes();
  function.walk([&](tile::StoreOp store) {
    auto type = cast<RankedTensorType>(store.getValue().getType());
    bytes +=
        type.getNumElements() * simt::elementBits(type.getElementType()) / 8;
  });
  for (Value result : tiles.inner.getResults())
    held += wordsOf(result);
  for (int64_t residents = most; residents > 1; --residents)
    if (bytes <= sharedBytesOf(target.sharedBytes, residents) &&
        held * warps * lanes * residents <= words)
      return residents;
  return 1;
}

/// Values that depend on the tile, among those of the function's body.
llvm::DenseSet<Value> valuesOfTile(Value tile) {
  llvm::DenseSet<Value> found{tile};
  for (Operation &op : *tile.getParentBlock()) {
    bool depends = llvm::any_of(op.getOperands(), [&](Value operand) {
      return found.contains(operand);
    });
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        depends |= found.contains(operand);
    });
    if (depends)
      found.insert(op.getResults().begin(), op.getResults().end());
  }
  return found;
}

/// What may be done once, in front of all tiles: numbers, and what no kernel
/// writes, as long as registers hold it.
llvm::DenseSet<Operation *> doneOnce(Value tile) {
  llvm::DenseSet<Value> ofTile = valuesOfTile(tile);
  llvm::DenseSet<Operation *> once;
  unsigned words = 0;
  for (Operation &op : *tile.getParentBlock()) {
    bool isFree = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return !ofTile.contains(operand) && (!def || once.contains(def));
    });
    if (!isFree || op.getNumResults() != 1)
      continue;
    auto load = dyn_cast<tile::LoadOp>(op);
    if (load && load.getIndependent() &&
        words + wordsOf(load) <= kMostEarlyWords)
      words += wordsOf(load);
    else if (!isMemoryEffectFree(&op) ||
             isa<RankedTensorType>(op.getResult(0).getType()))
      continue;
    once.insert(&op);
  }
  return once;
}

/// Leaves each instance in one block of columns, of which each has so many
/// instances: what it walks along is the tile's number in the block.
void stayInBlock(Tiles &tiles, int64_t instances) {
  OpBuilder b(tiles.id->getContext());
  b.setInsertionPointAfter(tiles.id);
  Location loc = tiles.id.getLoc();
  Value each = arith::ConstantIndexOp::create(b, loc, instances);
  Operation *rest = tiles.walked.getDefiningOp();
  Value first = arith::RemUIOp::create(b, loc, tiles.id, each),
        block = arith::DivUIOp::create(b, loc, tiles.id, each);
  tiles.block->getResult(0).replaceAllUsesWith(block);
  tiles.block->erase();
  tiles.walked.replaceAllUsesWith(first);
  rest->erase();
  tiles.walked = first;
}

} // namespace

std::optional<llvm::SetVector<Operation *>>
charonia::gpu::placeOfTile(const Stream &stream, scf::ForOp inner,
                           Block &body) {
  llvm::SetVector<Operation *> slice;
  for (Operation *op : stream.slice)
    for (Value operand : op->getOperands())
      if (!collectArithmetic(operand, body, slice))
        return std::nullopt;
  return slice;
}

bool charonia::gpu::isResident(const Stream &stream, scf::ForOp inner,
                               Block &body, Value tile) {
  auto place = placeOfTile(stream, inner, body);
  auto usesTile = [&](Operation *op) {
    return llvm::is_contained(op->getOperands(), tile);
  };
  return place && llvm::none_of(*place, usesTile) &&
         llvm::none_of(stream.slice, usesTile);
}

scf::ForOp charonia::gpu::loopOverTiles(Value tile, int64_t count,
                                        int64_t instances, ValueRange inits) {
  Block &body = *tile.getParentBlock();
  llvm::DenseSet<Operation *> once = doneOnce(tile);
  SmallVector<Operation *> moved;
  for (Operation &op : body.without_terminator())
    if (!once.contains(&op) && &op != tile.getDefiningOp())
      moved.push_back(&op);
  OpBuilder b(body.getTerminator());
  Location loc = tile.getLoc();
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(
      b, loc, tile, constant(count), constant(instances), inits,
      [](OpBuilder &b, Location loc, Value, ValueRange values) {
        scf::YieldOp::create(b, loc, values);
      });
  loop->setAttr(kTilesAttr, b.getUnitAttr());
  for (Operation *op : moved)
    op->moveBefore(loop.getBody()->getTerminator());
  tile.replaceUsesWithIf(loop.getInductionVar(), [&](OpOperand &use) {
    return loop->isProperAncestor(use.getOwner());
  });
  return loop;
}

void charonia::gpu::persistTiles(func::FuncOp function, const GpuTarget &target,
                                 unsigned warps, unsigned stages) {
  constexpr int64_t fewestRounds = 3;
  std::optional<Tiles> tiles = findTiles(function);
  if (!tiles || tiles->trips > stages)
    return;
  Block &body = function.getBody().front();
  unsigned resident = 0;
  for (const Stream &stream : tiles->streams) {
    if (!stream.copy || !placeOfTile(stream, tiles->inner, body))
      return;
    resident += isResident(stream, tiles->inner, body, tiles->walked);
  }
  int64_t residents = residentsOf(function, *tiles, target, warps),
          each = residents * target.multiprocessors / tiles->blocks,
          instances = each * tiles->blocks;
  if (resident != 1 || tiles->streams.size() != 2 || residents < 2 ||
      each == 0 || llvm::divideCeil(tiles->count, each) < fewestRounds)
    return;
  if (tiles->block)
    stayInBlock(*tiles, each);
  loopOverTiles(tiles->walked, tiles->count, each);
  OpBuilder b(function.getContext());
  function->setAttr(tile::kGridAttr,
                    AffineMapAttr::get(AffineMap::getConstantMap(
                        instances, function.getContext())));
  function->setAttr(tile::kResidentsAttr, b.getI64IntegerAttr(residents));
}
