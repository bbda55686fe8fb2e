// Reductions, pooling, softmax, normalization.
#include "codegen/emit/rules/Rules.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

TypedAttr ReductionOf::neutral(Type type) const {
  Builder b(type.getContext());
  if (auto f = dyn_cast<FloatType>(type)) {
    double inf = std::numeric_limits<double>::infinity();
    switch (kind) {
    case graph::ReduceKind::sum:
      return b.getFloatAttr(f, 0);
    case graph::ReduceKind::prod:
      return b.getFloatAttr(f, 1);
    case graph::ReduceKind::max:
      return b.getFloatAttr(f, -inf);
    case graph::ReduceKind::min:
      return b.getFloatAttr(f, inf);
    }
  }
  unsigned width = cast<IntegerType>(type).getWidth();
  bool noSign = isUnsigned || width == 1;
  switch (kind) {
  case graph::ReduceKind::sum:
    return b.getIntegerAttr(type, 0);
  case graph::ReduceKind::prod:
    return b.getIntegerAttr(type, 1);
  case graph::ReduceKind::max:
    return b.getIntegerAttr(type, noSign ? APInt::getZero(width)
                                         : APInt::getSignedMinValue(width));
  case graph::ReduceKind::min:
    return b.getIntegerAttr(type, noSign ? APInt::getMaxValue(width)
                                         : APInt::getSignedMaxValue(width));
  }
  llvm_unreachable("a reduction is sum, prod, max or min");
}

Value ReductionOf::operator()(OpBuilder &b, Location loc, Value x,
                              Value y) const {
  Type element = getElementTypeOrSelf(x.getType());
  bool noSign = isUnsigned || element.isInteger(1);
  switch (kind) {
  case graph::ReduceKind::sum:
    if (isa<FloatType>(element))
      return arith::AddFOp::create(b, loc, x, y);
    return arith::AddIOp::create(b, loc, x, y);
  case graph::ReduceKind::prod:
    if (isa<FloatType>(element))
      return arith::MulFOp::create(b, loc, x, y);
    return arith::MulIOp::create(b, loc, x, y);
  case graph::ReduceKind::max:
    if (isa<FloatType>(element))
      return arith::MaximumFOp::create(b, loc, x, y);
    return noSign ? Value(arith::MaxUIOp::create(b, loc, x, y))
                  : arith::MaxSIOp::create(b, loc, x, y);
  case graph::ReduceKind::min:
    if (isa<FloatType>(element))
      return arith::MinimumFOp::create(b, loc, x, y);
    return noSign ? Value(arith::MinUIOp::create(b, loc, x, y))
                  : arith::MinSIOp::create(b, loc, x, y);
  }
  llvm_unreachable("a reduction is sum, prod, max or min");
}

/// An extent at the symbols' opt values.
static std::optional<int64_t> atOptimum(TileEmitter &e, AffineExpr extent) {
  SmallVector<int64_t> sizes;
  for (const graph::Symbol &s :
       graph::getSymbols(e.getKernel()->getParentOfType<ModuleOp>()))
    sizes.push_back(s.opt);
  bool ofSizes = true;
  extent.walk([&](AffineExpr x) {
    auto symbol = dyn_cast<AffineSymbolExpr>(x);
    ofSizes &= !symbol || symbol.getPosition() < sizes.size();
  });
  return ofSizes ? graph::evaluate(extent, sizes) : std::nullopt;
}

/// How many terms are taken at once: 1, or the extent of a new tile axis.
/// `usual` stands for an extent that is not known.
static int64_t chunkOf(const EmitTarget &target, const Demand &outer,
                       std::optional<int64_t> extent,
                       std::optional<int64_t> usual, bool contiguous) {
  int64_t rows = 1;
  for (int64_t t : outer.tile)
    rows *= t;
  if (target.kind == EmitTarget::Kind::Cpu) {
    if (!contiguous)
      return 1;
    // As many accumulators as hide the latency of the combination; a short row
    // stays in registers from load to result.
    int64_t most = std::max<int64_t>(target.vectorElements * 8 / rows,
                                     target.vectorElements);
    if (extent && *extent <= most)
      return *extent;
    return std::max<int64_t>(most / 2, target.vectorElements);
  }
  int64_t budget = contiguous ? 8192 : 2048;
  int64_t most = std::max<int64_t>(llvm::bit_floor<uint64_t>(budget / rows),
                                   contiguous ? 32 : 1);
  if (!extent)
    return std::min(
        most, std::clamp<int64_t>(
                  llvm::bit_ceil<uint64_t>(usual.value_or(1024)), 128, 1024));
  return std::min<int64_t>(most, llvm::bit_ceil<uint64_t>(*extent));
}

FailureOr<SmallVector<Value>>
emit::loopInBlocks(TileEmitter &e, AffineExpr count, int64_t most,
                   ArrayRef<Value> initial, ArrayRef<Value> neutral,
                   Combine combine, TileEmitter::LoopBody body) {
  std::optional<int64_t> steps = graph::constantOf(e.simplify(count, {}));
  if (most < 1 || !steps || *steps < 2 * most)
    return e.loop(count, initial, body);
  int64_t block = most;
  while (block > most / 2 && *steps % block != 0)
    --block;
  if (*steps % block != 0)
    block = most;
  auto withBlock =
      [&](AffineExpr first, int64_t length,
          ArrayRef<Value> carried) -> FailureOr<SmallVector<Value>> {
    FailureOr<SmallVector<Value>> partial =
        e.loop(e.constant(length), neutral,
               [&](AffineExpr round, ArrayRef<Value> values) {
                 return body(first + round, values);
               });
    if (failed(partial))
      return failure();
    return combine(e.b(), e.loc(), carried, *partial);
  };
  FailureOr<SmallVector<Value>> total =
      e.loop(e.constant(*steps / block), initial,
             [&](AffineExpr round, ArrayRef<Value> carried) {
               return withBlock(round * block, block, carried);
             });
  int64_t rest = *steps % block;
  if (failed(total) || rest == 0)
    return total;
  return withBlock(e.constant(*steps - rest), rest, *total);
}

FailureOr<SmallVector<Value>> emit::reduceOver(
    TileEmitter &e, const Demand &outer, AffineExpr extent, bool contiguous,
    ArrayRef<TypedAttr> neutral, Combine combine,
    function_ref<FailureOr<SmallVector<Value>>(const Demand &, AffineExpr)>
        element,
    bool part) {
  OpBuilder &b = e.b();
  extent = e.simplify(extent, {});
  std::optional<int64_t> known = graph::constantOf(extent);

  if (known == 0) {
    SmallVector<Value> nothing;
    for (TypedAttr n : neutral)
      nothing.push_back(e.splat(n, outer.tile));
    return nothing;
  }

  // Few terms that lie apart (a pooling window) are written out.
  if (known && *known <= 16 && !contiguous && !part) {
    FailureOr<SmallVector<Value>> total = element(outer, e.constant(0));
    for (int64_t i = 1; i < *known && succeeded(total); ++i) {
      FailureOr<SmallVector<Value>> term = element(outer, e.constant(i));
      if (failed(term))
        return failure();
      total = combine(b, e.loc(), *total, *term);
    }
    return total;
  }

  int64_t chunk =
      chunkOf(e.getTarget(), outer, known, atOptimum(e, extent), contiguous);
  Demand inner = chunk > 1 ? e.addAxis(outer, chunk) : outer;
  auto masked = [&](AffineExpr counter) -> FailureOr<SmallVector<Value>> {
    AffineExpr index = counter * chunk;
    if (chunk > 1)
      index = index + e.axis(outer.rank());
    FailureOr<SmallVector<Value>> terms = element(inner, index);
    if (failed(terms))
      return failure();
    if (Value mask = e.emitInBounds({{index, extent}}, inner.tile))
      for (auto [i, term] : llvm::enumerate(*terms))
        (*terms)[i] = arith::SelectOp::create(b, e.loc(), mask, term,
                                              e.splat(neutral[i], inner.tile));
    return terms;
  };

  AffineExpr count = (extent + (chunk - 1)).floorDiv(chunk),
             first = e.constant(0);
  if (part) {
    // What is behind the last is neutral.
    const TileEmitter::Split &split = e.getSplit();
    count = e.simplify((count + (split.count - 1)).floorDiv(split.count), {});
    first = split.part * count;
  }
  count = e.simplify(count, {});
  FailureOr<SmallVector<Value>> total;
  if (graph::constantOf(count) == 1) {
    total = masked(first);
  } else {
    SmallVector<Value> start;
    for (TypedAttr n : neutral)
      start.push_back(e.splat(n, inner.tile));
    bool cpu = e.getTarget().kind == EmitTarget::Kind::Cpu;
    // The steps that lie inside as a whole look at no element's place.
    bool ragged = cpu && !part && known && *known % chunk != 0;
    if (ragged)
      count = e.constant(*known / chunk);
    total = loopInBlocks(
        e, count, cpu ? longestChain : 0, start, start, combine,
        [&](AffineExpr counter,
            ArrayRef<Value> carried) -> FailureOr<SmallVector<Value>> {
          FailureOr<SmallVector<Value>> terms = masked(first + counter);
          if (failed(terms))
            return failure();
          return combine(b, e.loc(), carried, *terms);
        });
    if (ragged && succeeded(total)) {
      FailureOr<SmallVector<Value>> rest = masked(count);
      if (failed(rest))
        return failure();
      total = combine(b, e.loc(), *total, *rest);
    }
  }
  if (failed(total) || chunk == 1)
    return total;

  SmallVector<Type> types;
  for (TypedAttr n : neutral)
    types.push_back(e.tileType(outer.tile, n.getType()));
  auto reduce =
      tile::ReduceOp::create(b, e.loc(), types, *total, /*axis=*/outer.rank());
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&reduce.getCombiner());
  SmallVector<Value> left, right;
  for (TypedAttr n : neutral)
    left.push_back(block->addArgument(n.getType(), e.loc()));
  for (TypedAttr n : neutral)
    right.push_back(block->addArgument(n.getType(), e.loc()));
  tile::YieldOp::create(b, e.loc(), combine(b, e.loc(), left, right));
  return SmallVector<Value>(reduce.getResults().begin(),
                            reduce.getResults().end());
}

bool emit::isUnsignedElement(Type type) {
  return cast<RankedTensorType>(type).getElementType().isUnsignedInteger();
}

AffineExpr emit::extentOf(TileEmitter &e, ArrayRef<AffineExpr> shape,
                          ArrayRef<int64_t> axes) {
  AffineExpr n = e.constant(1);
  for (int64_t axis : axes)
    n = n * shape[axis];
  return n;
}

bool emit::endsWithLast(ArrayRef<int64_t> axes, ArrayRef<AffineExpr> shape) {
  unsigned last = shape.size();
  while (last > 1 && graph::constantOf(shape[last - 1]) == 1)
    --last;
  return llvm::is_contained(axes, (int64_t)last - 1);
}

namespace {

/// Coordinates of the input of a reduction: those of the result, and those of a
/// linear index over the axes.
Exprs inputCoordinates(ArrayRef<AffineExpr> result, ArrayRef<int64_t> axes,
                       bool keepdims, ArrayRef<AffineExpr> shape,
                       AffineExpr index) {
  Exprs extents;
  for (int64_t axis : axes)
    extents.push_back(shape[axis]);
  Exprs reduced = delinearize(index, extents), coordinates;
  unsigned next = 0, r = 0;
  for (unsigned i = 0; i < shape.size(); ++i) {
    bool isReduced = llvm::is_contained(axes, (int64_t)i);
    coordinates.push_back(isReduced ? reduced[r++] : result[next]);
    if (!isReduced || keepdims)
      ++next;
  }
  return coordinates;
}

FailureOr<Value> reduce(graph::ReduceOp op, TileEmitter &e,
                        const Demand &demand) {
  Exprs shape = graph::getShape(op.getInput());
  ArrayRef<int64_t> axes = op.getAxes();
  ReductionOf reduction{op.getKind(), isUnsignedElement(op.getType())};
  Type type =
      e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
  bool split = e.getSplit().count > 1 && type.isF32() &&
               op.getKind() == graph::ReduceKind::sum;
  FailureOr<SmallVector<Value>> result = reduceOver(
      e, demand, extentOf(e, shape, axes), endsWithLast(axes, shape),
      {reduction.neutral(type)},
      [&](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
        return SmallVector<Value>{reduction(b, loc, x[0], y[0])};
      },
      [&](const Demand &d, AffineExpr index) -> FailureOr<SmallVector<Value>> {
        FailureOr<Value> x =
            e.emit({op.getInput(),
                    d.tile,
                    inputCoordinates(d.coordinates, axes, op.getKeepdims(),
                                     shape, index),
                    {}});
        return failed(x) ? FailureOr<SmallVector<Value>>()
                         : SmallVector<Value>{*x};
      },
      split);
  if (failed(result))
    return failure();
  return split ? e.sumParts(result->front()) : result->front();
}

FailureOr<Value> argReduce(graph::ArgReduceOp op, TileEmitter &e,
                           const Demand &demand) {
  Exprs shape = graph::getShape(op.getInput());
  int64_t axis = op.getAxis();
  ReductionOf order{op.getMin() ? graph::ReduceKind::min
                                : graph::ReduceKind::max,
                    isUnsignedElement(op.getInput().getType())};
  Type type = e.computeType(
      cast<RankedTensorType>(op.getInput().getType()).getElementType());
  Type i64 = e.b().getI64Type();
  bool last = op.getLast();
  TypedAttr noIndex =
      e.b().getI64IntegerAttr(last ? -1 : std::numeric_limits<int64_t>::max());
  FailureOr<SmallVector<Value>> result = reduceOver(
      e, demand, shape[axis], endsWithLast({axis}, shape),
      {order.neutral(type), noIndex},
      [&](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
        Value best = order(b, loc, x[0], y[0]);
        Value tie, left;
        if (isa<FloatType>(type)) {
          using P = arith::CmpFPredicate;
          auto compare = [&](P how, Value left, Value right) -> Value {
            return arith::CmpFOp::create(b, loc, how, left, right);
          };
          // NaN comes before all others, and equals itself.
          Value xIs = compare(P::UNO, x[0], x[0]),
                yIs = compare(P::UNO, y[0], y[0]);
          left = compare(order.kind == graph::ReduceKind::max ? P::OGT : P::OLT,
                         x[0], y[0]);
          left = arith::OrIOp::create(b, loc, left, xIs);
          tie = arith::OrIOp::create(b, loc, compare(P::OEQ, x[0], y[0]),
                                     arith::AndIOp::create(b, loc, xIs, yIs));
        } else {
          tie = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x[0],
                                      y[0]);
          left = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, best,
                                       x[0]);
        }
        Value first = last ? Value(arith::MaxSIOp::create(b, loc, x[1], y[1]))
                           : arith::MinSIOp::create(b, loc, x[1], y[1]);
        Value index = arith::SelectOp::create(b, loc, left, x[1], y[1]);
        index = arith::SelectOp::create(b, loc, tie, first, index);
        return SmallVector<Value>{best, index};
      },
      [&](const Demand &d, AffineExpr index) -> FailureOr<SmallVector<Value>> {
        FailureOr<Value> x =
            e.emit({op.getInput(),
                    d.tile,
                    inputCoordinates(d.coordinates, {axis}, op.getKeepdims(),
                                     shape, index),
                    {}});
        if (failed(x))
          return failure();
        Value i =
            arith::IndexCastOp::create(e.b(), e.loc(), e.tileType(d.tile, i64),
                                       e.emitIndex(index, d.tile));
        return SmallVector<Value>{*x, i};
      });
  return failed(result) ? FailureOr<Value>() : FailureOr<Value>((*result)[1]);
}

FailureOr<Value> pool(graph::PoolOp op, TileEmitter &e, const Demand &demand) {
  OpBuilder &b = e.b();
  Exprs shape = graph::getShape(op.getInput());
  unsigned spatial = op.getKernel().size();
  AffineExpr window = e.constant(1);
  Exprs kernel;
  for (int64_t k : op.getKernel()) {
    kernel.push_back(e.constant(k));
    window = window * k;
  }
  bool isMax = op.getKind() == graph::PoolKind::max,
       average = op.getKind() == graph::PoolKind::average;
  bool padded = op.getCeilMode() ||
                llvm::any_of(op.getPads(), [](int64_t p) { return p != 0; });
  bool counts = average && padded;
  ReductionOf reduction{isMax ? graph::ReduceKind::max : graph::ReduceKind::sum,
                        isUnsignedElement(op.getType())};
  Type type =
      e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
  SmallVector<TypedAttr> neutral{reduction.neutral(type)};
  if (counts)
    neutral.push_back(b.getFloatAttr(type, 0));
  FailureOr<SmallVector<Value>> result = reduceOver(
      e, demand, window, /*contiguous=*/false, neutral,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
        SmallVector<Value> sum{reduction(b, loc, x[0], y[0])};
        if (counts)
          sum.push_back(arith::AddFOp::create(b, loc, x[1], y[1]));
        return sum;
      },
      [&](const Demand &d, AffineExpr index) -> FailureOr<SmallVector<Value>> {
        Exprs k = delinearize(index, kernel);
        Demand input{op.getInput(), d.tile, d.coordinates, {}};
        SmallVector<Guard> inside, insidePadded;
        for (unsigned i = 0; i < spatial; ++i) {
          unsigned dim = op.spatialDim(i);
          AffineExpr n = shape[dim];
          int64_t low = op.getPads()[i], high = op.getPads()[spatial + i];
          AffineExpr c = d.coordinates[dim] * op.getStrides()[i] +
                         k[i] * op.getDilations()[i] - low;
          input.coordinates[dim] = c;
          inside.push_back({c, n});
          insidePadded.push_back({c + low, n + (low + high)});
        }
        input.guards = inside;
        FailureOr<Value> x = e.emit(std::move(input));
        if (failed(x))
          return failure();
        Value mask = e.emitInBounds(inside, d.tile);
        if (mask && (isMax || !isZeroOutside(*x)))
          *x = arith::SelectOp::create(b, e.loc(), mask, *x,
                                       e.splat(neutral[0], d.tile));
        SmallVector<Value> terms{*x};
        if (counts) {
          if (op.getCountIncludePad())
            mask = e.emitInBounds(insidePadded, d.tile);
          terms.push_back(e.maskWith(mask, e.splat(1, type, d.tile), 0));
        }
        return terms;
      });
  if (failed(result) || !average)
    return failed(result) ? FailureOr<Value>()
                          : FailureOr<Value>(result->front());
  if (counts)
    return Value(arith::DivFOp::create(b, e.loc(), (*result)[0], (*result)[1]));
  double scale = 1.0 / *graph::constantOf(window);
  return Value(arith::MulFOp::create(b, e.loc(), (*result)[0],
                                     e.splatLike(scale, (*result)[0])));
}

/// What softmax and normalize share: reductions along the row that the demanded
/// elements lie in. A row's reductions depend on no axis that only moves along
/// the row, so they are emitted once for it, outside the loop over its
/// elements.
class RowEmitter {
public:
  RowEmitter(TileEmitter &e, Value input, ArrayRef<int64_t> axes,
             const Demand &demand)
      : e(e), input(input), axes(axes), shape(graph::getShape(input)),
        row(demand), extent(extentOf(e, shape, axes)) {
    for (int64_t axis : axes)
      row.coordinates[axis] = e.constant(0);
    row.guards.clear();
  }

  AffineExpr getExtent() const { return extent; }

  /// A tile of the input.
  FailureOr<Value> element(const Demand &d) {
    return e.emit({input, d.tile, d.coordinates, {}});
  }

  /// Reduction `kind` of f(element) along the row, as a tile of `at`'s shape.
  FailureOr<Value> reduce(const Demand &at, unsigned part,
                          graph::ReduceKind kind,
                          function_ref<FailureOr<Value>(const Demand &)> f) {
    Demand start = at;
    for (int64_t axis : axes)
      start.coordinates[axis] = e.constant(0);
    start.guards.clear();
    FailureOr<SmallVector<Value>> result =
        e.emitPart(start, part, [&](const Demand &outer) {
          Type type = e.computeType(
              cast<RankedTensorType>(input.getType()).getElementType());
          ReductionOf reduction{kind};
          return reduceOver(
              e, outer, extent, endsWithLast(axes, shape),
              {reduction.neutral(type)},
              [&](OpBuilder &b, Location loc, ArrayRef<Value> x,
                  ArrayRef<Value> y) {
                return SmallVector<Value>{reduction(b, loc, x[0], y[0])};
              },
              [&](const Demand &d,
                  AffineExpr index) -> FailureOr<SmallVector<Value>> {
                Demand inside = d;
                Exprs extents;
                for (int64_t axis : axes)
                  extents.push_back(shape[axis]);
                for (auto [axis, c] :
                     llvm::zip(axes, delinearize(index, extents)))
                  inside.coordinates[axis] = c;
                FailureOr<Value> x = f(inside);
                return failed(x) ? FailureOr<SmallVector<Value>>()
                                 : SmallVector<Value>{*x};
              });
        });
    return failed(result) ? FailureOr<Value>()
                          : FailureOr<Value>(result->front());
  }

private:
  TileEmitter &e;
  Value input;
  SmallVector<int64_t> axes;
  Exprs shape;
  Demand row;
  AffineExpr extent;
};

FailureOr<Value> softmax(graph::SoftmaxOp op, TileEmitter &e,
                         const Demand &demand) {
  OpBuilder &b = e.b();
  RowEmitter row(e, op.getInput(), {(int64_t)op.getAxis()}, demand);
  auto shifted = [&](const Demand &d) -> FailureOr<Value> {
    FailureOr<Value> x = row.element(d);
    if (failed(x))
      return failure();
    FailureOr<Value> max =
        row.reduce(d, 1, graph::ReduceKind::max,
                   [&](const Demand &i) { return row.element(i); });
    if (failed(max))
      return failure();
    return Value(arith::SubFOp::create(b, e.loc(), *x, *max));
  };
  auto exponential = [&](const Demand &d) -> FailureOr<Value> {
    FailureOr<Value> x = shifted(d);
    return failed(x) ? x
                     : FailureOr<Value>(
                           math::ExpOp::create(b, e.loc(), *x).getResult());
  };
  // Operands of the demand are coordinates of the result, which are the
  // input's.
  FailureOr<Value> sum =
      row.reduce(demand, 2, graph::ReduceKind::sum, exponential);
  FailureOr<Value> x = op.getLog() ? shifted(demand) : exponential(demand);
  if (failed(sum) || failed(x))
    return failure();
  if (op.getLog())
    return Value(arith::SubFOp::create(b, e.loc(), *x,
                                       math::LogOp::create(b, e.loc(), *sum)));
  return e.quotient(*x, *sum);
}

FailureOr<Value> normalize(graph::NormalizeOp op, TileEmitter &e,
                           const Demand &demand) {
  OpBuilder &b = e.b();
  RowEmitter row(e, op.getInput(), op.getAxes(), demand);
  Type type =
      e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
  // 1 / extent as a tile of the demand's shape.
  auto average = [&](Value sum) -> Value {
    if (auto n = graph::constantOf(e.simplify(row.getExtent(), {})))
      return arith::MulFOp::create(b, e.loc(), sum, e.splatLike(1.0 / *n, sum));
    Value i = arith::IndexCastOp::create(b, e.loc(), b.getI64Type(),
                                         e.materialize(row.getExtent()));
    Value n = arith::SIToFPOp::create(b, e.loc(), type, i);
    return arith::DivFOp::create(
        b, e.loc(), sum, tile::SplatOp::create(b, e.loc(), sum.getType(), n));
  };
  auto centered = [&](const Demand &d) -> FailureOr<Value> {
    FailureOr<Value> x = row.element(d);
    if (failed(x) || op.getRms())
      return x;
    FailureOr<Value> sum =
        row.reduce(d, 1, graph::ReduceKind::sum,
                   [&](const Demand &i) { return row.element(i); });
    if (failed(sum))
      return failure();
    return Value(arith::SubFOp::create(b, e.loc(), *x, average(*sum)));
  };
  FailureOr<Value> squares = row.reduce(
      demand, 2, graph::ReduceKind::sum,
      [&](const Demand &d) -> FailureOr<Value> {
        FailureOr<Value> x = centered(d);
        return failed(x)
                   ? x
                   : FailureOr<Value>(
                         arith::MulFOp::create(b, e.loc(), *x, *x).getResult());
      });
  FailureOr<Value> x = centered(demand);
  if (failed(squares) || failed(x))
    return failure();
  Value variance = average(*squares);
  Value shifted = arith::AddFOp::create(
      b, e.loc(), variance,
      e.splatLike(op.getEpsilon().convertToDouble(), variance));
  Value scale = math::RsqrtOp::create(b, e.loc(), shifted);
  return Value(arith::MulFOp::create(b, e.loc(), *x, scale));
}

} // namespace

void emit::registerReductionRules(MLIRContext *c) {
  graph::ReduceOp::attachInterface<Rule<graph::ReduceOp, reduce>>(*c);
  graph::ArgReduceOp::attachInterface<Rule<graph::ArgReduceOp, argReduce>>(*c);
  graph::PoolOp::attachInterface<Rule<graph::PoolOp, pool>>(*c);
  graph::SoftmaxOp::attachInterface<Rule<graph::SoftmaxOp, softmax>>(*c);
  graph::NormalizeOp::attachInterface<Rule<graph::NormalizeOp, normalize>>(*c);
}
