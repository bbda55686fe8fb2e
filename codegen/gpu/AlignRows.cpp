#include "codegen/gpu/AlignRows.h"
#include "codegen/tile/analysis/Access.h"
#include "codegen/tile/analysis/Values.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include <optional>

using namespace mlir;
using namespace charonia;

namespace {

constexpr int64_t kVectorBytes = 16;

/// A place where an operator in the loop says where along the row it is:
/// results `results` of its map are d(axis) + step * counter, and less than
/// `extent`. A step is a tile, or one of each instance that shares the row:
/// then that of instance `share` among them.
struct Place {
  Operation *op;
  SmallVector<unsigned, 2> results;
  int64_t step, extent;
  Value share;

  bool isAsFarAs(const Place &other) const {
    return step == other.step && extent == other.extent && share == other.share;
  }
};

/// The map of an operator that has one, its symbols, and the bounds of its
/// results.
struct Mapped {
  AffineMap map, shape;
  OperandRange symbols;
  SmallVector<int64_t> checks;
  ArrayRef<int64_t> tile;
};

std::optional<Mapped> mappedOf(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return Mapped{load.getMap(), load.getShape(), load.getSymbols(),
                  SmallVector<int64_t>(load.getChecks()),
                  load.getType().getShape()};
  if (auto store = dyn_cast<tile::StoreOp>(op); store && !store.getUpdate())
    return Mapped{
        store.getMap(), store.getShape(), store.getSymbols(),
        SmallVector<int64_t>(store.getChecks()),
        cast<RankedTensorType>(store.getValue().getType()).getShape()};
  if (auto bounds = dyn_cast<tile::InBoundsOp>(op))
    return Mapped{
        bounds.getMap(), bounds.getShape(), bounds.getSymbols(),
        llvm::to_vector(llvm::seq<int64_t>(0, bounds.getMap().getNumResults())),
        cast<RankedTensorType>(bounds.getType()).getShape()};
  return std::nullopt;
}

/// How a place moves along a row.
struct Walk {
  int64_t step;
  Value share;
};

/// If `expr` is d(axis) + step * counter, a step being all that the axis has;
/// or that of all instances that share the row and this one's place in it.
std::optional<Walk> walkOf(AffineExpr expr, const Mapped &m, unsigned counter,
                           const graph::Facts &facts) {
  graph::Sum sum(graph::simplify(expr, facts));
  std::optional<unsigned> axis;
  Walk walk{0, Value()};
  int64_t shareTile = 0, shares = 1;
  for (const graph::Sum::Term &term : sum.terms) {
    if (term.atoms.size() != 1)
      return std::nullopt;
    if (auto dim = dyn_cast<AffineDimExpr>(term.atoms.front());
        dim && term.coefficient == 1 && !axis) {
      axis = dim.getPosition();
      continue;
    }
    auto symbol = dyn_cast<AffineSymbolExpr>(term.atoms.front());
    if (!symbol)
      return std::nullopt;
    if (symbol.getPosition() == counter) {
      walk.step = term.coefficient;
      continue;
    }
    graph::Interval range = facts.symbols[symbol.getPosition()];
    if (walk.share || range.low != 0)
      return std::nullopt;
    walk.share = m.symbols[symbol.getPosition()];
    shareTile = term.coefficient;
    shares = range.high + 1;
  }
  if (!axis || sum.constant != 0 || walk.step != m.tile[*axis] * shares ||
      (walk.share && shareTile != m.tile[*axis]))
    return std::nullopt;
  return walk;
}

/// Where `op` uses the counter of `loop`, if it uses it as the number of a tile
/// in a row, with a check, and for nothing else.
std::optional<Place> placeOf(Operation *op, scf::ForOp loop) {
  std::optional<Mapped> m = mappedOf(op);
  Value counter = loop.getInductionVar();
  if (!m || llvm::count(op->getOperands(), counter) != 1)
    return std::nullopt;
  auto found = llvm::find(m->symbols, counter);
  if (found == m->symbols.end())
    return std::nullopt;
  unsigned symbol = found - m->symbols.begin();
  graph::Facts facts = tile::factsOf(m->tile, m->symbols);
  std::optional<Place> place;
  for (auto [r, expr] : llvm::enumerate(m->map.getResults())) {
    if (!expr.isFunctionOfSymbol(symbol))
      continue;
    auto extent = r < m->shape.getNumResults()
                      ? dyn_cast<AffineConstantExpr>(m->shape.getResult(r))
                      : AffineConstantExpr();
    auto walk = extent ? walkOf(expr, *m, symbol, facts) : std::nullopt;
    if (!walk || !llvm::is_contained(m->checks, r))
      return std::nullopt;
    // What is checked beside the place in memory is the same place.
    Place here{op, {unsigned(r)}, walk->step, extent.getValue(), walk->share};
    if (!place)
      place = here;
    else if (place->isAsFarAs(here))
      place->results.push_back(r);
    else
      return std::nullopt;
  }
  for (AffineExpr expr : m->shape.getResults())
    if (expr.isFunctionOfSymbol(symbol))
      return std::nullopt;
  return place;
}

/// An expression over symbols that stand for `values`.
struct Start {
  AffineExpr expr;
  SmallVector<Value> values;
  int64_t vector;
};

/// Where the row of an access begins, in elements, if that does not follow from
/// the tile's axes and is no multiple of a vector.
std::optional<Start> startOf(const Place &place) {
  if (!isa<tile::LoadOp, tile::StoreOp>(place.op))
    return std::nullopt;
  tile::AccessOp access =
      isa<tile::LoadOp>(place.op)
          ? tile::AccessOp::get(cast<tile::LoadOp>(place.op))
          : tile::AccessOp::get(cast<tile::StoreOp>(place.op));
  unsigned bits = access.tile.getElementType().isIntOrFloat()
                      ? access.tile.getElementTypeBitWidth()
                      : 64;
  int64_t vector = kVectorBytes * 8 / std::max(bits, 8u);
  if (!llvm::is_contained(place.results, access.rank - 1) || vector < 2)
    return std::nullopt;
  AffineExpr start = getAffineConstantExpr(0, place.op->getContext());
  for (int64_t i = 0; i < access.rank; ++i)
    start = start * access.shape.getResult(i) +
            (i + 1 == access.rank ? getAffineConstantExpr(0, start.getContext())
                                  : access.map.getResult(i));
  graph::Facts facts = tile::factsOf(access);
  start = graph::simplify(start, facts);
  for (unsigned d = 0; d < access.map.getNumDims(); ++d)
    if (start.isFunctionOfDim(d))
      return std::nullopt;
  for (auto [s, symbol] : llvm::enumerate(access.symbols))
    if (start.isFunctionOfSymbol(s) && !symbol.getType().isIndex())
      return std::nullopt;
  if (graph::divisorOf(start, facts) % vector == 0)
    return std::nullopt;
  return Start{start, llvm::to_vector(access.symbols), vector};
}

/// The number of a symbol of `op`, appended where it has none for the value.
unsigned symbolOf(SmallVectorImpl<Value> &symbols, Value value) {
  auto found = llvm::find(symbols, value);
  unsigned number = found - symbols.begin();
  if (found == symbols.end())
    symbols.push_back(value);
  return number;
}

/// Puts the place as far in front as the row begins behind a whole vector.
void shift(const Place &place, const Start &start) {
  Mapped m = *mappedOf(place.op);
  MLIRContext *context = place.op->getContext();
  SmallVector<Value> symbols(m.symbols);
  SmallVector<AffineExpr> renamed;
  for (auto [s, value] : llvm::enumerate(start.values)) {
    bool isUsed = start.expr.isFunctionOfSymbol(s);
    renamed.push_back(
        getAffineSymbolExpr(isUsed ? symbolOf(symbols, value) : 0, context));
  }
  AffineExpr row = start.expr.replaceSymbols(renamed);
  SmallVector<AffineExpr> results(m.map.getResults());
  for (unsigned r : place.results)
    results[r] = results[r] + row.floorDiv(start.vector) * start.vector - row;
  auto map =
      AffineMap::get(m.map.getNumDims(), symbols.size(), results, context);
  auto shape = AffineMap::get(0, symbols.size(), m.shape.getResults(), context);
  auto apply = [&](auto op) {
    op.getSymbolsMutable().assign(symbols);
    op.setMap(map);
    op.setShape(shape);
  };
  if (auto load = dyn_cast<tile::LoadOp>(place.op))
    apply(load);
  else if (auto store = dyn_cast<tile::StoreOp>(place.op))
    apply(store);
  else
    apply(cast<tile::InBoundsOp>(place.op));
}

/// What may be computed of elements in front of a row, and dropped.
bool isTolerant(Operation *op) {
  return isa<scf::YieldOp, tile::LoadOp, tile::StoreOp, tile::InBoundsOp,
             tile::SplatOp, tile::BroadcastOp, tile::ReduceOp>(op) ||
         OpTrait::hasElementwiseMappableTraits(op) ||
         op->hasTrait<OpTrait::ConstantLike>();
}

void alignLoop(scf::ForOp loop) {
  APInt low, high, by;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&low)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&high)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&by)) || !low.isZero() ||
      !by.isOne() || !llvm::all_of(*loop.getBody(), [](Operation &op) {
        return isTolerant(&op);
      }))
    return;
  SmallVector<Place> places;
  std::optional<Start> start;
  for (Operation *user : loop.getInductionVar().getUsers()) {
    std::optional<Place> place = placeOf(user, loop);
    if (!place)
      return;
    places.push_back(*place);
    if (std::optional<Start> found = startOf(*place))
      if (!start || isa<tile::StoreOp>(user))
        start = found;
  }
  if (!start)
    return;
  int64_t step = places.front().step, extent = places.front().extent;
  bool agree = llvm::all_of(
      places, [&](const Place &p) { return p.isAsFarAs(places.front()); });
  // Where tiles end with the row, nobody looks at what lies outside.
  if (!agree || extent % step == 0 || extent < 2 * start->vector ||
      high.getSExtValue() != int64_t(llvm::divideCeil(extent, step)))
    return;
  for (Value value : start->values)
    if (!loop.isDefinedOutsideOfLoop(value) && value != loop.getInductionVar())
      return;
  for (const Place &place : places)
    shift(place, *start);
  OpBuilder b(loop);
  loop.setUpperBound(arith::ConstantIndexOp::create(
      b, loop.getLoc(), llvm::divideCeil(extent + start->vector - 1, step)));
}

} // namespace

void charonia::gpu::alignRows(func::FuncOp function) {
  SmallVector<scf::ForOp> loops;
  function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    alignLoop(loop);
}
