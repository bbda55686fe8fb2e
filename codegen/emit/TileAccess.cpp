// Loads and stores: coordinates of a demand as an access to a buffer.
#include "codegen/emit/TileEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// Coordinates of a dense buffer, the extents they lie in, and what else has to
/// hold.
struct Coordinates {
  SmallVector<AffineExpr> map, shape;
  /// Whether guards say that a coordinate lies in its extent.
  SmallVector<bool> guarded;
  SmallVector<Guard> guards;
};

} // namespace

static bool divides(AffineExpr e) {
  bool found = false;
  e.walk([&](AffineExpr x) {
    found |= x.getKind() == AffineExprKind::Mod ||
             x.getKind() == AffineExprKind::FloorDiv;
  });
  return found;
}

/// Joins neighbouring coordinates into one where that makes the expressions
/// simpler: a flat walk over [B, 37, 768] is one coordinate again, and needs no
/// divisions. A coordinate that needs no check may be joined to the one before
/// it without changing what the checks accept.
static void joinCoordinates(Coordinates &c, const graph::Facts &known,
                            function_ref<bool(AffineExpr)> isScalar) {
  auto cost = [](AffineExpr e) {
    unsigned n = 0;
    e.walk([&](AffineExpr) { ++n; });
    return n;
  };
  auto isSafe = [&](unsigned i) {
    return c.guarded[i] || graph::isWithin(c.map[i], c.shape[i], known);
  };
  for (unsigned i = c.map.size(); i-- > 1;) {
    if (!isSafe(i))
      continue;
    AffineExpr joined =
        graph::simplify(c.map[i - 1] * c.shape[i] + c.map[i], known);
    if (cost(joined) >= cost(c.map[i - 1]) + cost(c.map[i]))
      continue;
    // A check on one coordinate is often the same for a whole row; joined to
    // the next one it no longer is. It stays a check by itself where it is the
    // same for the tile; else the join has to do away with all divisions.
    if (!isSafe(i - 1)) {
      if (isScalar(c.map[i - 1])) {
        c.guards.push_back({c.map[i - 1], c.shape[i - 1]});
        c.guarded[i - 1] = true;
      } else if (divides(joined)) {
        continue;
      }
    }
    bool isOuterSafe = isSafe(i - 1);
    c.map[i - 1] = joined;
    c.shape[i - 1] = graph::simplify(c.shape[i - 1] * c.shape[i], known);
    // What guards say of the inner one says nothing of an outer one that may
    // leave its extent.
    c.guarded[i - 1] = c.guarded[i - 1] || (c.guarded[i] && isOuterSafe);
    c.map.erase(c.map.begin() + i);
    c.shape.erase(c.shape.begin() + i);
    c.guarded.erase(c.guarded.begin() + i);
  }
}

std::pair<AffineExpr, graph::Interval>
TileEmitter::startAndRest(AffineExpr coordinate,
                          const graph::Facts &known) const {
  graph::Sum start, within;
  graph::Sum all(coordinate);
  start.constant = all.constant;
  for (const graph::Sum::Term &term : all.terms)
    (isScalar(term.toExpr()) ? start : within).terms.push_back(term);
  return {start.toExpr(context()),
          graph::BoundsFinder(known)(within.toExpr(context()))};
}

std::pair<AffineExpr, graph::Interval>
TileEmitter::startAndRest(AffineExpr coordinate, ArrayRef<int64_t> tile) const {
  // Taken apart, so that terms are told from each other.
  return startAndRest(simplify(unbounded(coordinate, tile), tile), facts(tile));
}

AffineExpr TileEmitter::ofWholeTile(AffineExpr coordinate, AffineExpr extent,
                                    const graph::Facts &known) const {
  if (target.kind != EmitTarget::Kind::Cpu || isScalar(coordinate))
    return coordinate;
  // A tile that begins at a multiple of a step and ends before the next lies on
  // one side of every multiple.
  auto [first, rest] = startAndRest(coordinate, known);
  int64_t step =
      std::gcd(graph::divisorOf(first, known), graph::divisorOf(extent, known));
  return rest.low >= 0 && rest.high < step ? first : coordinate;
}

Guard TileEmitter::withoutDivision(Guard guard, ArrayRef<int64_t> tile) const {
  if (target.kind != EmitTarget::Kind::Cpu || isScalar(guard.coordinate))
    return guard;
  // What all elements have in common may be divided.
  auto dividesElements = [&](const graph::Sum::Term &term) {
    AffineExpr e = term.toExpr();
    return !isScalar(e) && divides(e);
  };
  graph::Sum rest(guard.coordinate);
  auto *divided = llvm::find_if(rest.terms, [&](const graph::Sum::Term &term) {
    return term.coefficient == 1 && term.atoms.size() == 1 &&
           term.atoms[0].getKind() == AffineExprKind::FloorDiv &&
           dividesElements(term);
  });
  if (divided == rest.terms.end())
    return guard;
  auto quotient = cast<AffineBinaryOpExpr>(divided->atoms[0]);
  AffineExpr by = quotient.getRHS();
  if (!graph::constantOf(by))
    return guard;
  rest.terms.erase(divided);
  AffineExpr whole =
      simplify(quotient.getLHS() + rest.toExpr(by.getContext()) * by, tile);
  if (llvm::any_of(graph::Sum(whole).terms, dividesElements))
    return guard;
  return {whole, simplify(guard.extent * by, tile), guard.own};
}

AffineExpr TileEmitter::placeOfTile(AffineExpr coordinate, int64_t step,
                                    ArrayRef<int64_t> tile) const {
  if (target.kind != EmitTarget::Kind::Cpu || step < 1)
    return {};
  AffineExpr place =
      ofWholeTile(unbounded(coordinate, tile),
                  getAffineConstantExpr(step, context()), facts(tile));
  return isScalar(place) ? place : AffineExpr();
}

/// No bound at all, it seems.
static bool isFar(graph::Interval range) {
  constexpr int64_t far = int64_t(1) << 31;
  return range.low < -far || range.high > far;
}

std::optional<int64_t> TileEmitter::spanOf(AffineExpr coordinate,
                                           ArrayRef<int64_t> tile) const {
  graph::Interval rest = startAndRest(coordinate, tile).second;
  if (isFar(rest))
    return {};
  return rest.high - rest.low + 1;
}

Value TileEmitter::isInsideAsWhole(const Guard &guard, ArrayRef<int64_t> tile) {
  auto [start, rest] = startAndRest(guard.coordinate, tile);
  if (target.kind != EmitTarget::Kind::Cpu || isFar(rest) ||
      !isScalar(guard.extent) ||
      graph::constantOf(guard.extent).value_or(rest.high - rest.low + 1) <=
          rest.high - rest.low)
    return {};
  AffineExpr first = simplify(start + rest.low, {}),
             room = simplify(guard.extent - 1 - start - rest.high, {});
  if (graph::constantOf(first).value_or(0) < 0 ||
      graph::constantOf(room).value_or(0) < 0)
    return {}; // never
  auto isNatural = [&](AffineExpr e) -> Value {
    return arith::CmpIOp::create(
        builder, location, arith::CmpIPredicate::sge, materialize(e),
        arith::ConstantIndexOp::create(builder, location, 0));
  };
  return arith::AndIOp::create(builder, location, isNatural(first),
                               isNatural(room));
}

AffineExpr TileEmitter::insideAsWhole(const Guard &guard,
                                      ArrayRef<int64_t> tile) {
  auto [start, rest] = startAndRest(guard.coordinate, tile);
  AffineExpr within =
      simplify(unbounded(guard.coordinate, tile) - start - rest.low, tile);
  return addSymbol(materialize(simplify(start + rest.low, {})),
                   simplify(guard.extent - (rest.high - rest.low), {})) +
         within;
}

TileEmitter::Access
TileEmitter::makeAccess(const Demand &demand,
                        std::optional<graph::StoredPart> part) {
  Exprs extents = graph::getShape(demand.value);
  graph::Facts known = facts(demand.tile);
  Coordinates joined{{},
                     SmallVector<AffineExpr>(extents.begin(), extents.end()),
                     SmallVector<bool>(extents.size(), false),
                     demand.guards};
  // What is one here lies nowhere apart.
  for (AffineExpr &extent : joined.shape)
    if (std::optional<int64_t> known = graph::constantOf(simplify(extent, {})))
      extent = constant(*known);
  for (AffineExpr coordinate : demand.coordinates)
    joined.map.push_back(unbounded(coordinate, demand.tile));
  if (part) {
    // What a tile has past the part's ends is another part's place.
    AffineExpr &along = joined.map[part->axis];
    along = graph::simplify(along - part->first, known);
    joined.guards.push_back({along, part->count});
    joined.guarded[part->axis] = true;
    along = graph::simplify(along + part->offset, known);
    joined.shape[part->axis] = part->extent;
  }
  for (Guard &guard : joined.guards) {
    guard.coordinate = unbounded(guard.coordinate, demand.tile);
    guard = withoutDivision(guard, demand.tile);
  }
  joinCoordinates(joined, known, [&](AffineExpr e) { return isScalar(e); });
  SmallVector<AffineExpr> &map = joined.map, &shape = joined.shape;
  Access access;
  access.rank = map.size();
  for (const Guard &g : joined.guards) {
    bool covered = false;
    for (unsigned i = 0; i < map.size(); ++i)
      covered |= g.coordinate == map[i] && g.extent == shape[i] &&
                 !(i < access.rank && joined.guarded[i]);
    if (covered)
      continue;
    map.push_back(g.coordinate);
    shape.push_back(g.extent);
  }
  // Where a check of a tile's own coordinate fails no other one counts.
  graph::Facts inside = known;
  for (unsigned i = access.rank; i < map.size(); ++i)
    if (auto axis = dyn_cast<AffineDimExpr>(map[i]))
      if (auto extent = graph::constantOf(shape[i])) {
        graph::Interval &range = inside.dims[axis.getPosition()];
        range.high = std::min(range.high, *extent - 1);
      }
  auto findOrPush = [&](AffineExpr coordinate, AffineExpr extent) {
    unsigned i = 0;
    while (i < map.size() && (map[i] != coordinate || shape[i] != extent))
      ++i;
    if (i == map.size()) {
      map.push_back(coordinate);
      shape.push_back(extent);
    }
    return i;
  };
  for (unsigned i = 0, n = map.size(); i < n; ++i) {
    bool ofTile = isa<AffineDimExpr>(map[i]);
    if ((i < access.rank && joined.guarded[i]) ||
        graph::isWithin(map[i], shape[i], ofTile ? known : inside))
      continue;
    // Often a guard, or another coordinate, says the same.
    Guard plain = withoutDivision({map[i], shape[i]}, demand.tile);
    unsigned at = findOrPush(ofWholeTile(plain.coordinate, plain.extent, known),
                             plain.extent);
    if (!llvm::is_contained(access.checks, at))
      access.checks.push_back(at);
  }
  SmallVector<AffineExpr> all(map);
  all.append(shape.begin(), shape.end());
  access.symbols = compress(all, demand.tile);
  unsigned n = map.size(), s = access.symbols.size();
  access.map = AffineMap::get(
      demand.rank(), s, ArrayRef<AffineExpr>(all).take_front(n), context());
  access.shape =
      AffineMap::get(0, s, ArrayRef<AffineExpr>(all).drop_front(n), context());
  return access;
}

FailureOr<Value> TileEmitter::emitLoad(const Demand &demand, Value buffer) {
  Access access = makeAccess(demand);
  Type storage = cast<tile::BufferType>(buffer.getType()).getElementType();
  auto load =
      tile::LoadOp::create(builder, location, tileType(demand.tile, storage),
                           buffer, access.symbols, access.map, access.shape,
                           access.rank, access.checks, /*independent=*/false);
  if (auto argument = dyn_cast<BlockArgument>(demand.value))
    if (auto source = kernel.getInputs()[argument.getArgNumber()]
                          .getDefiningOp<graph::GraphOpInterface>())
      load.setIndependent(source.getRole() == graph::OpRole::Source);
  Type element =
      cast<RankedTensorType>(demand.value.getType()).getElementType();
  Value value = load;
  if (element.isInteger(1)) {
    Value zero = splat(0, storage, demand.tile);
    value = arith::CmpIOp::create(builder, location, arith::CmpIPredicate::ne,
                                  value, zero);
  } else if (computeType(element) != storage) {
    value = arith::ExtFOp::create(
        builder, location, tileType(demand.tile, computeType(element)), value);
  }
  return value;
}

void TileEmitter::storeResult(Value tile, Value buffer, Demand demand,
                              tile::UpdateAttr update,
                              std::optional<graph::StoredPart> part) {
  for (AffineExpr &c : demand.coordinates)
    c = simplify(c, demand.tile);
  Type storage = cast<tile::BufferType>(buffer.getType()).getElementType();
  auto type = tileType(demand.tile, storage);
  if (tile.getType() != type) {
    if (isa<FloatType>(storage))
      tile = arith::TruncFOp::create(builder, location, type, tile);
    else
      tile = arith::ExtUIOp::create(builder, location, type, tile);
  }
  Access access = makeAccess(demand, part);
  tile::StoreOp::create(builder, location, tile, buffer, access.symbols,
                        access.map, access.shape, access.rank, access.checks,
                        update);
}

FailureOr<Value> TileEmitter::emitAs(Demand demand, Type element) {
  FailureOr<Value> value = emit(std::move(demand));
  if (failed(value))
    return failure();
  auto type = cast<RankedTensorType>(value->getType());
  if (type.getElementType() == element)
    return value;
  // A conversion moves in front of broadcasts, so that a load's own type shows.
  if (auto extension = value->getDefiningOp<arith::ExtFOp>())
    if (cast<RankedTensorType>(extension.getIn().getType()).getElementType() ==
        element)
      return extension.getIn();
  if (auto broadcast = value->getDefiningOp<tile::BroadcastOp>())
    if (auto extension = broadcast.getInput().getDefiningOp<arith::ExtFOp>())
      if (cast<RankedTensorType>(extension.getIn().getType())
              .getElementType() == element)
        return Value(tile::BroadcastOp::create(
            builder, location, tileType(type.getShape(), element),
            extension.getIn(), broadcast.getAxes()));
  return Value(arith::TruncFOp::create(
      builder, location, tileType(type.getShape(), element), *value));
}

void TileEmitter::prefetch(Value value, ArrayRef<AffineExpr> coordinates) {
  Exprs at(coordinates.begin(), coordinates.end());
  while (!buffers.contains(value)) {
    auto view = value.getDefiningOp<graph::GraphOpInterface>();
    if (!view || view.getRole() != graph::OpRole::View)
      return;
    at = graph::applyMap(view.getOperandMap(0), at);
    for (AffineExpr &e : at)
      e = simplify(e, {});
    value = view->getOperand(0);
  }
  bool scalar = true;
  for (AffineExpr &e : at) {
    e = simplify(e, {});
    forEachSymbol(e, [&](unsigned s) { scalar &= !symbols[s].isTile; });
  }
  if (!scalar)
    return;
  Access access = makeAccess({value, {}, at, {}});
  tile::PrefetchOp::create(builder, location, buffers.lookup(value),
                           access.symbols, access.map, access.shape,
                           access.rank);
}

FailureOr<Value> TileEmitter::emitZeroOutside(Demand demand, Type element) {
  SmallVector<int64_t> tile = demand.tile;
  SmallVector<Guard> guards = demand.guards;
  FailureOr<Value> value = emitAs(std::move(demand), element);
  if (failed(value) || isZeroOutside(*value))
    return value;
  return maskWith(emitInBounds(guards, tile), *value, 0);
}

bool emit::isZeroOutside(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op)
    return false;
  if (isa<tile::LoadOp>(op))
    return true;
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp,
          arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp, tile::BroadcastOp,
          tile::TransposeOp>(op))
    return isZeroOutside(op->getOperand(0));
  return false;
}
