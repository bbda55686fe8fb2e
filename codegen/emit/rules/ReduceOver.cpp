// Reductions along an index, whatever is reduced.
#include "codegen/emit/KernelShape.h"
#include "codegen/emit/rules/Rules.h"
#include "graph/analysis/CodeSize.h"
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
  SmallVector<int64_t> sizes = graph::getOptimum(e.getKernel());
  bool ofSizes = true;
  extent.walk([&](AffineExpr x) {
    auto symbol = dyn_cast<AffineSymbolExpr>(x);
    ofSizes &= !symbol || symbol.getPosition() < sizes.size();
  });
  return ofSizes ? graph::evaluate(extent, sizes) : std::nullopt;
}

/// On a CPU as many terms of a contiguous row at once as hide the latency of
/// the combination; a short row stays in registers from load to result.
static int64_t chunkOfRegisters(const EmitTarget &target, int64_t rows,
                                std::optional<int64_t> extent,
                                int64_t mostThere) {
  int64_t lanes = target.vectorElements,
          most = std::max<int64_t>(lanes * 8 / rows, lanes);
  if (extent && *extent <= most)
    return *extent;
  // Of an open extent whole registers that hold all there may be.
  if (!extent && mostThere <= most)
    if (int64_t all = llvm::alignTo(std::max<int64_t>(mostThere, 1), lanes);
        all <= most)
      return all;
  return std::max<int64_t>(most / 2, lanes);
}

/// Whether the kernel's code, most of which terms are, would be too long for so
/// many of them at once where each fills whole registers: a loop then takes one
/// after the other and loses no lanes.
static bool isLongCode(TileEmitter &e, int64_t rows, int64_t terms) {
  int64_t lanes = e.getTarget().vectorElements;
  if (rows < lanes)
    return false;
  constexpr int64_t most = tileCode / 2;
  return graph::estimateCode(e.getKernel(), most) *
             llvm::divideCeil(rows * terms, lanes) >
         most;
}

/// How many terms are taken at once: 1, or the extent of a new tile axis.
/// `usual` stands for an extent that is not known, which is at most
/// `mostThere`; `words` are what a GPU's thread keeps of each.
static int64_t chunkOf(TileEmitter &e, const Demand &outer,
                       std::optional<int64_t> extent,
                       std::optional<int64_t> usual, int64_t mostThere,
                       bool contiguous, int64_t words = 1) {
  const EmitTarget &target = e.getTarget();
  int64_t rows = 1;
  for (int64_t t : outer.tile)
    rows *= t;
  if (target.kind == EmitTarget::Kind::Cpu) {
    if (!contiguous)
      return 1;
    int64_t chunk = chunkOfRegisters(target, rows, extent, mostThere);
    return isLongCode(e, rows, chunk) ? 1 : chunk;
  }
  auto isWalk = [](const Schedule::Group &group) { return group.sequential; };
  if (llvm::any_of(e.getSchedule().groups, isWalk))
    words = 1;
  int64_t budget = (contiguous ? 8192 : 2048) / words;
  int64_t most = std::max<int64_t>(llvm::bit_floor<uint64_t>(budget / rows),
                                   contiguous ? 32 : 1);
  if (!extent)
    return std::min(
        most, std::clamp<int64_t>(
                  llvm::bit_ceil<uint64_t>(usual.value_or(1024)), 128, 1024));
  // Of longer rows half as many at once: more instances find room.
  if (contiguous && *extent > budget && rows == 1)
    most /= 2;
  // The tiles in which the kernel walks along the row, so that it can keep
  // what it reads of each.
  for (const Schedule::Group &group : e.getSchedule().groups)
    if (group.sequential && contiguous && rows == 1 && *extent > most)
      most = std::min(most, std::max<int64_t>(group.tile, 32));
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

using Element =
    function_ref<FailureOr<SmallVector<Value>>(const Demand &, AffineExpr)>;

/// Whether terms are written out: few that lie apart (a pooling window). On a
/// GPU some more of them, where each thread has a result of its own.
static bool areWrittenOut(TileEmitter &e, const Demand &outer, int64_t count) {
  constexpr int64_t few = 16, fewOnGpu = 32, lanes = 32;
  int64_t results = 1;
  for (int64_t extent : outer.tile)
    results *= extent;
  return count <= few ||
         (e.getTarget().kind == EmitTarget::Kind::Gpu && count <= fewOnGpu &&
          results >= e.getSchedule().warps * lanes);
}

/// Neutral components.
static SmallVector<Value> noTerms(TileEmitter &e, ArrayRef<TypedAttr> neutral,
                                  ArrayRef<int64_t> tile) {
  SmallVector<Value> start;
  for (TypedAttr n : neutral)
    start.push_back(e.splat(n, tile));
  return start;
}

SmallVector<Value> emit::combineAlongLast(TileEmitter &e, const Demand &outer,
                                          ValueRange tiles,
                                          ArrayRef<TypedAttr> neutral,
                                          Combine combine) {
  OpBuilder &b = e.b();
  SmallVector<Type> types;
  for (TypedAttr n : neutral)
    types.push_back(e.tileType(outer.tile, n.getType()));
  auto reduce =
      tile::ReduceOp::create(b, e.loc(), types, tiles, /*axis=*/outer.rank());
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

Value emit::reduceAxis(TileEmitter &e, Value tile, unsigned axis,
                       graph::ReduceKind kind) {
  OpBuilder &b = e.b();
  auto type = cast<RankedTensorType>(tile.getType());
  Type element = type.getElementType();
  SmallVector<int64_t> left(type.getShape());
  left.erase(left.begin() + axis);
  auto reduce = tile::ReduceOp::create(b, e.loc(), {e.tileType(left, element)},
                                       ValueRange{tile}, axis);
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&reduce.getCombiner());
  Value x = block->addArgument(element, e.loc()),
        y = block->addArgument(element, e.loc());
  tile::YieldOp::create(b, e.loc(), ReductionOf{kind}(b, e.loc(), x, y));
  return reduce.getResults()[0];
}

Value emit::sumEachCell(TileEmitter &e, Value tile, unsigned axis,
                        int64_t cell) {
  SmallVector<int64_t> apart(tile::shapeOf(tile));
  apart[axis] /= cell;
  apart.insert(apart.begin() + axis + 1, cell);
  Value cells = tile::SplitAxisOp::create(
      e.b(), e.loc(), e.tileType(apart, getElementTypeOrSelf(tile)), tile, axis,
      cell);
  return reduceAxis(e, cells, axis + 1, graph::ReduceKind::sum);
}

Value AlongLast::reduce(graph::ReduceKind kind, Value tile) const {
  ReductionOf reduction{kind};
  Type element = cast<RankedTensorType>(tile.getType()).getElementType();
  return combineAlongLast(e, outer, tile, {reduction.neutral(element)},
                          [&](OpBuilder &b, Location loc, ArrayRef<Value> x,
                              ArrayRef<Value> y) {
                            return SmallVector<Value>{
                                reduction(b, loc, x[0], y[0])};
                          })
      .front();
}

Value AlongLast::spread(Value tile, Value like) const {
  return tile::BroadcastOp::create(
      e.b(), e.loc(), like.getType(), tile,
      llvm::to_vector(llvm::seq<int64_t>(0, outer.rank())));
}

namespace {

/// The terms of a reduction in steps of some at once, each a tile of one axis
/// more than the demand where that is more than one.
struct Steps {
  TileEmitter &e;
  const Demand &inner;
  AffineExpr extent;
  int64_t chunk;
  ArrayRef<TypedAttr> neutral;
  Combine combine;
  Element element;
  const Running *running;
  /// From each step to the next.
  int64_t stride = 1;

  SmallVector<Value> none() { return noTerms(e, neutral, inner.tile); }

  /// All of `count` terms, one after the other.
  FailureOr<SmallVector<Value>> oneByOne(int64_t count) {
    SmallVector<Value> total;
    for (int64_t i = 0; i < count; ++i) {
      FailureOr<SmallVector<Value>> term = element(inner, e.constant(i));
      if (failed(term))
        return failure();
      if (running)
        total = running->add(total.empty() ? none() : total, *term, Value());
      else
        total = i == 0 ? *term : combine(e.b(), e.loc(), total, *term);
    }
    return total;
  }

  /// The terms of a step added to `carried` (empty: to nothing); there are none
  /// behind the last.
  FailureOr<SmallVector<Value>> at(AffineExpr step, ArrayRef<Value> carried) {
    return from(step * chunk, carried);
  }

  /// The same of a step that begins with term `index`.
  FailureOr<SmallVector<Value>> from(AffineExpr index,
                                     ArrayRef<Value> carried) {
    if (chunk > 1)
      index = index + e.axis(inner.rank() - 1);
    FailureOr<SmallVector<Value>> terms = element(inner, index);
    if (failed(terms))
      return failure();
    Value mask = e.emitInBounds({{index, extent}}, inner.tile);
    if (running)
      return running->add(carried.empty() ? none() : llvm::to_vector(carried),
                          *terms, mask);
    if (mask)
      for (auto [i, term] : llvm::enumerate(*terms))
        (*terms)[i] = arith::SelectOp::create(e.b(), e.loc(), mask, term,
                                              e.splat(neutral[i], inner.tile));
    return carried.empty() ? *terms : combine(e.b(), e.loc(), carried, *terms);
  }

  /// `count` steps from `first` on. `wholeSteps`: so many of them, known, lie
  /// inside as a whole and look at no element's place; one that does not
  /// follows.
  FailureOr<SmallVector<Value>> all(AffineExpr first, AffineExpr count,
                                    std::optional<int64_t> wholeSteps) {
    bool cpu = e.getTarget().kind == EmitTarget::Kind::Cpu;
    SmallVector<Value> start = none();
    if (wholeSteps)
      count = e.constant(*wholeSteps);
    FailureOr<SmallVector<Value>> total =
        loopInBlocks(e, count, cpu ? longestChain : 0, start, start, combine,
                     [&](AffineExpr counter, ArrayRef<Value> carried) {
                       return at(first + counter * stride, carried);
                     });
    if (!wholeSteps || failed(total))
      return total;
    return at(count, *total);
  }

  /// All steps of an open number of terms: those that lie inside as a whole
  /// look at no element's place, and what is left, if anything is, takes one
  /// more.
  FailureOr<SmallVector<Value>> allOfOpen() {
    return e.loopOverTiles(
        extent, chunk, none(),
        [&](AffineExpr begin, AffineExpr, ArrayRef<Value> carried) {
          return from(begin, carried);
        });
  }
};

} // namespace

/// Whether the instances that share a row share the steps of this reduction,
/// too: at the top, where all of them come once, if it is the same for all and
/// each has a step. Steps of a known number of terms, as what is left of the
/// last must be outside for some.
static bool isSharedRow(TileEmitter &e, const Demand &outer,
                        std::optional<int64_t> extent, int64_t chunk,
                        ArrayRef<TypedAttr> neutral) {
  int64_t parts = e.getRowShare().count;
  return parts > 1 && chunk > 1 && extent &&
         llvm::divideCeil(*extent, chunk) >= (uint64_t)parts &&
         isa<func::FuncOp>(e.b().getInsertionBlock()->getParentOp()) &&
         llvm::all_of(neutral,
                      [](TypedAttr n) { return n.getType().isF32(); }) &&
         llvm::all_of(outer.coordinates,
                      [&](AffineExpr c) { return e.isOfWholeRow(c); });
}

/// What the instances that share a row have, one after the other, so that all
/// find the same.
static SmallVector<Value> combineParts(TileEmitter &e, ArrayRef<Value> own,
                                       Combine combine) {
  SmallVector<SmallVector<Value>> parts = e.exchange(own);
  SmallVector<Value> all = parts.front();
  for (ArrayRef<Value> part : llvm::drop_begin(parts))
    all = combine(e.b(), e.loc(), all, part);
  return all;
}

/// Words of 32 bits that a thread keeps for one element.
static int64_t wordsOf(ArrayRef<TypedAttr> neutral) {
  int64_t words = 0;
  for (TypedAttr n : neutral)
    words += llvm::divideCeil(n.getType().getIntOrFloatBitWidth(), 32);
  return llvm::bit_ceil<uint64_t>(words);
}

/// Of all `count` steps those of this instance, `steps.stride` apart: their
/// number, and the first. `shared`: the instances of a row take turns; `part`:
/// each has some in a row, and what is behind the last is neutral.
static std::pair<AffineExpr, AffineExpr>
ownSteps(Steps &steps, AffineExpr count, bool shared, bool part) {
  TileEmitter &e = steps.e;
  AffineExpr first = e.constant(0);
  if (shared) {
    const TileEmitter::RowShare &share = e.getRowShare();
    count = (count + (share.count - 1)).floorDiv(share.count);
    steps.stride = share.count;
    first = share.part;
  } else {
    e.noteUnshared();
  }
  if (part) {
    const TileEmitter::Split &split = e.getSplit();
    count = e.simplify((count + (split.count - 1)).floorDiv(split.count), {});
    first = split.part * count;
  }
  return {e.simplify(count, {}), first};
}

FailureOr<SmallVector<Value>>
emit::reduceOver(TileEmitter &e, const Demand &outer, AffineExpr extent,
                 bool contiguous, ArrayRef<TypedAttr> neutral, Combine combine,
                 Element element, bool part, const Running *running,
                 int64_t longest) {
  extent = e.simplify(extent, {});
  std::optional<int64_t> known = graph::constantOf(extent);

  if (known == 0)
    return noTerms(e, neutral, outer.tile);
  if (known && !contiguous && !part && areWrittenOut(e, outer, *known))
    return Steps{e, outer, extent, 1, neutral, combine, element, running}
        .oneByOne(*known);

  int64_t chunk =
      chunkOf(e, outer, known, atOptimum(e, extent), e.boundsOf(extent).high,
              contiguous, wordsOf(neutral));
  if (longest)
    chunk = std::min(chunk, longest);
  Demand inner = chunk > 1 ? e.addAxis(outer, chunk) : outer;
  Steps steps{e, inner, extent, chunk, neutral, combine, element, running};

  bool shared = !part && isSharedRow(e, outer, known, chunk, neutral);
  auto [count, first] =
      ownSteps(steps, (extent + (chunk - 1)).floorDiv(chunk), shared, part);
  bool cpu = e.getTarget().kind == EmitTarget::Kind::Cpu;
  std::optional<int64_t> wholeSteps;
  if (cpu && !part && known && *known % chunk != 0)
    wholeSteps = *known / chunk;
  bool hasOneStep = graph::constantOf(count) == 1 ||
                    (cpu && !part && chunk > 1 && e.isOneTile(extent, chunk));
  // Of one that may be none there are no whole ones in front.
  bool isOpen =
      cpu && !part && !known && chunk > 1 && e.boundsOf(extent).high > chunk;
  FailureOr<SmallVector<Value>> total =
      hasOneStep ? steps.at(first, {})
      : isOpen   ? steps.allOfOpen()
                 : steps.all(first, count, wholeSteps);
  if (failed(total) || chunk == 1)
    return total;
  SmallVector<Value> own =
      running && running->join
          ? running->join(*total, AlongLast(e, outer, /*isPart=*/shared))
          : combineAlongLast(e, outer, *total, neutral, combine);
  return shared ? combineParts(e, own, combine) : own;
}

bool emit::hasSteps(TileEmitter &e, const Demand &outer, AffineExpr extent,
                    bool contiguous) {
  extent = e.simplify(extent, {});
  std::optional<int64_t> known = graph::constantOf(extent);
  return !known || *known > chunkOf(e, outer, known, atOptimum(e, extent),
                                    graph::Interval::noHigh, contiguous);
}

FailureOr<Value>
emit::sumOver(TileEmitter &e, const Demand &outer, AffineExpr extent, Type type,
              function_ref<FailureOr<Value>(const Demand &, AffineExpr)> term) {
  ReductionOf sum{graph::ReduceKind::sum};
  FailureOr<SmallVector<Value>> sums = reduceOver(
      e, outer, extent, /*contiguous=*/true, {sum.neutral(type)},
      [&](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
        return SmallVector<Value>{sum(b, loc, x[0], y[0])};
      },
      [&](const Demand &d, AffineExpr k) -> FailureOr<SmallVector<Value>> {
        FailureOr<Value> x = term(d, k);
        return failed(x) ? FailureOr<SmallVector<Value>>()
                         : SmallVector<Value>{*x};
      });
  return failed(sums) ? FailureOr<Value>() : FailureOr<Value>(sums->front());
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
