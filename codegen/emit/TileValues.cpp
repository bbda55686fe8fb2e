// Indices, masks and constants.
#include "codegen/emit/TileEmitter.h"
#include "graph/ir/Materialize.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

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
  Value atLeastOne(Value x) { return make<arith::MaxSIOp>(x, constant(1)); }
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
    AffineExpr c = simplify(g.coordinate, tile), e = simplify(g.extent, tile);
    if (graph::isWithin(c, e, known))
      continue;
    Guard plain = withoutDivision({unbounded(c, tile), e}, tile);
    coordinates.push_back(ofWholeTile(plain.coordinate, plain.extent, known));
    extents.push_back(plain.extent);
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

Value TileEmitter::sumParts(Value tile, std::optional<unsigned> sharedAxis) {
  if (split.count == 1)
    return tile;
  IntegerAttr axis;
  if (sharedAxis)
    axis = builder.getI64IntegerAttr(*sharedAxis);
  return tile::SplitSumOp::create(builder, location, tile.getType(), tile,
                                  split.scratch, split.counters, split.tile,
                                  split.partValue,
                                  builder.getI64IntegerAttr(split.count), axis);
}

SmallVector<SmallVector<Value>> TileEmitter::exchange(ArrayRef<Value> tiles) {
  auto op = tile::ExchangeOp::create(builder, location, tiles, rowShare.count);
  SmallVector<SmallVector<Value>> all;
  for (int64_t part = 0; part < rowShare.count; ++part)
    all.emplace_back(op->getResults().slice(part * tiles.size(), tiles.size()));
  return all;
}

Value TileEmitter::quotient(Value x, Value y) {
  // An approximate quotient is a product with the reciprocal; of a value of the
  // row that is computed once.
  if (auto row = y.getDefiningOp<tile::BroadcastOp>();
      row &&
      (target.kind == EmitTarget::Kind::Gpu ||
       cast<RankedTensorType>(row.getInput().getType()).getNumElements() <
           cast<RankedTensorType>(row.getType()).getNumElements())) {
    Value inverse = quotient(splatLike(1, row.getInput()), row.getInput());
    return arith::MulFOp::create(builder, location, x,
                                 tile::BroadcastOp::create(builder, location,
                                                           y.getType(), inverse,
                                                           row.getAxes()));
  }
  return arith::DivFOp::create(builder, location, x, y,
                               arith::FastMathFlags::afn);
}

Value TileEmitter::maskWith(Value mask, Value x, double otherwise) {
  if (!mask)
    return x;
  return arith::SelectOp::create(builder, location, mask, x,
                                 splatLike(otherwise, x));
}
