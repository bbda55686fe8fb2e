#include "codegen/emit/TileEmitter.h"
#include "graph/ir/Materialize.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

#include "codegen/emit/EmitInterface.cpp.inc"

TileEmitter::TileEmitter(graph::KernelOp kernel, const EmitTarget &target,
                         const Schedule &schedule, OpBuilder &builder,
                         func::FuncOp function)
    : kernel(kernel), target(target), schedule(schedule), builder(builder),
      location(kernel.getLoc()) {
  scopes.emplace_back();
  auto module = kernel->getParentOfType<ModuleOp>();
  graph::Facts sizes = graph::getFacts(module);
  unsigned first = function.getNumArguments() - sizes.symbols.size();
  for (auto [i, range] : llvm::enumerate(sizes.symbols))
    symbols.push_back({function.getArgument(first + i), range,
                       sizes.symbolDivisors[i], AffineExpr(), 0});
}

//===----------------------------------------------------------------------===//
// Types and errors
//===----------------------------------------------------------------------===//

Type TileEmitter::computeType(Type element) const {
  if (element.isF16() || element.isBF16())
    return builder.getF32Type();
  if (auto integer = dyn_cast<IntegerType>(element))
    return builder.getIntegerType(integer.getWidth());
  if (element.isIndex())
    return builder.getI64Type();
  return element;
}

InFlightDiagnostic TileEmitter::error(const Demand &demand, const Twine &what) {
  Operation *op = demand.value.getDefiningOp();
  auto diagnostic = mlir::emitError(op ? op->getLoc() : location);
  diagnostic << what;
  if (op)
    diagnostic << " (" << op->getName() << " giving "
               << graph::typeToString(
                      demand.value.getType(),
                      graph::getSymbols(op->getParentOfType<ModuleOp>()))
               << ")";
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Symbols and axes
//===----------------------------------------------------------------------===//

graph::Facts TileEmitter::facts(ArrayRef<int64_t> tile) const {
  graph::Facts r;
  for (int64_t extent : tile)
    r.dims.push_back({0, extent - 1});
  for (const SymbolInfo &s : symbols) {
    r.symbols.push_back(s.range);
    r.symbolLimits.push_back(s.limit);
    r.symbolDivisors.push_back(s.divisor);
  }
  return r;
}

graph::Interval TileEmitter::below(AffineExpr limit) const {
  graph::Interval range{0, graph::Interval::noHigh};
  if (limit)
    if (int64_t high = graph::boundsOf(limit, facts({})).high;
        high != graph::Interval::noHigh)
      range.high = std::max<int64_t>(high - 1, 0);
  return range;
}

bool TileEmitter::isScalar(AffineExpr expr) const {
  bool scalar = true;
  expr.walk([&](AffineExpr e) { scalar &= !isa<AffineDimExpr>(e); });
  forEachSymbol(expr, [&](unsigned s) { scalar &= !symbols[s].isTile; });
  return scalar;
}

AffineExpr TileEmitter::addSymbol(Value value, AffineExpr limit) {
  symbols.push_back(
      {value, below(limit), 1, limit, (unsigned)scopes.size() - 1});
  return getAffineSymbolExpr(symbols.size() - 1, context());
}

std::pair<Value, SmallVector<int64_t>>
TileEmitter::withoutBroadcast(Value tile) {
  if (auto broadcast = tile.getDefiningOp<tile::BroadcastOp>())
    return {broadcast.getInput(), SmallVector<int64_t>(broadcast.getAxes())};
  int64_t rank = cast<RankedTensorType>(tile.getType()).getRank();
  return {tile, llvm::to_vector(llvm::seq<int64_t>(0, rank))};
}

AffineExpr TileEmitter::addTileSymbol(Value tile, ArrayRef<int64_t> axes,
                                      AffineExpr limit) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (!type.getElementType().isIndex())
    tile = arith::IndexCastOp::create(
        builder, location,
        RankedTensorType::get(type.getShape(), builder.getIndexType()), tile);
  graph::Interval range = limit ? below(limit) : graph::Interval{};
  symbols.push_back({tile, range, 1, limit, (unsigned)scopes.size() - 1, true,
                     SmallVector<int64_t>(axes)});
  return getAffineSymbolExpr(symbols.size() - 1, context());
}

AffineExpr TileEmitter::addBounded(AffineExpr expr, unsigned axis,
                                   AffineExpr limit) {
  symbols.push_back({Value(), below(limit), 1, limit,
                     (unsigned)scopes.size() - 1, true,
                     SmallVector<int64_t>{axis},
                     expr.replace(this->axis(axis), this->axis(0))});
  return getAffineSymbolExpr(symbols.size() - 1, context());
}

AffineExpr TileEmitter::unbounded(AffineExpr expr,
                                  ArrayRef<int64_t> tile) const {
  llvm::DenseMap<AffineExpr, AffineExpr> meant;
  forEachSymbol(expr, [&](unsigned s) {
    const SymbolInfo &info = symbols[s];
    if (!info.bounded)
      return;
    AffineExpr at = info.axes[0] < 0
                        ? getAffineConstantExpr(0, context())
                        : getAffineDimExpr(info.axes[0], context());
    meant[getAffineSymbolExpr(s, context())] = info.bounded.replaceDims({at});
  });
  return meant.empty() ? expr : simplify(expr.replace(meant), tile);
}

AffineExpr TileEmitter::mapIndex(AffineExpr expr, ArrayRef<int64_t> tile,
                                 AffineExpr limit,
                                 function_ref<Value(Value)> f) {
  expr = simplify(expr, tile);
  SmallVector<int64_t> axes, extents, position(tile.size(), -1);
  for (unsigned i = 0; i < tile.size(); ++i)
    if (tile[i] > 1 && dependsOnAxis(expr, i)) {
      position[i] = axes.size();
      axes.push_back(i);
      extents.push_back(tile[i]);
    }
  Demand moved =
      moveAxes({{}, SmallVector<int64_t>(tile), {expr}, {}}, position, extents);
  return addTileSymbol(f(emitIndex(moved.coordinates[0], extents)), axes,
                       limit);
}

void TileEmitter::forEachSymbol(AffineExpr expr,
                                function_ref<void(unsigned)> f) const {
  expr.walk([&](AffineExpr e) {
    if (auto s = dyn_cast<AffineSymbolExpr>(e))
      f(s.getPosition());
  });
}

bool TileEmitter::dependsOnAxis(AffineExpr expr, unsigned axis) const {
  if (expr.isFunctionOfDim(axis))
    return true;
  bool result = false;
  forEachSymbol(expr, [&](unsigned s) {
    result |=
        symbols[s].isTile && llvm::is_contained(symbols[s].axes, (int64_t)axis);
  });
  return result;
}

Demand TileEmitter::moveAxes(const Demand &demand, ArrayRef<int64_t> axes,
                             ArrayRef<int64_t> tile) {
  SmallVector<AffineExpr> dims;
  for (int64_t axis : axes)
    dims.push_back(axis < 0 ? constant(0) : getAffineDimExpr(axis, context()));
  // A tile symbol keeps its tile; only the axes it lies along are renamed.
  SmallVector<AffineExpr> renamed;
  for (unsigned i = 0, e = symbols.size(); i < e; ++i)
    renamed.push_back(getAffineSymbolExpr(i, context()));
  bool identity = llvm::equal(axes, llvm::seq<int64_t>(0, axes.size()));
  auto rename = [&](AffineExpr expr) {
    forEachSymbol(expr, [&](unsigned s) {
      if (identity || !symbols[s].isTile ||
          renamed[s] != getAffineSymbolExpr(s, context()))
        return;
      SymbolInfo info = symbols[s];
      for (int64_t &axis : info.axes)
        axis = axes[axis];
      symbols.push_back(std::move(info));
      renamed[s] = getAffineSymbolExpr(symbols.size() - 1, context());
    });
    return expr.replaceDimsAndSymbols(dims, renamed);
  };
  Demand moved{demand.value, SmallVector<int64_t>(tile), {}, {}};
  for (AffineExpr e : demand.coordinates)
    moved.coordinates.push_back(rename(e));
  for (const Guard &g : demand.guards)
    moved.guards.push_back({rename(g.coordinate), rename(g.extent)});
  return moved;
}

Demand TileEmitter::addAxis(const Demand &demand, int64_t extent) {
  SmallVector<int64_t> tile = demand.tile;
  tile.push_back(extent);
  return moveAxes(demand, llvm::to_vector(llvm::seq<int64_t>(0, demand.rank())),
                  tile);
}

SmallVector<Value> TileEmitter::compress(MutableArrayRef<AffineExpr> exprs,
                                         ArrayRef<int64_t> tile) {
  SmallVector<int64_t> position(symbols.size(), -1);
  SmallVector<unsigned> used;
  for (AffineExpr e : exprs)
    forEachSymbol(e, [&](unsigned s) {
      if (position[s] < 0) {
        position[s] = 0;
        used.push_back(s);
      }
    });
  llvm::sort(used);
  SmallVector<AffineExpr> replacement(symbols.size(), constant(0));
  SmallVector<Value> values;
  for (auto [i, s] : llvm::enumerate(used)) {
    replacement[s] = getAffineSymbolExpr(i, context());
    const SymbolInfo &info = symbols[s];
    if (!info.isTile) {
      values.push_back(info.value);
      continue;
    }
    SmallVector<int64_t> shape(tile.size(), 1);
    for (int64_t axis : info.axes)
      shape[axis] = tile[axis];
    auto type = RankedTensorType::get(shape, builder.getIndexType());
    Value value = info.value;
    if (value.getType() != type)
      value =
          tile::BroadcastOp::create(builder, location, type, value, info.axes);
    values.push_back(value);
  }
  for (AffineExpr &e : exprs)
    e = e.replaceSymbols(replacement);
  return values;
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

unsigned TileEmitter::scopeOf(AffineExpr expr) const {
  unsigned scope = 0;
  forEachSymbol(expr,
                [&](unsigned s) { scope = std::max(scope, symbols[s].scope); });
  return scope;
}

unsigned TileEmitter::scopeOf(const Demand &demand) const {
  unsigned scope = 0;
  for (AffineExpr e : demand.coordinates)
    scope = std::max(scope, scopeOf(e));
  for (const Guard &g : demand.guards)
    scope = std::max({scope, scopeOf(g.coordinate), scopeOf(g.extent)});
  return scope;
}

template <typename F> auto TileEmitter::atScope(unsigned scope, F f) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Scope> inner;
  for (unsigned i = scope + 1; i < scopes.size(); ++i)
    inner.push_back(std::move(scopes[i]));
  scopes.truncate(scope + 1);
  if (!inner.empty())
    builder.setInsertionPoint(inner.front().loop);
  auto result = f();
  for (Scope &s : inner)
    scopes.push_back(std::move(s));
  return result;
}

TileEmitter::Key TileEmitter::makeKey(const Demand &demand,
                                      unsigned part) const {
  Key key{demand.value.getAsOpaquePointer(), part, demand.tile, {}};
  for (AffineExpr e : demand.coordinates)
    key.exprs.push_back(e.getAsOpaquePointer());
  for (const Guard &g : demand.guards) {
    key.exprs.push_back(g.coordinate.getAsOpaquePointer());
    key.exprs.push_back(g.extent.getAsOpaquePointer());
  }
  return key;
}

FailureOr<SmallVector<Value>> TileEmitter::once(
    const Demand &demand, unsigned part,
    function_ref<FailureOr<SmallVector<Value>>(const Demand &)> emitter) {
  Key key = makeKey(demand, part);
  unsigned scope = scopeOf(demand);
  return atScope(scope, [&]() -> FailureOr<SmallVector<Value>> {
    auto found = scopes[scope].memo.find(key);
    if (found != scopes[scope].memo.end())
      return found->second;
    FailureOr<SmallVector<Value>> result = emitter(demand);
    if (succeeded(result))
      scopes[scope].memo[key] = *result;
    return result;
  });
}

FailureOr<SmallVector<Value>> TileEmitter::loop(AffineExpr count,
                                                const Limits &limits,
                                                ArrayRef<Value> initial,
                                                LoopBody body) {
  count = simplify(count, {});
  std::optional<int64_t> known = graph::constantOf(count);
  if (known && *known == 0)
    return SmallVector<Value>(initial);
  if (known && *known == 1)
    return body(constant(0), initial);
  Value zero = arith::ConstantIndexOp::create(builder, location, 0);
  Value one = arith::ConstantIndexOp::create(builder, location, 1);
  // 0 <= first <= bound <= count, whatever the limits are.
  Value first = zero, bound = materialize(count);
  for (AffineExpr end : limits.ends)
    bound = arith::MinSIOp::create(builder, location, bound, materialize(end));
  if (!limits.ends.empty())
    bound = arith::MaxSIOp::create(builder, location, bound, zero);
  for (AffineExpr limit : limits.firsts)
    first =
        arith::MaxSIOp::create(builder, location, first, materialize(limit));
  if (!limits.firsts.empty())
    first = arith::MinSIOp::create(builder, location, first, bound);
  auto loop = scf::ForOp::create(builder, location, first, bound, one, initial);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = loop.getBody();
  if (!block->empty()) // without carried values the builder adds the terminator
    block->getTerminator()->erase();
  builder.setInsertionPointToEnd(block);
  scopes.emplace_back();
  scopes.back().loop = loop;
  AffineExpr counter = addSymbol(loop.getInductionVar(), count);
  SmallVector<Value> carried(loop.getRegionIterArgs().begin(),
                             loop.getRegionIterArgs().end());
  FailureOr<SmallVector<Value>> yielded = body(counter, carried);
  scopes.pop_back();
  if (failed(yielded))
    return failure();
  scf::YieldOp::create(builder, location, *yielded);
  return SmallVector<Value>(loop.getResults().begin(), loop.getResults().end());
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

FailureOr<Value> TileEmitter::emit(Demand demand) {
  FailureOr<SmallVector<Value>> result =
      emitPart(std::move(demand), 0,
               [&](const Demand &d) -> FailureOr<SmallVector<Value>> {
                 FailureOr<Value> value = emitHere(d);
                 return failed(value) ? FailureOr<SmallVector<Value>>()
                                      : SmallVector<Value>{*value};
               });
  return failed(result) ? FailureOr<Value>()
                        : FailureOr<Value>(result->front());
}

FailureOr<SmallVector<Value>> TileEmitter::emitPart(
    Demand demand, unsigned part,
    function_ref<FailureOr<SmallVector<Value>>(const Demand &)> emitter) {
  graph::Facts known = facts(demand.tile);
  for (AffineExpr &e : demand.coordinates)
    e = graph::simplify(e, known);
  SmallVector<Guard> guards;
  for (Guard g : demand.guards) {
    g = {graph::simplify(g.coordinate, known),
         graph::simplify(g.extent, known)};
    if (!graph::isWithin(g.coordinate, g.extent, known) &&
        !llvm::is_contained(guards, g))
      guards.push_back(g);
  }
  demand.guards = std::move(guards);

  SmallVector<int64_t> kept, extents, axes(demand.rank(), -1);
  for (unsigned i = 0; i < demand.rank(); ++i) {
    auto uses = [&](AffineExpr e) { return dependsOnAxis(e, i); };
    bool used =
        demand.tile[i] > 1 && (llvm::any_of(demand.coordinates, uses) ||
                               llvm::any_of(demand.guards, [&](const Guard &g) {
                                 return uses(g.coordinate);
                               }));
    if (!used)
      continue;
    axes[i] = kept.size();
    kept.push_back(i);
    extents.push_back(demand.tile[i]);
  }
  if (kept.size() == demand.rank())
    return once(demand, part, emitter);
  Demand reduced = moveAxes(demand, axes, extents);
  for (AffineExpr &e : reduced.coordinates)
    e = simplify(e, extents);
  for (Guard &g : reduced.guards)
    g.coordinate = simplify(g.coordinate, extents);
  FailureOr<SmallVector<Value>> values = once(reduced, part, emitter);
  if (failed(values))
    return failure();
  return atScope(scopeOf(reduced), [&]() -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> repeated;
    for (Value value : *values) {
      auto [base, baseAxes] = withoutBroadcast(value);
      for (int64_t &axis : baseAxes)
        axis = kept[axis];
      Type element = cast<RankedTensorType>(base.getType()).getElementType();
      repeated.push_back(tile::BroadcastOp::create(
          builder, location, tileType(demand.tile, element), base, baseAxes));
    }
    return repeated;
  });
}

FailureOr<Value> TileEmitter::emitHere(const Demand &demand) {
  if (Value buffer = buffers.lookup(demand.value))
    return emitLoad(demand, buffer);
  Operation *op = demand.value.getDefiningOp();
  if (auto emitting = dyn_cast_or_null<EmitOpInterface>(op)) {
    Location outer = location;
    location = op->getLoc();
    FailureOr<Value> result = emitting.emitTile(*this, demand);
    location = outer;
    return result;
  }
  return error(demand, "no tile rule for this operator"), failure();
}

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
    c.map[i - 1] = joined;
    c.shape[i - 1] = graph::simplify(c.shape[i - 1] * c.shape[i], known);
    c.guarded[i - 1] = c.guarded[i - 1] || c.guarded[i];
    c.map.erase(c.map.begin() + i);
    c.shape.erase(c.shape.begin() + i);
    c.guarded.erase(c.guarded.begin() + i);
  }
}

TileEmitter::Access TileEmitter::makeAccess(const Demand &demand) {
  Exprs extents = graph::getShape(demand.value);
  graph::Facts known = facts(demand.tile);
  Coordinates joined{{},
                     SmallVector<AffineExpr>(extents.begin(), extents.end()),
                     SmallVector<bool>(extents.size(), false),
                     demand.guards};
  for (AffineExpr coordinate : demand.coordinates)
    joined.map.push_back(unbounded(coordinate, demand.tile));
  for (Guard &guard : joined.guards)
    guard.coordinate = unbounded(guard.coordinate, demand.tile);
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
  for (unsigned i = 0; i < map.size(); ++i) {
    bool ofTile = isa<AffineDimExpr>(map[i]);
    if (!(i < access.rank && joined.guarded[i]) &&
        !graph::isWithin(map[i], shape[i], ofTile ? known : inside))
      access.checks.push_back(i);
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

void TileEmitter::storeResult(Value tile, Value buffer, Type graphType,
                              Demand demand, tile::UpdateAttr update) {
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
  Access access = makeAccess(demand);
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

//===----------------------------------------------------------------------===//
// Indices, masks, constants
//===----------------------------------------------------------------------===//

/// Index arithmetic of tile programs, each value in the outermost scope that
/// has its symbols.
struct TileEmitter::IndexCode {
  using Value = mlir::Value;
  TileEmitter &e;

  template <typename F> Value place(AffineExpr expr, F write) {
    return e.atScope(e.scopeOf(expr), write);
  }
  template <typename Op> Value make(Value x, Value y) {
    return Op::create(e.builder, e.location, x, y);
  }
  Value constant(int64_t c) {
    return arith::ConstantIndexOp::create(e.builder, e.location, c);
  }
  Value variable(AffineExpr symbol) {
    return e.symbols[cast<AffineSymbolExpr>(symbol).getPosition()].value;
  }
  Value add(Value x, Value y) { return make<arith::AddIOp>(x, y); }
  Value multiply(Value x, Value y) { return make<arith::MulIOp>(x, y); }
  Value floorDivide(Value x, Value y, bool nonNegative) {
    return nonNegative ? make<arith::DivUIOp>(x, y)
                       : make<arith::FloorDivSIOp>(x, y);
  }
  Value modulo(Value x, Value y, bool nonNegative) {
    if (nonNegative)
      return make<arith::RemUIOp>(x, y);
    Value rest = make<arith::RemSIOp>(x, y);
    Value below = arith::CmpIOp::create(
        e.builder, e.location, arith::CmpIPredicate::slt, rest, constant(0));
    return arith::SelectOp::create(e.builder, e.location, below, add(rest, y),
                                   rest);
  }
};

Value TileEmitter::materialize(AffineExpr expr) {
  graph::Facts known = facts({});
  IndexCode code{*this};
  return graph::Materializer(code, known)(expr);
}

Value TileEmitter::emitIndex(AffineExpr expr, ArrayRef<int64_t> tile) {
  SmallVector<AffineExpr> exprs{unbounded(simplify(expr, tile), tile)};
  SmallVector<Value> used = compress(exprs, tile);
  AffineMap map = AffineMap::get(tile.size(), used.size(), exprs[0], context());
  return tile::IndexOp::create(
      builder, location, tileType(tile, builder.getIndexType()), used, map);
}

Value TileEmitter::emitInBounds(ArrayRef<Guard> guards,
                                ArrayRef<int64_t> tile) {
  graph::Facts known = facts(tile);
  SmallVector<AffineExpr> coordinates, extents;
  for (const Guard &g : guards) {
    AffineExpr c = graph::simplify(g.coordinate, known),
               e = graph::simplify(g.extent, known);
    if (graph::isWithin(c, e, known))
      continue;
    coordinates.push_back(unbounded(c, tile));
    extents.push_back(e);
  }
  if (coordinates.empty())
    return {};
  SmallVector<AffineExpr> all(coordinates);
  all.append(extents);
  SmallVector<Value> used = compress(all, tile);
  unsigned n = coordinates.size();
  return tile::InBoundsOp::create(
      builder, location, tileType(tile, builder.getI1Type()), used,
      AffineMap::get(tile.size(), used.size(),
                     ArrayRef<AffineExpr>(all).take_front(n), context()),
      AffineMap::get(0, used.size(), ArrayRef<AffineExpr>(all).drop_front(n),
                     context()));
}

Value TileEmitter::splat(TypedAttr value, ArrayRef<int64_t> tile) {
  auto type = tileType(tile, value.getType());
  return arith::ConstantOp::create(
      builder, location, type, DenseElementsAttr::get(type, Attribute(value)));
}

Value TileEmitter::splat(double value, Type element, ArrayRef<int64_t> tile) {
  if (isa<FloatType>(element))
    return splat(builder.getFloatAttr(element, value), tile);
  return splat(builder.getIntegerAttr(element, (int64_t)value), tile);
}

Value TileEmitter::splatLike(double value, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return splat(value, type.getElementType(), type.getShape());
}

Value TileEmitter::sumParts(Value tile) {
  if (split.count == 1)
    return tile;
  return tile::SplitSumOp::create(builder, location, tile.getType(), tile,
                                  split.scratch, split.counters, split.tile,
                                  split.partValue, split.count);
}

Value TileEmitter::quotient(Value x, Value y) {
  return arith::DivFOp::create(builder, location, x, y,
                               arith::FastMathFlags::afn);
}

Value TileEmitter::maskWith(Value mask, Value x, double otherwise) {
  if (!mask)
    return x;
  return arith::SelectOp::create(builder, location, mask, x,
                                 splatLike(otherwise, x));
}
