// Padding: memory that a constant surrounds, or that is mirrored or repeated.
#include "codegen/emit/rules/Rules.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// What mirrors or repeats memory along vectors, of a CPU: rows run straight in
/// each part, where positions that are computed would be gathered.
bool isPaddedByParts(graph::PadOp op, AffineExpr c, TileEmitter &e,
                     const Demand &demand) {
  return op.getMode() != graph::PadMode::constant &&
         e.getTarget().kind == EmitTarget::Kind::Cpu && demand.rank() > 0 &&
         e.bufferOf(op.getInput()) && e.dependsOnAxis(c, demand.rank() - 1);
}

/// What may not be negative where memory that is repeated is read once more at
/// most before and behind itself, which dimension `i` of a tile along it asks
/// for; without what is certain.
Exprs roomForOne(graph::PadOp op, unsigned i, TileEmitter &e,
                 const Demand &demand) {
  AffineExpr n = graph::getShape(op.getInput())[i],
             padded = graph::getShape(op.getResult())[i],
             low = op.getLows().getResult(i);
  Exprs rooms;
  if (op.getMode() != graph::PadMode::wrap || (low == 0 && n == padded) ||
      !isPaddedByParts(op, demand.coordinates[i], e, demand))
    return rooms;
  for (AffineExpr room : {n - low, n * 2 + low - padded})
    if (!graph::isNonNegative(e.simplify(room, {}), e.facts({})))
      rooms.push_back(e.simplify(room, {}));
  return rooms;
}

/// `demand` is of the input but for coordinate i, which is `c` in [0, n) and
/// lies before and behind that where the padding is: a tile of which each
/// element is of one of these parts.
FailureOr<Value> padMixed(graph::PadOp op, unsigned i, AffineExpr c,
                          AffineExpr n, TileEmitter &e, const Demand &demand) {
  bool mirrors = op.getMode() == graph::PadMode::reflect,
       wraps = op.getMode() == graph::PadMode::wrap;
  Guard within{c, n}, before{-c, n}, behind{n * 2 - 2 - c, n};
  if (wraps) {
    before = {c + n, n};
    behind = {c - n, n};
  } else if (!mirrors) {
    before = {-c - 1, graph::getShape(op.getResult())[i]};
  }
  bool moves = mirrors || wraps; // or else the outermost elements are repeated
  auto part = [&](AffineExpr coordinate, bool guarded) {
    Demand d = demand;
    d.coordinates[i] = coordinate;
    if (guarded)
      d.guards.push_back({coordinate, n});
    return e.emit(std::move(d));
  };
  FailureOr<Value> result = part(moves ? behind.coordinate : n - 1, moves),
                   first =
                       part(moves ? before.coordinate : e.constant(0), moves),
                   middle = part(c, true);
  if (failed(result) || failed(first) || failed(middle))
    return failure();
  auto choose = [&](const Guard &guard, Value x) {
    Value mask = e.emitInBounds({guard}, demand.tile);
    result =
        mask ? Value(arith::SelectOp::create(e.b(), e.loc(), mask, x, *result))
             : x;
  };
  choose(before, *first);
  choose(within, *middle);
  return result;
}

/// The same; most tiles of a long row have no padding.
FailureOr<Value> padByParts(graph::PadOp op, unsigned i, AffineExpr c,
                            AffineExpr n, TileEmitter &e,
                            const Demand &demand) {
  Type element = e.computeType(getElementTypeOrSelf(op.getType()));
  return insideOrNot(e, demand.tile, e.tileType(demand.tile, element),
                     Guard{c, n}, [&](ArrayRef<AffineExpr> known) {
                       if (!known[0])
                         return padMixed(op, i, c, n, e, demand);
                       Demand d = demand;
                       d.coordinates[i] = known[0];
                       return e.emit(std::move(d));
                     });
}

/// Where memory is read for coordinate `c` of a dimension of `n` elements that
/// are mirrored or repeated, element by element.
AffineExpr paddedPlace(graph::PadMode mode, AffineExpr c, AffineExpr n,
                       TileEmitter &e, const Demand &demand) {
  OpBuilder &b = e.b();
  switch (mode) {
  case graph::PadMode::constant:
    return c;
  case graph::PadMode::edge:
    return e.mapIndex(c, demand.tile, n, [&](Value x) -> Value {
      x = arith::MaxSIOp::create(b, e.loc(), x, indexConstant(e, 0, x));
      return arith::MinSIOp::create(b, e.loc(), x, sizeTile(e, n - 1, x));
    });
  case graph::PadMode::wrap:
    return e.mapIndex(c, demand.tile, n, [&](Value x) -> Value {
      Value zero = indexConstant(e, 0, x), period = sizeTile(e, n, x);
      Value r = arith::RemSIOp::create(b, e.loc(), x, period);
      Value negative =
          arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, r, zero);
      return arith::SelectOp::create(
          b, e.loc(), negative, arith::AddIOp::create(b, e.loc(), r, period),
          r);
    });
  case graph::PadMode::reflect:
    // At either end, once: nothing is padded by more than the other elements.
    // What tiles have past the end may be anywhere in the input.
    return e.mapIndex(c, demand.tile, n, [&](Value x) -> Value {
      Value zero = indexConstant(e, 0, x);
      Value mirrored = arith::SubIOp::create(b, e.loc(), zero, x);
      x = arith::MaxSIOp::create(b, e.loc(), x, mirrored);
      Value back =
          arith::SubIOp::create(b, e.loc(), sizeTile(e, n * 2 - 2, x), x);
      x = arith::MinSIOp::create(b, e.loc(), x, back);
      return arith::MaxSIOp::create(b, e.loc(), x, zero);
    });
  }
  llvm_unreachable("a padding is constant, edge, reflect or wrap");
}

/// What `d` demands of the input, and the padding's value where a guard fails.
FailureOr<Value> filledOutside(graph::PadOp op, ArrayRef<Guard> inside,
                               TileEmitter &e, Demand d) {
  SmallVector<int64_t> tile = d.tile;
  llvm::append_range(d.guards, inside);
  FailureOr<Value> x = e.emit(std::move(d));
  if (failed(x) || inside.empty())
    return x;
  Value mask = e.emitInBounds(inside, tile);
  if (!mask)
    return x;
  Demand fill{op.getValue(), tile, {}, {}};
  fill.coordinates.assign(graph::getShape(op.getValue()).size(), e.constant(0));
  FailureOr<Value> value = e.emit(std::move(fill));
  if (failed(value))
    return failure();
  return Value(arith::SelectOp::create(e.b(), e.loc(), mask, *x, *value));
}

/// `isOnce`: whatever wraps along the tile has room for what is read once more.
FailureOr<Value> pad(graph::PadOp op, TileEmitter &e, const Demand &demand,
                     bool isOnce) {
  Exprs extents = graph::getShape(op.getInput()),
        padded = graph::getShape(op.getResult());
  Demand d{op.getInput(), demand.tile, demand.coordinates, {}};
  SmallVector<Guard> inside;
  SmallVector<unsigned> dims; // of what is in `inside`
  std::optional<unsigned> parts;
  for (auto [i, low] : llvm::enumerate(op.getLows().getResults())) {
    AffineExpr c = d.coordinates[i] - low;
    AffineExpr n = extents[i];
    if (low == 0 && n == padded[i])
      continue;
    if (!parts && isOnce && isPaddedByParts(op, c, e, demand)) {
      parts = i;
      d.coordinates[i] = c;
      continue;
    }
    if (op.getMode() == graph::PadMode::constant) {
      inside.push_back({c, n});
      dims.push_back(i);
    }
    d.coordinates[i] = paddedPlace(op.getMode(), c, n, e, demand);
  }
  if (parts)
    return padByParts(op, *parts, d.coordinates[*parts], extents[*parts], e, d);
  bool isOpen = llvm::any_of(
      inside, [](const Guard &g) { return !graph::constantOf(g.extent); });
  if (!isOpen || demand.rank() == 0 || e.sides() >= mostSides ||
      hasContraction(e))
    return filledOutside(op, inside, e, std::move(d));
  Type element = e.computeType(getElementTypeOrSelf(op.getType()));
  return insideOrNot(e, demand.tile, e.tileType(demand.tile, element), inside,
                     [&](ArrayRef<AffineExpr> known) {
                       llvm::SaveAndRestore nested(e.sides(), e.sides() + 1);
                       Demand side = d;
                       SmallVector<Guard> guards = inside;
                       for (auto [i, dim] : llvm::enumerate(dims))
                         if (known[i])
                           side.coordinates[dim] = guards[i].coordinate =
                               known[i];
                       return filledOutside(op, guards, e, std::move(side));
                     });
}

/// What wraps along a tile is read straight where the sizes that are bound have
/// room for it, element by element where it comes around several times.
FailureOr<Value> pad(graph::PadOp op, TileEmitter &e, const Demand &demand) {
  Exprs rooms;
  for (unsigned i = 0; i < demand.coordinates.size(); ++i)
    llvm::append_range(rooms, roomForOne(op, i, e, demand));
  if (rooms.empty())
    return pad(op, e, demand, /*isOnce=*/true);
  bool isKnown = llvm::all_of(rooms, [](AffineExpr room) {
    return graph::constantOf(room).has_value();
  });
  if (isKnown || hasContraction(e))
    return pad(op, e, demand, /*isOnce=*/false);
  Value condition;
  for (AffineExpr room : rooms) {
    Value fits = arith::CmpIOp::create(
        e.b(), e.loc(), arith::CmpIPredicate::sge, e.materialize(room),
        arith::ConstantIndexOp::create(e.b(), e.loc(), 0));
    condition =
        condition
            ? Value(arith::AndIOp::create(e.b(), e.loc(), condition, fits))
            : fits;
  }
  auto side = [&](bool isOnce) {
    return e.staying([&] { return pad(op, e, demand, isOnce); });
  };
  Type element = e.computeType(getElementTypeOrSelf(op.getType()));
  return e.branch(
      condition, e.tileType(demand.tile, element), [&] { return side(true); },
      [&] { return side(false); });
}

unsigned passedByPad(graph::PadOp op, unsigned operand) {
  Exprs from = graph::getShape(op.getInput()),
        to = graph::getShape(op.getResult());
  unsigned passed = 0;
  while (operand == 0 && passed < from.size()) {
    unsigned d = from.size() - 1 - passed;
    if (from[d] != to[d] || graph::constantOf(op.getLows().getResult(d)) != 0)
      break;
    ++passed;
  }
  return passed;
}

} // namespace

void emit::registerPadRule(MLIRContext *c) {
  graph::PadOp::attachInterface<PassingRule<graph::PadOp, pad, passedByPad>>(
      *c);
}
