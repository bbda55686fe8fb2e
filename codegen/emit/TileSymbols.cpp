// Symbols of a tile program, and demands on other axes.
#include "codegen/emit/TileEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

SmallVector<int64_t> Demand::ownTile() const {
  SmallVector<int64_t> own(tile);
  for (const Guard &guard : guards) {
    auto axis = dyn_cast<AffineDimExpr>(guard.coordinate);
    auto extent = graph::constantOf(guard.extent);
    if (guard.own && axis && extent)
      own[axis.getPosition()] = std::min(own[axis.getPosition()], *extent);
  }
  return own;
}

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

AffineExpr TileEmitter::simplify(AffineExpr expr,
                                 ArrayRef<int64_t> tile) const {
  if (isa<AffineConstantExpr>(expr))
    return expr;
  AffineExpr &known = simplified[llvm::to_vector(tile)][expr];
  if (!known)
    known = graph::simplify(expr, facts(tile));
  return known;
}

graph::Interval TileEmitter::exchangeRange(unsigned symbol,
                                           graph::Interval range) {
  // What has been simplified is right as long as no range changes.
  simplified.clear();
  return std::exchange(symbols[symbol].range, range);
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

AffineExpr TileEmitter::addSymbol(Value value, AffineExpr limit,
                                  int64_t divisor) {
  symbols.push_back(
      {value, below(limit), divisor, limit, (unsigned)scopes.size() - 1});
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
    moved.guards.push_back({rename(g.coordinate), rename(g.extent), g.own});
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
