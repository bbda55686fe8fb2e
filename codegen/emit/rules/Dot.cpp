#include "codegen/emit/rules/Dot.h"
#include "graph/ir/Float8.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

std::optional<DotAxes> emit::classifyAxes(TileEmitter &e, const Demand &lhs,
                                          const Demand &rhs, unsigned rank) {
  auto moves = [&](const Demand &d, unsigned axis) {
    return llvm::any_of(d.coordinates,
                        [&](AffineExpr c) { return e.dependsOnAxis(c, axis); });
  };
  DotAxes axes;
  for (unsigned i = 0; i < rank; ++i) {
    bool row = moves(lhs, i), column = moves(rhs, i);
    if (row == column || (row ? axes.row : axes.column) >= 0)
      return std::nullopt;
    (row ? axes.row : axes.column) = i;
  }
  if (axes.row < 0 || axes.column < 0)
    return std::nullopt;
  return axes;
}

/// The same for a demand of a single row: its one axis moves rhs alone.
static std::optional<DotAxes> classifyRow(TileEmitter &e, const Demand &lhs,
                                          const Demand &rhs) {
  auto moves = [&](const Demand &d) {
    return llvm::any_of(d.coordinates,
                        [&](AffineExpr c) { return e.dependsOnAxis(c, 0); });
  };
  DotAxes axes;
  axes.column = 0;
  return moves(rhs) && !moves(lhs) ? std::optional(axes) : std::nullopt;
}

/// Bytes, of which one side has a sign and the other none.
static bool areBytes(const DotProblem &p) {
  return isa<IntegerType>(p.lhsElement) && p.lhsElement != p.rhsElement;
}

/// What tiles of an element are multiplied as: floats of 8 bits as ones that
/// have all of their values.
static Type multipliedAs(TileEmitter &e, Type element) {
  if (isa<IntegerType>(element))
    return e.computeType(element);
  if (!graph::isFloat8(element))
    return element;
  bool cpu = e.getTarget().kind == EmitTarget::Kind::Cpu;
  return cpu ? e.b().getF32Type() : e.b().getF16Type();
}

/// How the chip multiplies tiles of floats of 8 bits as they are; null: it
/// does not.
static const DotInstruction *dotOfBytes(TileEmitter &e, const DotProblem &p,
                                        int64_t m, int64_t n, int64_t step) {
  constexpr unsigned bits = 8;
  if (e.getTarget().kind != EmitTarget::Kind::Gpu ||
      p.lhsElement != p.rhsElement ||
      !isa<Float8E4M3FNType, Float8E5M2Type>(p.lhsElement))
    return nullptr;
  const DotInstruction &dot = e.getTarget().chip->dotFor(
      bits, m, n, step, e.getSchedule().warps, /*alongTerms=*/true);
  return dot.elementBits == bits ? &dot : nullptr;
}

Type emit::sumType(TileEmitter &e, const DotProblem &p) {
  Type type = e.computeType(p.lhsElement);
  return areBytes(p) || type.isInteger(16) ? e.b().getI32Type() : type;
}

/// An operand's tile in the type of the sums.
static Value widened(TileEmitter &e, Value x, Type element, Type type) {
  if (getElementTypeOrSelf(x.getType()) == type)
    return x;
  auto wide = e.tileType(tile::shapeOf(x), type);
  if (element.isUnsignedInteger())
    return arith::ExtUIOp::create(e.b(), e.loc(), wide, x);
  return arith::ExtSIOp::create(e.b(), e.loc(), wide, x);
}

/// Whether an operand is computed in the kernel, and not read from memory as
/// it lies there.
static bool isComputed(TileEmitter &e, Value value) {
  while (!e.bufferOf(value)) {
    auto view = value.getDefiningOp<graph::GraphOpInterface>();
    if (!view || view.getRole() != graph::OpRole::View ||
        view->getNumOperands() == 0)
      return true;
    value = view->getOperand(0);
  }
  return false;
}

/// Rows of a window whose terms the threads of a GPU load all at once, where
/// each has few elements: a loop would wait for memory once for each row.
/// Nothing where rows are walked.
static std::optional<int64_t> rowsAtOnce(TileEmitter &e, const Demand &demand,
                                         ArrayRef<AffineExpr> extents) {
  constexpr int64_t lanes = 32, mostWords = 104, wordBits = 32;
  auto count = graph::constantOf(
           e.simplify(graph::numElements(extents, e.context()), {})),
       rows = graph::constantOf(e.simplify(extents.front(), {}));
  int64_t elements = 1, threads = e.getSchedule().warps * lanes,
          bits = getElementTypeOrSelf(demand.value).getIntOrFloatBitWidth();
  for (int64_t extent : demand.tile)
    elements *= extent;
  if (e.getTarget().kind != EmitTarget::Kind::Gpu || !count || !rows ||
      elements < threads)
    return std::nullopt;
  // Of each term one of the window and one of the filter.
  int64_t words =
      2 * *count * llvm::divideCeil(elements / threads * bits, wordBits);
  return words <= mostWords ? rows : std::nullopt;
}

/// Terms of one place of a window that are a step by themselves, as they are a
/// part of a register, so that none of a step looks at its own place; else 0.
static int64_t shortRun(TileEmitter &e, ArrayRef<AffineExpr> extents) {
  if (extents.size() < 2)
    return 0;
  int64_t run = graph::constantOf(e.simplify(extents.back(), {})).value_or(0);
  return run > 1 && run < e.getTarget().vectorElements ? run : 0;
}

/// Sums products element by element: right for every shape (single rows,
/// grouped channels, depthwise).
static FailureOr<Value> emitProducts(TileEmitter &e, const Demand &demand,
                                     const DotProblem &p) {
  Type operandType = e.computeType(p.lhsElement), type = sumType(e, p);
  AffineExpr count = graph::numElements(p.extents, e.context());
  ReductionOf sum{graph::ReduceKind::sum};
  // A long sum on a GPU waits for memory as often as it takes steps: few and
  // long ones.
  constexpr int64_t longSum = 256;
  bool cpu = e.getTarget().kind == EmitTarget::Kind::Cpu,
       alongTerms = cpu && e.getSchedule().alongTerms;
  bool wide =
      alongTerms ||
      (!cpu &&
       graph::constantOf(e.simplify(count, {})).value_or(longSum) >= longSum);
  // Terms that are sums themselves are computed side by side.
  Exprs zeros(p.extents.size(), e.constant(0));
  if (!cpu && !p.apart && isComputed(e, p.lhs(demand, zeros).value))
    wide = true;
  // On a CPU, or where terms lie apart, the rows of a large window are sums of
  // their own, so that addresses and checks advance by constants along them.
  unsigned outer =
      (cpu || p.apart) && !alongTerms ? outerLoops(e, p.extents) : 0;
  ArrayRef<AffineExpr> inner = ArrayRef(p.extents).drop_front(outer);
  int64_t run = alongTerms ? shortRun(e, inner) : 0;
  SmallVector<WindowDim> loops;
  for (unsigned i = 0; i < outer; ++i) {
    loops.push_back(p.window && cpu ? p.window(demand, i) : WindowDim());
    loops.back().extent = p.extents[i];
  }
  auto combine = [&](OpBuilder &b, Location loc, ArrayRef<Value> x,
                     ArrayRef<Value> y) {
    return SmallVector<Value>{sum(b, loc, x[0], y[0])};
  };
  auto sumInner =
      [&](ArrayRef<WindowPlace> places) -> FailureOr<SmallVector<Value>> {
    return reduceOver(
        e, demand, graph::numElements(inner, e.context()),
        /*contiguous=*/wide && !p.apart, {sum.neutral(type)}, combine,
        [&](const Demand &axes,
            AffineExpr index) -> FailureOr<SmallVector<Value>> {
          Exprs k, number, own = delinearize(index, inner);
          for (const WindowPlace &place : places) {
            k.push_back(place.inside);
            number.push_back(place.number);
          }
          llvm::append_range(k, own);
          llvm::append_range(number, own);
          FailureOr<Value> x = e.emitZeroOutside(p.lhs(axes, k), operandType);
          FailureOr<Value> y = e.emit(p.rhs(axes, number));
          if (failed(x) || failed(y))
            return failure();
          x = widened(e, *x, p.lhsElement, type);
          y = widened(e, *y, p.rhsElement, type);
          Value product =
              isa<FloatType>(type)
                  ? Value(arith::MulFOp::create(e.b(), e.loc(), *x, *y))
                  : Value(arith::MulIOp::create(e.b(), e.loc(), *x, *y));
          return SmallVector<Value>{product};
        },
        /*part=*/false, /*running=*/nullptr, /*longest=*/run);
  };
  auto walk = [&]() -> FailureOr<SmallVector<Value>> {
    if (loops.empty())
      return sumInner({});
    SmallVector<Value> total{e.splat(sum.neutral(type), demand.tile)};
    std::optional<int64_t> rows;
    if (loops.size() == 1)
      rows = rowsAtOnce(e, demand, p.extents);
    if (!rows)
      return walkWindow(e, loops, total, combine, sumInner);
    for (int64_t row = 0; row < *rows; ++row) {
      FailureOr<SmallVector<Value>> more =
          sumInner(WindowPlace{e.constant(row), e.constant(row)});
      if (failed(more))
        return failure();
      total = combine(e.b(), e.loc(), total, *more);
    }
    return total;
  };
  FailureOr<SmallVector<Value>> total = walk();
  return failed(total) ? FailureOr<Value>() : FailureOr<Value>(total->front());
}

/// Columns [K, N] that stay while neighbours in the grid work through the rows
/// are followed by others when those are done: each neighbour fetches a share
/// of their lines into the cache, some in each step of K. (For rows this does
/// not pay: they are short runs of memory that the machine finds by itself.)
static void prefetchNext(TileEmitter &e, const Demand &operand) {
  const TileEmitter::GridPosition &grid = e.getGridPosition();
  auto uses = [&](AffineExpr symbol) {
    return symbol && llvm::any_of(operand.coordinates, [&](AffineExpr c) {
             return c.isFunctionOfSymbol(
                 cast<AffineSymbolExpr>(symbol).getPosition());
           });
  };
  if (!grid.slow || !uses(grid.slow) || uses(grid.fast))
    return;
  constexpr int64_t lineBytes = 64, mostInStep = 16;
  Type element =
      cast<RankedTensorType>(operand.value.getType()).getElementType();
  int64_t lineElements =
      std::max<int64_t>(1, lineBytes * 8 / element.getIntOrFloatBitWidth());
  int64_t perRun = llvm::divideCeil(operand.tile[1], lineElements),
          runs = operand.tile[0], lines = perRun * runs;
  int64_t share = llvm::divideCeil(lines, std::max<int64_t>(grid.fastCount, 1));
  if (share > mostInStep)
    return;
  for (int64_t i = 0; i < share; ++i) {
    AffineExpr line = (grid.fast * share + i) % lines;
    SmallVector<AffineExpr> dims(2);
    dims[0] = line.floorDiv(perRun);
    dims[1] = (line % perRun) * lineElements;
    Exprs at;
    for (AffineExpr c : operand.coordinates)
      at.push_back(c.replaceDims(dims).replace(grid.slow, grid.slow + 1));
    e.prefetch(operand.value, at);
  }

  // With a single tile of rows at run time, columns come from memory as fast as
  // it gives them: what follows some steps later is fetched as well.
  constexpr int64_t fewNeighbours = 2, stepsAhead = 8;
  if (share == lines || grid.fewest > fewNeighbours)
    return;
  for (int64_t line = 0; line < lines; ++line) {
    SmallVector<AffineExpr> dims{
        e.constant(line / perRun + stepsAhead * operand.tile[0]),
        e.constant(line % perRun * lineElements)};
    Exprs at;
    for (AffineExpr c : operand.coordinates)
      at.push_back(c.replaceDims(dims));
    e.prefetch(operand.value, at);
  }
}

namespace {

/// A product of tiles: a loop over the terms around tile.dot.
class DotEmitter {
public:
  DotEmitter(TileEmitter &e, const Demand &demand, const DotProblem &p,
             DotAxes axes)
      : e(e), b(e.b()), demand(demand), p(p), axes(axes),
        cpu(e.getTarget().kind == EmitTarget::Kind::Cpu),
        isFloat(isa<FloatType>(p.lhsElement)), rank(demand.rank()),
        m(axes.row < 0 ? 1 : demand.tile[axes.row]),
        n(demand.tile[axes.column]) {
    splitTerms();
    chooseStep();
    // Of such products the hardware's sums keep few bits: they are those of one
    // step, and are added up in f32.
    if (const DotInstruction *dot = dotOfBytes(e, p, m, n, step)) {
      ofBytes = true;
      shortSums = dot->shortSums;
    }
    // Columns that nobody wants, where that is known now.
    columns = n;
    for (const Guard &g : demand.guards)
      if (g.own && g.coordinate == e.axis(axes.column))
        columns = std::min(columns, graph::constantOf(g.extent).value_or(n));
    start = e.splat(0, sumType(e, p), {m, n});
  }

  FailureOr<Value> run() {
    FailureOr<SmallVector<Value>> total =
        p.scale && p.scaleBlock ? sumBlocks() : walk(0, {start});
    if (failed(total))
      return failure();
    if (axes.row < 0)
      return reduceAxis(e, total->front(), /*axis=*/0, graph::ReduceKind::sum);
    std::optional<unsigned> shared = e.getSplit().sharedAxis;
    if (shared)
      shared = *shared == unsigned(axes.row) ? 0 : 1;
    Value result = e.sumParts(total->front(), shared);
    if (axes.row > axes.column)
      result = tile::TransposeOp::create(b, e.loc(),
                                         e.tileType({n, m}, sumType(e, p)),
                                         result, ArrayRef<int64_t>{1, 0});
    return result;
  }

private:
  static constexpr int64_t longestUnrolled = 32;

  /// On a GPU one loop walks all of K, so that it can be pipelined. On a CPU
  /// the outer parts of K (the window of a convolution) are loops of their own,
  /// so that addresses advance by constants inside; parts too short for a loop
  /// are joined (the three channels of an image with the window's columns).
  void splitTerms() {
    inner = p.extents;
    if (cpu) {
      int64_t joined =
          graph::constantOf(inner.back()).value_or(longestUnrolled);
      inner = {p.extents.back()};
      outer.assign(p.extents.begin(), p.extents.end() - 1);
      while (!outer.empty() && graph::constantOf(outer.back()) &&
             joined * *graph::constantOf(outer.back()) <= longestUnrolled) {
        joined *= *graph::constantOf(outer.back());
        inner.insert(inner.begin(), outer.pop_back_val());
      }
    }
    extent = e.simplify(graph::numElements(inner, e.context()), {});
  }

  /// Whether columns may be halves under a mask, which AVX2 loads one by one:
  /// long steps of these are more code than registers hold.
  bool loadsByElement() {
    constexpr int64_t lanesOfWide = 16;
    unsigned usualBits = 32;
    if (p.rhsElement.getIntOrFloatBitWidth() >= usualBits ||
        e.getTarget().vectorElements >= lanesOfWide)
      return false;
    Exprs shape = graph::getShape(demand.value);
    return llvm::any_of(llvm::zip_equal(demand.coordinates, shape),
                        [&](auto dim) {
                          auto [coordinate, extent] = dim;
                          return e.dependsOnAxis(coordinate, axes.column) &&
                                 graph::constantOf(extent).value_or(1) % n != 0;
                        });
  }

  void chooseStep() {
    step = e.getSchedule().kTile;
    // What is read of a single row is put aside in whole registers.
    if (axes.row < 0)
      step = std::max(step, longestUnrolled);
    std::optional<int64_t> known = graph::constantOf(extent);
    if (!cpu || !known)
      return;
    if (*known <= longestUnrolled && !p.scaleBlock)
      step = std::max<int64_t>(*known, 1);
    // Windows of neighbouring rows overlap. What a step reads should not: LLVM
    // would load it once, and keep more broadcasts than there are registers.
    if (inner.size() > 1)
      if (int64_t last = graph::constantOf(inner.back()).value_or(1); last > 1)
        step = std::min(step, last);
    // Steps of blocks, written out.
    if (p.scale && p.scaleBlock)
      step = std::gcd(p.scaleBlock, longestUnrolled);
    // Integers are multiplied some terms at a time, or are widened so: a
    // shorter step follows. Of other terms steps of the same length do, where
    // they are no much shorter ones: what a step costs besides its products,
    // and a loop, is much beside those of a single term.
    int64_t even = step;
    while (*known % even != 0)
      --even;
    if (inner.size() == 1 &&
        (!isFloat || p.isComputed || (2 * even < step && !loadsByElement())))
      rest = *known % step;
    else
      step = even;
  }

  /// The terms of one place of the outer parts after the other.
  FailureOr<SmallVector<Value>> walk(unsigned depth, ArrayRef<Value> carried) {
    if (depth == outer.size())
      return sumInner(carried);
    return e.loop(
        outer[depth], carried, [&](AffineExpr counter, ArrayRef<Value> values) {
          k.push_back(counter);
          FailureOr<SmallVector<Value>> result = walk(depth + 1, values);
          k.pop_back();
          return result;
        });
  }

  FailureOr<SmallVector<Value>> sumInner(ArrayRef<Value> carried) {
    AffineExpr count =
        rest ? extent.floorDiv(step) : (extent + (step - 1)).floorDiv(step);
    // Of all steps, those of this part. What is behind the last is zero.
    AffineExpr first = e.constant(0);
    if (const TileEmitter::Split &split = e.getSplit(); split.count > 1) {
      count = e.simplify((count + (split.count - 1)).floorDiv(split.count), {});
      first = split.part * count;
    }
    auto added = [](OpBuilder &b, Location loc, ArrayRef<Value> x,
                    ArrayRef<Value> y) {
      return SmallVector<Value>{arith::AddFOp::create(b, loc, x[0], y[0])};
    };
    FailureOr<SmallVector<Value>> total = loopInBlocks(
        e, count, cpu && isFloat ? longestChain / step : 0, carried, start,
        added, [&](AffineExpr round, ArrayRef<Value> values) {
          return addStep((first + round) * step, step, values);
        });
    if (failed(total) || !rest)
      return total;
    return addStep(extent - rest, rest, *total);
  }

  /// Of all terms, of which each block has a scale of its own.
  FailureOr<SmallVector<Value>> sumBlocks() {
    int64_t block = p.scaleBlock, known = *graph::constantOf(extent),
            left = known % block;
    FailureOr<SmallVector<Value>> total =
        e.loop(e.constant(known / block), {start},
               [&](AffineExpr round, ArrayRef<Value> values) {
                 return addScaled(round * block, block, values);
               });
    if (failed(total) || !left)
      return total;
    return addScaled(e.constant(known - left), left, *total);
  }

  FailureOr<SmallVector<Value>> addScaled(AffineExpr begin, int64_t length,
                                          ArrayRef<Value> values) {
    auto at = [&](AffineExpr round, ArrayRef<Value> sums) {
      return addStep(begin + round * step, step, sums);
    };
    FailureOr<SmallVector<Value>> sum = SmallVector<Value>{start};
    if (length / step == 1)
      sum = at(e.constant(0), *sum);
    else if (length / step > 1)
      sum = e.loop(e.constant(length / step), *sum, at);
    if (int64_t left = length % step; left && succeeded(sum))
      sum = addStep(begin + (length - left), left, *sum);
    FailureOr<Value> scale = scaleOf({begin});
    if (failed(sum) || failed(scale))
      return failure();
    return SmallVector<Value>{
        math::FmaOp::create(b, e.loc(), sum->front(), *scale, values[0])};
  }

  /// The scale of sums from term `k` on, [rows, columns].
  FailureOr<Value> scaleOf(ArrayRef<AffineExpr> k) {
    SmallVector<int64_t> to(rank, -1);
    if (axes.row >= 0)
      to[axes.row] = 0;
    to[axes.column] = 1;
    return e.emitAs(e.moveAxes(p.scale(demand, k), to, {m, n}), sumType(e, p));
  }

  /// `length` terms from `begin` on.
  FailureOr<SmallVector<Value>> addStep(AffineExpr begin, int64_t length,
                                        ArrayRef<Value> values) {
    // Axis `rank` of the demand is the K axis of both operands.
    Demand full = e.addAxis(demand, length);
    Exprs terms = k;
    llvm::append_range(terms, delinearize(begin + e.axis(rank), inner));
    FailureOr<Value> x = operand(p.lhs(full, terms), true, begin, length);
    FailureOr<Value> y = operand(p.rhs(full, terms), false, begin, length);
    if (failed(x) || failed(y))
      return failure();
    Value product = tile::DotOp::create(
        b, e.loc(), values[0].getType(), *x, *y, shortSums ? start : values[0],
        e.getTarget().tf32 && p.lhsElement.isF32(), columns % n,
        areBytes(p) && p.rhsElement.isUnsignedInteger(),
        areBytes(p) && p.pairsFit);
    if (shortSums)
      product = arith::AddFOp::create(b, e.loc(), values[0], product);
    return SmallVector<Value>{product};
  }

  /// A tile [rows, terms] or [terms, columns] of a side.
  FailureOr<Value> operand(const Demand &d, bool isLhs, AffineExpr begin,
                           int64_t length) {
    SmallVector<int64_t> to(rank + 1, -1);
    if (int64_t own = isLhs ? axes.row : axes.column; own >= 0)
      to[own] = isLhs ? 0 : 1;
    to[rank] = isLhs ? 1 : 0;
    SmallVector<int64_t> tile = isLhs ? SmallVector<int64_t>{m, length}
                                      : SmallVector<int64_t>{length, n};
    Demand moved = e.moveAxes(d, to, tile);
    if (cpu && !isLhs)
      prefetchNext(e, moved);
    AffineExpr at = begin + e.axis(isLhs ? 1 : 0);
    moved.guards.push_back({at, extent});
    if (!isLhs && columns < n)
      moved.guards.push_back({e.axis(1), e.constant(columns), /*own=*/true});
    Type element = isLhs ? p.lhsElement : p.rhsElement;
    // What is computed is not rounded first.
    Type type = cpu && isFloat && p.isComputed ? sumType(e, p)
                : ofBytes                      ? element
                                               : multipliedAs(e, element);
    return e.emitZeroOutside(std::move(moved), type);
  }

  TileEmitter &e;
  OpBuilder &b;
  const Demand &demand;
  const DotProblem &p;
  DotAxes axes;
  bool cpu, isFloat, ofBytes = false;
  /// Sums of few bits: they are those of one step, and are added up in f32.
  bool shortSums = false;
  unsigned rank;
  int64_t m, n, columns;
  /// The parts of K that have loops of their own, and those that are walked in
  /// steps, `extent` in all; behind the last step are `rest` terms.
  Exprs outer, inner;
  AffineExpr extent;
  int64_t step, rest = 0;
  Value start;
  Exprs k; ///< Where the outer parts are.
};

} // namespace

/// Whether sums of blocks are scaled, not their terms: where registers hold
/// those of a block beside all sums.
static bool scalesBlocks(TileEmitter &e, const Demand &demand,
                         const DotProblem &p, const DotAxes &axes) {
  const EmitTarget &t = e.getTarget();
  int64_t rows = axes.row < 0 ? 1 : demand.tile[axes.row],
          vectors =
              llvm::divideCeil(demand.tile[axes.column], t.vectorElements);
  constexpr int64_t shortest = 8, others = 4;
  return p.scaleBlock >= shortest && p.scaleBlock % shortest == 0 &&
         p.extents.size() == 1 && graph::constantOf(p.extents[0]) &&
         2 * rows * vectors + others <= t.vectorRegisters;
}

FailureOr<Value> emit::emitDot(TileEmitter &e, const Demand &demand,
                               const DotProblem &problem) {
  DotProblem p = problem;
  bool isFloat = isa<FloatType>(p.lhsElement),
       cpu = e.getTarget().kind == EmitTarget::Kind::Cpu;
  Exprs zeros(p.extents.size(), e.constant(0));
  auto classify = [&] {
    Demand lhs = p.lhs(demand, zeros), rhs = p.rhs(demand, zeros);
    std::optional<DotAxes> axes = classifyAxes(e, lhs, rhs, demand.rank());
    // A CPU multiplies integers of 8 and 16 bits some terms at a time, of a
    // single row too, and widens what it computes so.
    bool isNarrow = cpu && (areBytes(p) || p.lhsElement.isSignlessInteger(16));
    if (!axes && (isNarrow || (cpu && isFloat && p.isComputed)) &&
        demand.rank() == 1)
      axes = classifyRow(e, lhs, rhs);
    return isFloat || isNarrow ? axes : std::nullopt;
  };
  if (e.getSchedule().swap) {
    std::swap(p.lhs, p.rhs);
    std::swap(p.lhsElement, p.rhsElement);
    p.scale = nullptr;
  }
  std::optional<DotAxes> axes = classify();
  if (p.scale && p.scaleBlock && !(axes && scalesBlocks(e, demand, p, *axes)))
    p.scale = nullptr;
  if (p.scale)
    p.rhs = p.unscaled;
  // Element by element there are no sides to be changed.
  FailureOr<Value> sum =
      axes ? DotEmitter(e, demand, p, *axes).run()
           : emitProducts(e, demand, e.getSchedule().swap ? problem : p);
  if (failed(sum) || !p.scale || p.scaleBlock)
    return sum;
  FailureOr<Value> scale =
      e.emitAs(p.scale(demand, zeros), getElementTypeOrSelf(sum->getType()));
  if (failed(scale))
    return failure();
  return Value(arith::MulFOp::create(e.b(), e.loc(), *sum, *scale));
}
