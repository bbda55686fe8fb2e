// Pooling: what lies in a window is combined.
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// What element `k` of the windows gives: the input there, and with
/// `counts` whether the average counts it. What lies outside is neutral.
/// `firstOfRow`: where windows begin along the last dimension, if that is known
/// otherwise than by the demand.
FailureOr<SmallVector<Value>> windowTerms(graph::PoolOp op, TileEmitter &e,
                                          const Demand &d,
                                          ArrayRef<AffineExpr> k,
                                          AffineExpr firstOfRow,
                                          TypedAttr neutral, bool counts) {
  Exprs shape = graph::getShape(op.getInput());
  unsigned spatial = k.size();
  Demand input{op.getInput(), d.tile, d.coordinates, {}};
  SmallVector<Guard> inside, insidePadded;
  for (unsigned i = 0; i < spatial; ++i) {
    unsigned dim = op.spatialDim(i);
    AffineExpr n = shape[dim];
    int64_t low = op.getPads()[i], high = op.getPads()[spatial + i];
    AffineExpr c = d.coordinates[dim] * op.getStrides()[i] +
                   k[i] * op.getDilations()[i] - low;
    if (firstOfRow && i + 1 == spatial)
      c = firstOfRow + k[i] * op.getDilations()[i];
    input.coordinates[dim] = c;
    inside.push_back({c, n});
    insidePadded.push_back({c + low, n + (low + high)});
  }
  input.guards = inside;
  FailureOr<Value> x = e.emit(std::move(input));
  if (failed(x))
    return failure();
  Value mask = e.emitInBounds(inside, d.tile);
  if (mask && (op.getKind() == graph::PoolKind::max || !isZeroOutside(*x))) {
    Value outside = op.getPadValue()
                        ? e.splat(op.getPadValue()->convertToDouble(),
                                  neutral.getType(), d.tile)
                        : e.splat(neutral, d.tile);
    *x = arith::SelectOp::create(e.b(), e.loc(), mask, *x, outside);
  }
  SmallVector<Value> terms{*x};
  if (counts) {
    if (op.getCountIncludePad())
      mask = e.emitInBounds(insidePadded, d.tile);
    terms.push_back(e.maskWith(mask, e.splat(1, neutral.getType(), d.tile), 0));
  }
  return terms;
}

class PoolEmitter {
public:
  PoolEmitter(graph::PoolOp op, TileEmitter &e, const Demand &demand)
      : op(op), e(e), demand(demand),
        average(op.getKind() == graph::PoolKind::average),
        counts(average && isPadded()),
        reduction{op.getKind() == graph::PoolKind::max ? graph::ReduceKind::max
                                                       : graph::ReduceKind::sum,
                  isUnsignedElement(op.getType())} {
    Type type =
        e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
    neutral.push_back(reduction.neutral(type));
    if (counts)
      neutral.push_back(e.b().getFloatAttr(type, 0));
    for (int64_t extent : op.getKernel())
      kernel.push_back(e.constant(extent));
    alongRow = e.getSchedule().alongTerms && op.getKernel().back() > 1;
    chooseLoops();
  }

  /// Of an open size, tiles that lie inside as a whole look at no element's
  /// place.
  FailureOr<Value> run() {
    unsigned last = kernel.size() - 1, dim = op.spatialDim(last);
    AffineExpr extent = graph::getShape(op.getInput())[dim];
    Guard start{};
    if (mayLeave(last) && !graph::constantOf(extent))
      start = {demand.coordinates[dim] * op.getStrides()[last] -
                   op.getPads()[last],
               extent - (op.getKernel()[last] - 1) * op.getDilations()[last]};
    return insideOrNot(e, demand.tile,
                       e.tileType(demand.tile, neutral[0].getType()), start,
                       [&](ArrayRef<AffineExpr> known) {
                         firstOfRow = known[0];
                         return walk();
                       });
  }

private:
  FailureOr<Value> walk() {
    auto combine = [&](OpBuilder &b, Location loc, ArrayRef<Value> x,
                       ArrayRef<Value> y) {
      SmallVector<Value> sum{reduction(b, loc, x[0], y[0])};
      if (counts)
        sum.push_back(arith::AddFOp::create(b, loc, x[1], y[1]));
      return sum;
    };
    auto row = [&](ArrayRef<WindowPlace> places) {
      return alongRow ? rowOfLanes(places) : rowOneByOne(places, combine);
    };
    // Elements of a row side by side are combined with each other at the end.
    Demand wide = alongRow ? e.addAxis(demand, op.getKernel().back()) : demand;
    SmallVector<Value> none;
    for (TypedAttr n : neutral)
      if (!loops.empty())
        none.push_back(e.splat(n, wide.tile));
    FailureOr<SmallVector<Value>> result =
        loops.empty() ? row({}) : walkWindow(e, loops, none, combine, row);
    if (failed(result))
      return failure();
    if (alongRow)
      result = combineAlongLast(e, demand, *result, neutral, combine);
    return finished(*result);
  }

  bool isPadded() {
    return op.getCeilMode() ||
           llvm::any_of(op.getPads(), [](int64_t p) { return p != 0; });
  }
  bool mayLeave(unsigned i) {
    return op.getCeilMode() || op.getPads()[i] != 0 ||
           op.getPads()[op.getKernel().size() + i] != 0;
  }

  /// Whether all of a tile's windows have the same rows along dimension `i`, of
  /// an open size: written out, each row would look at its place.
  bool entersOpen(unsigned i, ArrayRef<AffineExpr> shape) {
    unsigned dim = op.spatialDim(i);
    return !graph::constantOf(shape[dim]) && op.getKernel()[i] > 1 &&
           op.getDilations()[i] == 1 &&
           e.isScalar(e.simplify(demand.coordinates[dim], demand.tile));
  }

  /// On a CPU the leading dimensions of a large window are loops, which look at
  /// what lies outside once for a row of the window.
  void chooseLoops() {
    if (e.getTarget().kind != EmitTarget::Kind::Cpu)
      return;
    unsigned outer =
        e.getSchedule().alongTerms ? kernel.size() - 1 : outerLoops(e, kernel);
    Exprs shape = graph::getShape(op.getInput());
    bool countsOutside =
        op.getPadValue() || (average && op.getCountIncludePad());
    while (outer + 1 < kernel.size() && mayLeave(outer) &&
           (outer > 0 || (!countsOutside && entersOpen(outer, shape))))
      ++outer;
    for (unsigned i = 0; i < outer; ++i) {
      unsigned dim = op.spatialDim(i);
      loops.push_back({kernel[i], {}, {}});
      if (countsOutside || op.getDilations()[i] != 1)
        continue;
      loops.back().start = e.simplify(
          demand.coordinates[dim] * op.getStrides()[i] - op.getPads()[i],
          demand.tile);
      loops.back().size = shape[dim];
    }
  }

  static Exprs insideOf(ArrayRef<WindowPlace> places) {
    Exprs k;
    for (const WindowPlace &place : places)
      k.push_back(place.inside);
    return k;
  }

  FailureOr<SmallVector<Value>> rowOfLanes(ArrayRef<WindowPlace> places) {
    Exprs k = insideOf(places);
    k.push_back(e.axis(demand.rank()));
    return windowTerms(op, e, e.addAxis(demand, op.getKernel().back()), k,
                       firstOfRow, neutral[0], counts);
  }

  FailureOr<SmallVector<Value>> rowOneByOne(ArrayRef<WindowPlace> places,
                                            Combine combine) {
    Exprs inner(ArrayRef(kernel).drop_front(loops.size()));
    return reduceOver(e, demand, graph::numElements(inner, e.context()),
                      /*contiguous=*/false, neutral, combine,
                      [&](const Demand &d, AffineExpr index) {
                        Exprs k = insideOf(places);
                        llvm::append_range(k, delinearize(index, inner));
                        return windowTerms(op, e, d, k, firstOfRow, neutral[0],
                                           counts);
                      });
  }

  Value finished(ArrayRef<Value> result) {
    Value sum = result[0];
    if (counts)
      return arith::DivFOp::create(e.b(), e.loc(), sum, result[1]);
    if (!average)
      return sum;
    int64_t window = 1;
    for (int64_t extent : op.getKernel())
      window *= extent;
    return arith::MulFOp::create(e.b(), e.loc(), sum,
                                 e.splatLike(1.0 / window, sum));
  }

  graph::PoolOp op;
  TileEmitter &e;
  const Demand &demand;
  bool average, counts, alongRow;
  ReductionOf reduction;
  SmallVector<TypedAttr> neutral;
  Exprs kernel;
  SmallVector<WindowDim> loops;
  AffineExpr firstOfRow;
};

FailureOr<Value> pool(graph::PoolOp op, TileEmitter &e, const Demand &demand) {
  return PoolEmitter(op, e, demand).run();
}

} // namespace

void emit::registerPoolRule(MLIRContext *c) {
  graph::PoolOp::attachInterface<Rule<graph::PoolOp, pool>>(*c);
}
