#include "codegen/gpu/InsideTiles.h"
#include "codegen/gpu/LayoutPlan.h"
#include "codegen/gpu/Loops.h"
#include "codegen/tile/analysis/Access.h"
#include "codegen/tile/analysis/Values.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include <optional>

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using graph::Interval;

namespace {

/// The bounds that an operator asks for: results `checks` of `map` are less
/// than those of `shape`.
struct Bounds {
  AffineMap map, shape;
  OperandRange symbols;
  SmallVector<int64_t> checks;
  ArrayRef<int64_t> tile;
};

std::optional<Bounds> boundsOf(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return Bounds{load.getMap(), load.getShape(), load.getSymbols(),
                  SmallVector<int64_t>(load.getChecks()),
                  load.getType().getShape()};
  if (auto store = dyn_cast<tile::StoreOp>(op); store && !store.getUpdate())
    return Bounds{
        store.getMap(), store.getShape(), store.getSymbols(),
        SmallVector<int64_t>(store.getChecks()),
        cast<RankedTensorType>(store.getValue().getType()).getShape()};
  if (auto bounds = dyn_cast<tile::InBoundsOp>(op))
    return Bounds{
        bounds.getMap(), bounds.getShape(), bounds.getSymbols(),
        llvm::to_vector(llvm::seq<int64_t>(0, bounds.getMap().getNumResults())),
        cast<RankedTensorType>(bounds.getType()).getShape()};
  return std::nullopt;
}

/// `expr` without what it rounds: of c * (x floordiv c) is x left, which is too
/// much by c - 1 at most. `off`: what the result is to be corrected by.
AffineExpr withoutRounding(AffineExpr expr, const graph::Facts &facts,
                           Interval &off) {
  graph::Sum sum(graph::simplify(expr, facts));
  AffineExpr total = getAffineConstantExpr(sum.constant, expr.getContext());
  for (const graph::Sum::Term &term : sum.terms) {
    auto division = dyn_cast<AffineBinaryOpExpr>(term.atoms.front());
    auto by = division && division.getKind() == AffineExprKind::FloorDiv
                  ? dyn_cast<AffineConstantExpr>(division.getRHS())
                  : AffineConstantExpr();
    // By 0 is what nobody computes: of an extent of 0.
    if (!by || by.getValue() < 1 || term.atoms.size() != 1 ||
        term.coefficient % by.getValue() != 0) {
      total = total + term.toExpr();
      continue;
    }
    int64_t times = term.coefficient / by.getValue();
    total = total + division.getLHS() * times;
    off = off + Interval{1 - by.getValue(), 0} * Interval{times, times};
  }
  return graph::simplify(total, facts);
}

/// Whether result `i` of the map is certain to be in bounds, and so far from
/// them as `margin` says. `counter`, if given, lies in `range`.
bool isCertain(const Bounds &bounds, int64_t i, Value counter = {},
               Interval range = {}, int64_t margin = 0) {
  auto extent = dyn_cast<AffineConstantExpr>(bounds.shape.getResult(i));
  for (Value symbol : bounds.symbols)
    if (!symbol.getType().isIndex())
      return false;
  if (!extent)
    return false;
  graph::Facts facts = tile::factsOf(bounds.tile, bounds.symbols);
  for (auto [s, symbol] : llvm::enumerate(bounds.symbols))
    if (counter && symbol == counter)
      facts.symbols[s] = range;
  Interval off{0, 0};
  AffineExpr place = withoutRounding(bounds.map.getResult(i), facts, off);
  Interval found = graph::boundsOf(place, facts) + off;
  return found.low >= margin && found.high < extent.getValue() - margin;
}

/// Whether all bounds that depend on the counter are certain while it lies in
/// `range`. `any`: there are some.
bool areCertain(scf::ForOp loop, Interval range, bool &any) {
  Value counter = loop.getInductionVar();
  for (Operation &op : *loop.getBody()) {
    std::optional<Bounds> bounds = ::boundsOf(&op);
    if (!bounds)
      continue;
    for (auto [s, symbol] : llvm::enumerate(bounds->symbols)) {
      if (symbol != counter)
        continue;
      for (int64_t i : bounds->checks)
        if (bounds->map.getResult(i).isFunctionOfSymbol(s)) {
          any = true;
          if (!isCertain(*bounds, i, counter, range))
            return false;
        }
    }
  }
  return true;
}

/// A loop of its own for the iterations at either end.
void cutEnds(scf::ForOp loop) {
  constexpr int64_t fewest = 4;
  std::optional<int64_t> count = countOf(loop);
  if (!count || *count < fewest ||
      !loop.getBody()->getOps<simt::ToSharedOp>().empty())
    return;
  Iterations whole = wholeIterations(loop, *count);
  if (whole.end == whole.first || whole.end - whole.first == *count)
    return;
  OpBuilder b(loop);
  SmallVector<Value> carried(loop.getInitArgs());
  int64_t ends[] = {0, whole.first, whole.end, *count};
  for (unsigned part = 0; part < 3; ++part) {
    if (ends[part] == ends[part + 1])
      continue;
    IRMapping mapping;
    auto cut = cast<scf::ForOp>(b.clone(*loop, mapping));
    b.setInsertionPoint(cut);
    cut.setLowerBound(
        arith::ConstantIndexOp::create(b, loop.getLoc(), ends[part]));
    cut.setUpperBound(
        arith::ConstantIndexOp::create(b, loop.getLoc(), ends[part + 1]));
    cut.getInitArgsMutable().assign(carried);
    b.setInsertionPointAfter(cut);
    carried.assign(cut.getResults().begin(), cut.getResults().end());
  }
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

/// Takes what is certain out of the operator's checks.
template <typename Op> void dropChecks(Op op) {
  std::optional<Bounds> bounds = ::boundsOf(op);
  if (!bounds)
    return;
  SmallVector<int64_t> left;
  for (int64_t i : bounds->checks)
    if (!isCertain(*bounds, i))
      left.push_back(i);
  if (left.size() != bounds->checks.size())
    op.setChecks(left);
}

void dropChecks(tile::LoadOp load) {
  tile::AccessOp access = tile::AccessOp::get(load);
  if (!LayoutPlan::unalignedRuns(access, tile::analyzeAxes(access),
                                 simt::layoutOf(load.getResult())))
    return dropChecks<tile::LoadOp>(load);
  // Vectors that hold neighbours of the tile's elements, too.
  constexpr int64_t margin = 16;
  Bounds bounds = *::boundsOf(load);
  if (isCertain(bounds, bounds.checks.front(), {}, {}, margin))
    load->setAttr(kAmidAttr, UnitAttr::get(load.getContext()));
}

void dropInBounds(tile::InBoundsOp op) {
  Bounds bounds = *::boundsOf(op);
  if (!llvm::all_of(bounds.checks,
                    [&](int64_t i) { return isCertain(bounds, i); }))
    return;
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (auto select = dyn_cast<arith::SelectOp>(user);
        select && select.getCondition() == op.getResult()) {
      select.replaceAllUsesWith(select.getTrueValue());
      select.erase();
    }
  if (op->use_empty())
    op.erase();
}

} // namespace

Iterations charonia::gpu::wholeIterations(scf::ForOp loop, int64_t count) {
  constexpr int64_t fewest = 2;
  for (auto [first, end] : {std::pair<int64_t, int64_t>{0, count},
                            {0, count - 1},
                            {1, count},
                            {1, count - 1}}) {
    bool any = false;
    if (end - first >= fewest &&
        areCertain(loop, Interval{first, end - 1}, any))
      return any ? Iterations{first, end} : Iterations{};
  }
  return {};
}

void charonia::gpu::dropCertainBounds(func::FuncOp function) {
  SmallVector<scf::ForOp> loops;
  function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    cutEnds(loop);
  SmallVector<tile::InBoundsOp> places;
  function.walk([&](Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      dropChecks(load);
    else if (auto store = dyn_cast<tile::StoreOp>(op))
      dropChecks(store);
    else if (auto bounds = dyn_cast<tile::InBoundsOp>(op))
      places.push_back(bounds);
  });
  for (tile::InBoundsOp bounds : places)
    dropInBounds(bounds);
}
