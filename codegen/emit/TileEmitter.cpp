#include "codegen/emit/TileEmitter.h"
#include "graph/ir/Float8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

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
  if (element.isF16() || element.isBF16() || graph::isFloat8(element))
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
// Scopes
//===----------------------------------------------------------------------===//

unsigned TileEmitter::scopeOf(AffineExpr expr) const {
  unsigned scope = 0;
  forEachSymbol(expr,
                [&](unsigned s) { scope = std::max(scope, symbols[s].scope); });
  return scope;
}

unsigned TileEmitter::scopeOf(const Demand &demand) const {
  unsigned scope = outermost;
  for (AffineExpr e : demand.coordinates)
    scope = std::max(scope, scopeOf(e));
  for (const Guard &g : demand.guards)
    scope = std::max({scope, scopeOf(g.coordinate), scopeOf(g.extent)});
  return scope;
}

TileEmitter::Key TileEmitter::makeKey(const Demand &demand,
                                      unsigned part) const {
  Key key{demand.value.getAsOpaquePointer(), part, demand.tile, {}};
  for (AffineExpr e : demand.coordinates)
    key.exprs.push_back(e.getAsOpaquePointer());
  for (const Guard &g : demand.guards) {
    key.exprs.push_back(g.coordinate.getAsOpaquePointer());
    key.exprs.push_back(g.extent.getAsOpaquePointer());
    key.exprs.push_back(g.own ? g.extent.getAsOpaquePointer() : nullptr);
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
  bool isLimited = !limits.firsts.empty() || !limits.ends.empty();
  if (known && *known == 1 && !isLimited)
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
  // Of one round or none the counter says nothing, so that all of the round
  // would be emitted in front, where it is not known that there is one. A round
  // that there always is may share what is in front.
  unsigned before = outermost;
  graph::Interval rounds = graph::boundsOf(count, facts({}));
  if (rounds.low < 1 && rounds.high <= 1)
    outermost = scopes.size() - 1;
  FailureOr<SmallVector<Value>> yielded = body(counter, carried);
  outermost = before;
  scopes.pop_back();
  if (failed(yielded))
    return failure();
  scf::YieldOp::create(builder, location, *yielded);
  return SmallVector<Value>(loop.getResults().begin(), loop.getResults().end());
}

FailureOr<SmallVector<Value>>
TileEmitter::loopOverTiles(AffineExpr extent, int64_t tile,
                           ArrayRef<Value> initial, TileBody body) {
  AffineExpr whole = simplify(extent.floorDiv(tile), {}),
             count = (extent + (tile - 1)).floorDiv(tile);
  FailureOr<SmallVector<Value>> carried =
      loop(whole, initial, [&](AffineExpr number, ArrayRef<Value> carried) {
        Value begin = materialize(simplify(number * tile, {}));
        AffineExpr last = simplify(extent - (tile - 1), {});
        return body(addSymbol(begin, last, tile), number, carried);
      });
  if (failed(carried))
    return failure();
  return loop(simplify(count - whole, {}), *carried,
              [&](AffineExpr, ArrayRef<Value> carried) {
                Value begin = materialize(simplify(whole * tile, {}));
                return body(addSymbol(begin, extent, tile), whole, carried);
              });
}

LogicalResult TileEmitter::branch(Value condition, Side then, Side otherwise) {
  auto op = scf::IfOp::create(builder, location, condition,
                              /*withElseRegion=*/true);
  auto emitSide = [&](Region &region, Side side) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(region.front().getTerminator());
    scopes.emplace_back();
    scopes.back().loop = op;
    LogicalResult result = side();
    scopes.pop_back();
    return result;
  };
  return success(succeeded(emitSide(op.getThenRegion(), then)) &&
                 succeeded(emitSide(op.getElseRegion(), otherwise)));
}

FailureOr<Value> TileEmitter::branch(Value condition, Type type, ValueSide then,
                                     ValueSide otherwise) {
  auto op = scf::IfOp::create(builder, location, type, condition,
                              /*withElseRegion=*/true);
  for (auto [region, side] : {std::pair(&op.getThenRegion(), then),
                              {&op.getElseRegion(), otherwise}}) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&region->front());
    scopes.emplace_back();
    scopes.back().loop = op;
    FailureOr<Value> value = side();
    scopes.pop_back();
    if (failed(value))
      return failure();
    scf::YieldOp::create(builder, location, *value);
  }
  return op.getResult(0);
}

FailureOr<Value> TileEmitter::staying(ValueSide side) {
  llvm::SaveAndRestore stays(outermost, unsigned(scopes.size() - 1));
  return side();
}

LogicalResult TileEmitter::branchOnExtent(AffineExpr extent, int64_t most,
                                          Side then, Side otherwise) {
  auto within = [&](Side side, AffineExpr assumption) {
    auto before = std::tuple(outermost, assumed, assumedMost);
    outermost = scopes.size() - 1;
    if (assumption)
      std::tie(assumed, assumedMost) = std::pair(assumption, most);
    // Of no element there is no instance, so one that is at most 1 is 1, and
    // simplifies to that.
    auto known = dyn_cast_or_null<AffineSymbolExpr>(most == 1 ? assumption
                                                              : AffineExpr());
    graph::Interval range;
    if (known)
      range = exchangeRange(known.getPosition(), {1, 1});
    LogicalResult result = side();
    if (known)
      exchangeRange(known.getPosition(), range);
    std::tie(outermost, assumed, assumedMost) = before;
    return result;
  };
  // Nothing at all is not within: a tile of it would have elements, and of
  // dimensions of which one is empty no coordinate says that they are none.
  AffineExpr compared = extent;
  auto predicate = arith::CmpIPredicate::sle;
  if (boundsOf(extent).low < 1) {
    compared = simplify(extent - 1, {});
    predicate = arith::CmpIPredicate::ult;
  }
  Value limit = arith::ConstantIndexOp::create(builder, location, most);
  Value isShort = arith::CmpIOp::create(builder, location, predicate,
                                        materialize(compared), limit);
  return branch(
      isShort, [&] { return within(then, simplify(extent, {})); },
      [&] { return within(otherwise, {}); });
}

graph::Interval TileEmitter::boundsOf(AffineExpr extent) const {
  extent = simplify(extent, {});
  graph::Interval bounds = graph::boundsOf(extent, facts({}));
  if (assumed && extent == assumed) {
    bounds.low = std::max<int64_t>(bounds.low, 1);
    bounds.high = std::min(bounds.high, assumedMost);
  }
  return bounds;
}

bool TileEmitter::isOneTile(AffineExpr extent, int64_t tile) const {
  graph::Interval bounds = boundsOf(extent);
  return bounds.low >= 1 && bounds.high <= tile;
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
    e = simplify(e, demand.tile);
  SmallVector<Guard> guards;
  for (Guard g : demand.guards) {
    g.coordinate = simplify(g.coordinate, demand.tile);
    g.extent = simplify(g.extent, demand.tile);
    if (graph::isWithin(g.coordinate, g.extent, known))
      continue;
    auto same = llvm::find_if(guards, [&](const Guard &other) {
      return other.coordinate == g.coordinate && other.extent == g.extent;
    });
    if (same == guards.end())
      guards.push_back(g);
    else
      same->own |= g.own;
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
      // A number shows as one, whatever the tile.
      DenseElementsAttr number;
      if (matchPattern(base, m_Constant(&number)) && number.isSplat()) {
        repeated.push_back(
            splat(number.getSplatValue<TypedAttr>(), demand.tile));
        continue;
      }
      Type element = cast<RankedTensorType>(base.getType()).getElementType();
      repeated.push_back(tile::BroadcastOp::create(
          builder, location, tileType(demand.tile, element), base, baseAxes));
    }
    return repeated;
  });
}

/// Marks a product that is the result of an operator.
static void markRounded(Value result) {
  while (Operation *op = result.getDefiningOp()) {
    if (isa<arith::MulFOp>(op))
      op->setAttr(kRoundedAttr, UnitAttr::get(op->getContext()));
    if (!isa<arith::NegFOp, tile::BroadcastOp>(op))
      return;
    result = op->getOperand(0);
  }
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
    if (succeeded(result))
      markRounded(*result);
    return result;
  }
  return error(demand, "no tile rule for this operator"), failure();
}
