// The walk of a program instance over its part of a kernel's results.
#include "codegen/emit/KernelBuilder.h"
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

LogicalResult KernelBuilder::walkTile(unsigned group, Value first, int64_t size,
                                      int64_t inside, int64_t divisor) {
  AffineExpr limit = extentOf(schedule.groups[group]) - (inside - 1);
  starts[group] = e.addSymbol(first, e.simplify(limit, {}), divisor);
  tiles[group] = size;
  axes.clear();
  for (unsigned of : schedule.axes)
    if (of != group || size > 1)
      axes.push_back(of);
  SmallVector<AffineExpr> before = coordinates;
  LogicalResult walked = walk(0);
  coordinates = before;
  guards.clear();
  return walked;
}

LogicalResult KernelBuilder::walkUpTo(unsigned group, Value first, Value left,
                                      int64_t size) {
  const Schedule::Group &g = schedule.groups[group];
  int64_t inside = size == g.shortest ? 1 : size / 2 + 1;
  if (size >= g.rest)
    return walkTile(group, first, g.rest, inside);
  Value fits = arith::CmpIOp::create(
      b, kernel.getLoc(), arith::CmpIPredicate::sle, left, index(size));
  return e.branch(
      fits, [&] { return walkTile(group, first, size, inside); },
      [&] {
        return walkUpTo(group, first, left, std::max(2 * size, g.shortest));
      });
}

LogicalResult KernelBuilder::walkPartOfRest(unsigned group, Value first,
                                            Value left) {
  const Schedule::Group &g = schedule.groups[group];
  if (g.singles || g.shortest < g.rest)
    return walkUpTo(group, first, left, g.singles == 1 ? 1 : g.shortest);
  // Of tiles of one length those that lie inside look at no element's place.
  if (g.rest == g.tile)
    return walkTile(group, first, g.rest, /*inside=*/1);
  Value isInside = arith::CmpIOp::create(
      b, kernel.getLoc(), arith::CmpIPredicate::sge, left, index(g.rest));
  return e.branch(
      isInside, [&] { return walkTile(group, first, g.rest, g.rest); },
      [&] { return walkTile(group, first, g.rest, /*inside=*/1); });
}

LogicalResult KernelBuilder::walkInTiles(unsigned group, Value begin,
                                         Value left, int64_t most,
                                         int64_t size) {
  Location loc = kernel.getLoc();
  AffineExpr elements = e.addSymbol(left, e.constant(most + 1));
  return success(succeeded(
      e.loop((elements + (size - 1)).floorDiv(size), {},
             [&](AffineExpr counter,
                 ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
               Value done = e.materialize(counter * size),
                     first = arith::AddIOp::create(b, loc, begin, done),
                     behind = arith::SubIOp::create(b, loc, left, done);
               if (failed(size == 1 ? walkTile(group, first, 1, 1)
                                    : walkPartOfRest(group, first, behind)))
                 return failure();
               return SmallVector<Value>{};
             })));
}

LogicalResult KernelBuilder::walkRest(unsigned group, Value begin, Value left) {
  const Schedule::Group &g = schedule.groups[group];
  if (g.singles < 2)
    return walkInTiles(group, begin, left, g.tile - 1, g.rest);
  Value areFew = arith::CmpIOp::create(
      b, kernel.getLoc(), arith::CmpIPredicate::sle, left, index(g.singles));
  return e.branch(
      areFew, [&] { return walkInTiles(group, begin, left, g.singles, 1); },
      [&] { return walkInTiles(group, begin, left, g.tile - 1, g.rest); });
}

LogicalResult KernelBuilder::walkWithRest() {
  auto found = llvm::find_if(
      schedule.groups, [](const Schedule::Group &g) { return g.rest > 0; });
  if (found == schedule.groups.end())
    return walk(0);
  unsigned group = found - schedule.groups.begin();
  int64_t tile = found->tile;
  Location loc = kernel.getLoc();
  Value begin = e.materialize(e.simplify(tileNumbers[group] * tile, {})),
        end = e.materialize(extentOf(*found)),
        left = arith::SubIOp::create(b, loc, end, begin),
        isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, left,
                                        index(tile));
  // A known extent leaves the same everywhere: of the branches of its rest code
  // has the one that is taken.
  auto known = graph::constantOf(extentOf(*found));
  return e.branch(
      isWhole, [&] { return walkTile(group, begin, tile, tile, tile); },
      [&] {
        return walkRest(group, begin, known ? index(*known % tile) : left);
      });
}

LogicalResult KernelBuilder::walkByLength(const ShortRows &rows,
                                          unsigned from) {
  if (from == rows.lengths.size())
    return walkWithRest();
  return e.branchOnExtent(
      rows.extent, rows.lengths[from], [&] { return walkWithRest(); },
      [&] { return walkByLength(rows, from + 1); });
}

LogicalResult KernelBuilder::walkAll() {
  auto others = [&] {
    return walkByLength(shortRowsOf(kernel, target, schedule));
  };
  auto found = llvm::find_if(schedule.groups,
                             [](const Schedule::Group &g) { return g.vector; });
  if (found == schedule.groups.end())
    return others();
  unsigned group = found - schedule.groups.begin();
  return e.branchOnExtent(
      extentOf(*found), 1, [&] { return walkVector(group); }, others);
}

LogicalResult KernelBuilder::walkVector(unsigned group) {
  Schedule before = schedule;
  schedule.alongTerms = true;
  schedule.groups[group].rest = 0;
  llvm::erase(schedule.axes, group);
  axes = schedule.axes;
  starts[group] = e.constant(0);
  LogicalResult walked = walkSums();
  starts[group] = AffineExpr();
  schedule = std::move(before);
  axes = schedule.axes;
  return walked;
}

LogicalResult KernelBuilder::walkSums() {
  constexpr int64_t most = 8;
  if (schedule.axes.size() != 1 || schedule.groups[schedule.axes[0]].rest)
    return walkWithRest();
  unsigned group = schedule.axes[0];
  int64_t tile = tiles[group],
          part = llvm::divideCeil(tile, llvm::divideCeil(tile, most));
  LogicalResult walked = success();
  for (int64_t first = 0; first < tile && succeeded(walked); first += part) {
    starts[group] = e.simplify(tileNumbers[group] * tile + first, tileOf());
    tiles[group] = std::min(part, tile - first);
    walked = walk(0);
  }
  starts[group] = AffineExpr();
  tiles[group] = tile;
  return walked;
}

LogicalResult KernelBuilder::walk(unsigned group) {
  if (group == schedule.groups.size())
    return storeResults();
  const Schedule::Group &g = schedule.groups[group];
  if (!g.sequential) {
    place(group, tileNumbers[group]);
    return walk(group + 1);
  }
  // On a CPU the tiles that lie inside as a whole are stored without a look
  // at each element's place, along the innermost loop that has an end: all
  // that is inside is written once more for it.
  AffineExpr count = countOf(g);
  if (g.sequential && target.kind == EmitTarget::Kind::Cpu && g.tile > 1 &&
      !graph::constantOf(extentOf(g)))
    return walkOpen(group);
  bool ragged = isRagged(g) &&
                llvm::none_of(ArrayRef(schedule.groups).drop_front(group + 1),
                              [&](const Schedule::Group &inner) {
                                return isRagged(inner);
                              });
  if (ragged)
    count = e.constant(*graph::constantOf(extentOf(g)) / g.tile);
  const TileEmitter::RowShare &share = e.getRowShare();
  if (share.count > 1)
    count = e.simplify((count + (share.count - 1)).floorDiv(share.count), {});
  auto walked =
      e.loop(count, {},
             [&](AffineExpr counter,
                 ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
               place(group, share.count > 1 ? counter * share.count + share.part
                                            : counter);
               if (failed(walk(group + 1)))
                 return failure();
               return SmallVector<Value>{};
             });
  if (failed(walked) || !ragged)
    return walked;
  place(group, count);
  return walk(group + 1);
}

LogicalResult KernelBuilder::walkOpen(unsigned group) {
  const Schedule::Group &g = schedule.groups[group];
  AffineExpr extent = extentOf(g);
  // All of a short row is one tile.
  if (int64_t most = e.boundsOf(extent).high;
      most > 1 && e.isOneTile(extent, g.tile)) {
    tiles[group] =
        most < target.vectorElements
            ? llvm::bit_ceil<uint64_t>(most)
            : std::min<int64_t>(llvm::alignTo(most, target.vectorElements),
                                g.tile);
    place(group, e.constant(0));
    LogicalResult walked = walk(group + 1);
    tiles[group] = g.tile;
    return walked;
  }
  return success(succeeded(
      e.loopOverTiles(extent, g.tile, {},
                      [&](AffineExpr begin, AffineExpr number,
                          ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
                        starts[group] = begin;
                        place(group, number);
                        starts[group] = AffineExpr();
                        if (failed(walk(group + 1)))
                          return failure();
                        return SmallVector<Value>{};
                      })));
}

bool KernelBuilder::isRowOfRest(unsigned group) {
  auto ops = kernel.getBody().front().getOps<graph::GraphOpInterface>();
  return starts[group] && llvm::none_of(ops, [](graph::GraphOpInterface op) {
           return op.getRole() == graph::OpRole::Contraction;
         });
}

bool KernelBuilder::hasMovedRows(const Schedule::Group &g) {
  return walksProduct && !llvm::is_contained(g.dims, root.size() - 1);
}

bool KernelBuilder::isRagged(const Schedule::Group &g) {
  std::optional<int64_t> extent = graph::constantOf(extentOf(g));
  return g.sequential && target.kind == EmitTarget::Kind::Cpu && extent &&
         *extent > g.tile && *extent % g.tile != 0;
}

void KernelBuilder::place(unsigned group, AffineExpr number) {
  const Schedule::Group &g = schedule.groups[group];
  if (g.within)
    return placeWithin(group, number);
  AffineExpr index = starts[group] ? starts[group] : number * g.step();
  for (auto [axis, of] : llvm::enumerate(axes))
    if (of == group) {
      index = index + e.axis(axis);
      if (g.own)
        guards.push_back({e.axis(axis), e.constant(g.own), /*own=*/true});
    }
  SmallVector<int64_t> tile = tileOf();
  bool mayPassEnd =
      g.tile > 1 && !graph::isWithin(index, extentOf(g), e.facts(tile));
  ends.resize(schedule.groups.size());
  ends[group].reset();
  if (mayPassEnd && tiles[group] > 1)
    ends[group] = Guard{index, extentOf(g)};
  setCoordinates(g, index, unbounded);
  // The elements of a row that a tile has past its end belong to no row, and
  // must not make the row's own values differ along the tile. Neither
  // must rows past a product's last, wherever views move the others.
  if (auto axis = llvm::find(axes, group);
      (g.sequential || isRowOfRest(group) || hasMovedRows(g)) &&
      axis != axes.end() && mayPassEnd)
    index = e.addBounded(index, axis - axes.begin(), extentOf(g));
  setCoordinates(g, index, coordinates);
}

void KernelBuilder::setCoordinates(const Schedule::Group &g, AffineExpr index,
                                   Exprs &coordinates) {
  Exprs extents;
  for (unsigned d : g.dims)
    extents.push_back(root[d]);
  for (auto [d, c] : llvm::zip(g.dims, delinearize(index, extents)))
    coordinates[d] = c;
}

void KernelBuilder::placeWithin(unsigned group, AffineExpr number) {
  const Schedule::Group &g = schedule.groups[group];
  int64_t count = llvm::divideCeil(g.within, g.tile);
  AffineExpr part = number.floorDiv(count), inside = number % count * g.tile,
             extent = e.constant(g.within);
  ends.resize(schedule.groups.size());
  ends[group].reset();
  if (const auto *axis = llvm::find(axes, group); axis != axes.end()) {
    unsigned at = axis - axes.begin();
    inside = inside + e.axis(at);
    if (g.within % g.tile != 0) {
      ends[group] = Guard{inside, extent};
      guards.push_back({inside, extent, /*own=*/true});
      inside = e.addBounded(inside, at, extent);
    }
  }
  AffineExpr index = e.simplify(part * g.within + inside, tileOf());
  setCoordinates(g, index, unbounded);
  setCoordinates(g, index, coordinates);
}
