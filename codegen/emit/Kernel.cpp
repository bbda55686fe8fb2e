// The frame of a tile program: function, grid, the walk over result tiles.
#include "codegen/emit/BranchParts.h"
#include "codegen/emit/KeepRows.h"
#include "codegen/emit/KernelShape.h"
#include "codegen/emit/ShortBodies.h"
#include "codegen/emit/ShortRows.h"
#include "codegen/emit/SplitParts.h"
#include "codegen/emit/Streamed.h"
#include "codegen/emit/rules/Rules.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Updates.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// Element type of a buffer: signless integers, bytes for i1.
Type storageType(Type tensor) {
  Type element = cast<RankedTensorType>(tensor).getElementType();
  Builder b(tensor.getContext());
  if (element.isInteger(1))
    return b.getI8Type();
  if (auto integer = dyn_cast<IntegerType>(element))
    return b.getIntegerType(integer.getWidth());
  if (element.isIndex())
    return b.getI64Type();
  return element;
}

class KernelBuilder {
public:
  KernelBuilder(graph::KernelOp kernel, const EmitTarget &target,
                const Schedule &schedule, OpBuilder &builder,
                std::optional<unsigned> sharedAxis)
      : kernel(kernel), target(target), schedule(schedule), b(builder),
        function(createFunction(target)),
        e(kernel, target, this->schedule, builder, function),
        sharedAxis(sharedAxis), axes(schedule.axes),
        starts(schedule.groups.size()) {
    for (const Schedule::Group &g : schedule.groups)
      tiles.push_back(g.tile);
  }

  /// Of what was written: whether instances that share rows share all that is
  /// reduced.
  bool sharesRows() const { return !e.isAnyUnshared(); }

  FailureOr<func::FuncOp> run() {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    Block &body = kernel.getBody().front();
    yield = body.getTerminator();
    for (auto [i, argument] : llvm::enumerate(body.getArguments()))
      e.setBuffer(argument, function.getArgument(i));
    root = graph::getShape(graph::getWalked(kernel));
    if (yield->getNumOperands() > 1) {
      auto maps = graph::getResultMaps(kernel);
      if (!maps)
        return kernel.emitOpError(
                   "has results that do not follow from the first"),
               failure();
      resultMaps = std::move(*maps);
    }
    coordinates.assign(root.size(), e.constant(0));
    if (failed(checkThatAllIsWalked()) || failed(checkRowParts())) {
      function.erase();
      return failure();
    }
    startGrid();
    LogicalResult walked = walkAll();
    if (succeeded(walked))
      func::ReturnOp::create(b, kernel.getLoc());
    if (failed(walked)) {
      function.erase();
      return failure();
    }
    allowContraction();
    return function;
  }

private:
  /// What no group of the schedule walks would stay what the memory held, but
  /// for rows that an operator with a program of its own writes.
  LogicalResult checkThatAllIsWalked() {
    llvm::SmallBitVector walked(root.size());
    for (const Schedule::Group &g : schedule.groups)
      for (unsigned d : g.dims) {
        if (d >= root.size() || walked.test(d))
          return kernel.emitOpError()
                 << "has a schedule that walks dimension " << d
                 << " twice, or has no such: " << schedule.text();
        walked.set(d);
      }
    bool isEmpty = llvm::any_of(root, [&](AffineExpr extent) {
      return graph::constantOf(e.simplify(extent, {})) == 0;
    });
    if (orderedOf(kernel) || isEmpty)
      return success();
    for (auto [d, extent] : llvm::enumerate(root))
      if (!walked.test(d) && graph::constantOf(e.simplify(extent, {})) != 1)
        return kernel.emitOpError()
               << "has a schedule that does not walk dimension " << d << ": "
               << schedule.text();
    return success();
  }

  /// A row that instances share is walked along once, in a cluster of them.
  LogicalResult checkRowParts() {
    if (schedule.rowParts == 1)
      return success();
    auto isWalk = [](const Schedule::Group &g) { return g.sequential; };
    if (target.chip && schedule.rowParts <= target.chip->mostInCluster &&
        schedule.splits == 1 && llvm::count_if(schedule.groups, isWalk) == 1 &&
        isWalk(schedule.groups.back()) && !orderedOf(kernel))
      return success();
    return kernel.emitOpError()
           << "has a schedule in which instances share rows, without clusters "
              "of so many, with terms to share as well, or without one walk "
              "along each row: "
           << schedule.text();
  }

  /// A product and a sum that one operator expands into (terms of a dot, a
  /// polynomial) may become one fused multiply-add: one rounding less, half the
  /// instructions. What an operator gives is rounded by itself (kRoundedAttr).
  void allowContraction() {
    function.walk([&](Operation *op) {
      auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
      if (fast && isa<arith::MulFOp, arith::AddFOp, arith::SubFOp>(op) &&
          !op->removeAttr(kRoundedAttr))
        op->setAttr(fast.getFastMathAttrName(),
                    arith::FastMathFlagsAttr::get(
                        op->getContext(), arith::FastMathFlags::contract));
    });
  }

  func::FuncOp createFunction(const EmitTarget &target) {
    SmallVector<Type> types;
    for (Value input : kernel.getInputs())
      types.push_back(
          tile::BufferType::get(b.getContext(), storageType(input.getType())));
    for (Type result : kernel.getResultTypes())
      types.push_back(
          tile::BufferType::get(b.getContext(), storageType(result)));
    if (schedule.splits > 1) {
      types.push_back(tile::BufferType::get(b.getContext(), b.getF32Type()));
      types.push_back(tile::BufferType::get(b.getContext(), b.getI32Type()));
    }
    SmallVector<int64_t> divisors =
        graph::getFacts(kernel->getParentOfType<ModuleOp>()).symbolDivisors;
    types.append(divisors.size(), b.getIndexType());
    auto f = func::FuncOp::create(b, kernel.getLoc(), kernel.getSymName(),
                                  b.getFunctionType(types, {}));
    f.addEntryBlock();
    f->setAttr(tile::kKernelAttr, b.getUnitAttr());
    unsigned first = types.size() - divisors.size();
    for (auto [i, divisor] : llvm::enumerate(divisors))
      if (divisor > 1)
        f.setArgAttr(first + i, tile::kDivisorAttr,
                     b.getI64IntegerAttr(divisor));
    if (target.kind == EmitTarget::Kind::Cpu)
      markStreamed(f, kernel, target, schedule);
    if (target.kind == EmitTarget::Kind::Gpu) {
      f->setAttr(tile::kWarpsAttr, b.getI64IntegerAttr(schedule.warps));
      f->setAttr(tile::kStagesAttr, b.getI64IntegerAttr(schedule.stages));
      if (schedule.residents > 1)
        f->setAttr(tile::kResidentsAttr,
                   b.getI64IntegerAttr(schedule.residents));
    }
    return f;
  }

  AffineExpr extentOf(const Schedule::Group &g) {
    AffineExpr n = e.constant(1);
    for (unsigned d : g.dims)
      n = n * root[d];
    return e.simplify(n, {});
  }
  AffineExpr countOf(const Schedule::Group &g) {
    if (g.within)
      return e.simplify(extentOf(g).floorDiv(g.within) *
                            llvm::divideCeil(g.within, g.tile),
                        {});
    return e.simplify((extentOf(g) + (g.step() - 1)).floorDiv(g.step()), {});
  }

  /// Tile numbers of the grid's groups from the program's index.
  void startGrid() {
    AffineExpr instances = e.constant(1);
    SmallVector<unsigned> parallel;
    for (auto [i, g] : llvm::enumerate(schedule.groups)) {
      if (g.sequential)
        continue;
      parallel.push_back(i);
      instances = instances * countOf(g);
    }
    instances = e.simplify(instances, {});
    auto setMap = [&](StringRef name, AffineExpr expr) {
      unsigned symbols =
          graph::getSymbols(kernel->getParentOfType<ModuleOp>()).size();
      function->setAttr(name,
                        AffineMapAttr::get(AffineMap::get(
                            0, symbols, e.simplify(expr, {}), b.getContext())));
    };
    setMap(tile::kGridAttr, instances * schedule.splits * schedule.rowParts);
    Value rest = tile::ProgramIdOp::create(b, kernel.getLoc());
    if (schedule.rowParts > 1) {
      Location loc = kernel.getLoc();
      Value count = arith::ConstantIndexOp::create(b, loc, schedule.rowParts),
            part = arith::RemUIOp::create(b, loc, rest, count);
      rest = arith::DivUIOp::create(b, loc, rest, count);
      e.setRowShare({schedule.rowParts,
                     e.addSymbol(part, e.constant(schedule.rowParts))});
    }
    if (schedule.splits > 1) {
      Location loc = kernel.getLoc();
      TileEmitter::Split split;
      split.count = schedule.splits;
      Value count = arith::ConstantIndexOp::create(b, loc, split.count);
      split.partValue = arith::RemUIOp::create(b, loc, rest, count);
      split.tile = rest = arith::DivUIOp::create(b, loc, rest, count);
      split.part = e.addSymbol(split.partValue, e.constant(split.count));
      unsigned buffers = kernel.getInputs().size() + kernel.getNumResults();
      split.sharedAxis = sharedAxis;
      split.scratch = function.getArgument(buffers);
      split.counters = function.getArgument(buffers + 1);
      e.setSplit(split);
      setMap(tile::kScratchAttr, instances * (split.count * slotBytes()));
      setMap(tile::kCountersAttr, instances);
    }
    if (runsLongestLast() && graph::constantOf(instances) != 1) {
      Location loc = kernel.getLoc();
      Value last =
          arith::SubIOp::create(b, loc, e.materialize(instances),
                                arith::ConstantIndexOp::create(b, loc, 1));
      rest = arith::SubIOp::create(b, loc, last, rest);
    }
    tileNumbers.assign(schedule.groups.size(), AffineExpr());
    if (schedule.run > 0)
      rest = startRuns(parallel, rest);
    for (unsigned n = parallel.size(); n-- > 0;) {
      unsigned i = parallel[n];
      if (tileNumbers[i])
        continue;
      AffineExpr count = countOf(schedule.groups[i]);
      if (graph::constantOf(count) == 1) {
        tileNumbers[i] = e.constant(0);
        continue;
      }
      // The slowest group takes what is left; fewer divisions for most kernels.
      bool slowest = !isAnyMoving(ArrayRef<unsigned>(parallel).take_front(n));
      Value number = rest;
      if (!slowest) {
        Value bound = e.materialize(count);
        number = arith::RemUIOp::create(b, kernel.getLoc(), rest, bound);
        rest = arith::DivUIOp::create(b, kernel.getLoc(), rest, bound);
      }
      tileNumbers[i] = e.addSymbol(number, count);
    }
    findPosition(parallel);
  }

  /// A GPU takes instances in their order, and what it takes last should be
  /// short.
  bool runsLongestLast() {
    return function->hasAttr(tile::kWarpsAttr) && growsByRow(kernel);
  }

  /// Whether any of the groups has more than one tile.
  bool isAnyMoving(ArrayRef<unsigned> groups) {
    return llvm::any_of(groups, [&](unsigned g) {
      return graph::constantOf(countOf(schedule.groups[g])) != 1;
    });
  }

  /// Tile numbers of the two fastest groups, the fastest in runs. Gives what is
  /// left of the program's index `rest` for the others.
  Value startRuns(ArrayRef<unsigned> parallel, Value rest) {
    SmallVector<unsigned> moving;
    for (unsigned i : llvm::reverse(parallel))
      if (isAnyMoving(i))
        moving.push_back(i);
    if (moving.size() < 2)
      return rest;
    Location loc = kernel.getLoc();
    unsigned fast = moving[0], slow = moving[1];
    AffineExpr fastCount = countOf(schedule.groups[fast]),
               slowCount = countOf(schedule.groups[slow]);
    Value run = index(schedule.run), inside = rest;
    if (moving.size() > 2) {
      Value both = e.materialize(e.simplify(fastCount * slowCount, {}));
      inside = arith::RemUIOp::create(b, loc, rest, both);
      rest = arith::DivUIOp::create(b, loc, rest, both);
    }
    auto divide = [&](Value x, Value y) {
      return std::pair<Value, Value>(arith::DivUIOp::create(b, loc, x, y),
                                     arith::RemUIOp::create(b, loc, x, y));
    };
    // Of `count`, what is left behind `first`, at most `most`: the last run or
    // section may be shorter.
    auto partFrom = [&](Value first, Value most, Value count) -> Value {
      return arith::MinUIOp::create(
          b, loc, most, arith::SubIOp::create(b, loc, count, first));
    };
    Value slowest, together = e.materialize(slowCount);
    if (schedule.section > 0) {
      Value size = index(schedule.section);
      auto [section, within] = divide(
          inside, e.materialize(e.simplify(fastCount * schedule.section, {})));
      slowest = arith::MulIOp::create(b, loc, section, size);
      together = partFrom(slowest, size, together);
      inside = within;
    }
    auto [runs, within] =
        divide(inside, arith::MulIOp::create(b, loc, together, run));
    Value first = arith::MulIOp::create(b, loc, runs, run);
    auto [slowNumber, fastNumber] =
        divide(within, partFrom(first, run, e.materialize(fastCount)));
    if (slowest)
      slowNumber = arith::AddIOp::create(b, loc, slowest, slowNumber);
    tileNumbers[slow] = e.addSymbol(slowNumber, slowCount);
    tileNumbers[fast] = e.addSymbol(
        arith::AddIOp::create(b, loc, first, fastNumber), fastCount);
    return rest;
  }

  void findPosition(ArrayRef<unsigned> parallel) {
    TileEmitter::GridPosition position;
    SmallVector<int64_t> sizes, least;
    for (const graph::Symbol &s :
         graph::getSymbols(kernel->getParentOfType<ModuleOp>())) {
      sizes.push_back(s.opt);
      least.push_back(s.min);
    }
    for (unsigned i : llvm::reverse(parallel)) {
      if (!isa<AffineSymbolExpr>(tileNumbers[i]))
        continue;
      if (position.fast) {
        position.slow = tileNumbers[i];
        break;
      }
      position.fast = tileNumbers[i];
      position.fastCount =
          graph::evaluate(countOf(schedule.groups[i]), sizes).value_or(1);
      position.fewest =
          graph::evaluate(countOf(schedule.groups[i]), least).value_or(1);
      if (schedule.run > 0)
        position.fastCount = std::min(position.fastCount, schedule.run);
    }
    e.setGridPosition(position);
  }

  /// What a part of a split leaves behind: its registers of f32. Small tiles
  /// are held several times over: by multiply-adds of up to 16 elements a
  /// thread.
  int64_t slotBytes() const {
    int64_t elements = 1;
    for (unsigned axis : schedule.axes)
      elements *= schedule.groups[axis].tile;
    return 4 * std::max(elements, schedule.warps * 32 * 16);
  }

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, kernel.getLoc(), value);
  }

  /// A tile of `size` of the group that has a rest, from `first` on, a multiple
  /// of `divisor`; `inside` of its elements certainly exist.
  LogicalResult walkTile(unsigned group, Value first, int64_t size,
                         int64_t inside, int64_t divisor = 1) {
    AffineExpr limit = extentOf(schedule.groups[group]) - (inside - 1);
    starts[group] = e.addSymbol(first, e.simplify(limit, {}), divisor);
    tiles[group] = size;
    axes.clear();
    for (unsigned of : schedule.axes)
      if (of != group || size > 1)
        axes.push_back(of);
    SmallVector<AffineExpr> before = coordinates;
    LogicalResult walked = walk(0);
    coordinates = before;
    guards.clear();
    return walked;
  }

  /// A tile for the `left` elements from `first` on, of `size` if these are no
  /// more, else of twice that, or of the shortest, up to the group's rest.
  LogicalResult walkUpTo(unsigned group, Value first, Value left,
                         int64_t size) {
    const Schedule::Group &g = schedule.groups[group];
    int64_t inside = size == g.shortest ? 1 : size / 2 + 1;
    if (size >= g.rest)
      return walkTile(group, first, g.rest, inside);
    Value fits = arith::CmpIOp::create(
        b, kernel.getLoc(), arith::CmpIPredicate::sle, left, index(size));
    return e.branch(
        fits, [&] { return walkTile(group, first, size, inside); },
        [&] {
          return walkUpTo(group, first, left, std::max(2 * size, g.shortest));
        });
  }

  /// A tile of a rest, which may be the whole one.
  LogicalResult walkPartOfRest(unsigned group, Value first, Value left) {
    const Schedule::Group &g = schedule.groups[group];
    if (g.singles || g.shortest < g.rest)
      return walkUpTo(group, first, left, g.singles == 1 ? 1 : g.shortest);
    // Of tiles of one length those that lie inside look at no element's place.
    if (g.rest == g.tile)
      return walkTile(group, first, g.rest, /*inside=*/1);
    Value isInside = arith::CmpIOp::create(
        b, kernel.getLoc(), arith::CmpIPredicate::sge, left, index(g.rest));
    return e.branch(
        isInside, [&] { return walkTile(group, first, g.rest, g.rest); },
        [&] { return walkTile(group, first, g.rest, /*inside=*/1); });
  }

  /// The `left` elements from `begin` on, at most `most`, in tiles of `size`,
  /// or what a rest has in their place.
  LogicalResult walkInTiles(unsigned group, Value begin, Value left,
                            int64_t most, int64_t size) {
    Location loc = kernel.getLoc();
    AffineExpr elements = e.addSymbol(left, e.constant(most + 1));
    return success(succeeded(
        e.loop((elements + (size - 1)).floorDiv(size), {},
               [&](AffineExpr counter,
                   ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
                 Value done = e.materialize(counter * size),
                       first = arith::AddIOp::create(b, loc, begin, done),
                       behind = arith::SubIOp::create(b, loc, left, done);
                 if (failed(size == 1 ? walkTile(group, first, 1, 1)
                                      : walkPartOfRest(group, first, behind)))
                   return failure();
                 return SmallVector<Value>{};
               })));
  }

  /// The `left` elements from `begin` on, fewer than a whole tile.
  LogicalResult walkRest(unsigned group, Value begin, Value left) {
    const Schedule::Group &g = schedule.groups[group];
    if (g.singles < 2)
      return walkInTiles(group, begin, left, g.tile - 1, g.rest);
    Value areFew = arith::CmpIOp::create(
        b, kernel.getLoc(), arith::CmpIPredicate::sle, left, index(g.singles));
    return e.branch(
        areFew, [&] { return walkInTiles(group, begin, left, g.singles, 1); },
        [&] { return walkInTiles(group, begin, left, g.tile - 1, g.rest); });
  }

  /// Walks all groups. Where one has a rest, its whole tiles lie inside without
  /// a look at their ends, and what is behind them takes shorter ones.
  LogicalResult walkWithRest() {
    auto found = llvm::find_if(
        schedule.groups, [](const Schedule::Group &g) { return g.rest > 0; });
    if (found == schedule.groups.end())
      return walk(0);
    unsigned group = found - schedule.groups.begin();
    int64_t tile = found->tile;
    Location loc = kernel.getLoc();
    Value begin = e.materialize(e.simplify(tileNumbers[group] * tile, {})),
          end = e.materialize(extentOf(*found)),
          left = arith::SubIOp::create(b, loc, end, begin),
          isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                          left, index(tile));
    return e.branch(
        isWhole, [&] { return walkTile(group, begin, tile, tile, tile); },
        [&] { return walkRest(group, begin, left); });
  }

  /// The same once for each length that rows of an open extent may not exceed,
  /// then for those that do.
  LogicalResult walkByLength(const ShortRows &rows, unsigned from = 0) {
    if (from == rows.lengths.size())
      return walkWithRest();
    return e.branchOnExtent(
        rows.extent, rows.lengths[from], [&] { return walkWithRest(); },
        [&] { return walkByLength(rows, from + 1); });
  }

  /// The kernel, and in front of it once more what there is of it where one of
  /// its groups has a single element.
  LogicalResult walkAll() {
    auto others = [&] {
      return walkByLength(shortRowsOf(kernel, target, schedule));
    };
    auto found = llvm::find_if(
        schedule.groups, [](const Schedule::Group &g) { return g.vector; });
    if (found == schedule.groups.end())
      return others();
    unsigned group = found - schedule.groups.begin();
    return e.branchOnExtent(
        extentOf(*found), 1, [&] { return walkVector(group); }, others);
  }

  LogicalResult walkVector(unsigned group) {
    Schedule before = schedule;
    schedule.alongTerms = true;
    schedule.groups[group].rest = 0;
    llvm::erase(schedule.axes, group);
    axes = schedule.axes;
    starts[group] = e.constant(0);
    LogicalResult walked = walkSums();
    starts[group] = AffineExpr();
    schedule = std::move(before);
    axes = schedule.axes;
    return walked;
  }

  /// Of a tile of rows, whose memory may lie 4 KB apart, no more at once than a
  /// cache has lines for one place.
  LogicalResult walkSums() {
    constexpr int64_t most = 8;
    if (schedule.axes.size() != 1 || schedule.groups[schedule.axes[0]].rest)
      return walkWithRest();
    unsigned group = schedule.axes[0];
    int64_t tile = tiles[group],
            part = llvm::divideCeil(tile, llvm::divideCeil(tile, most));
    LogicalResult walked = success();
    for (int64_t first = 0; first < tile && succeeded(walked); first += part) {
      starts[group] = e.simplify(tileNumbers[group] * tile + first, tileOf());
      tiles[group] = std::min(part, tile - first);
      walked = walk(0);
    }
    starts[group] = AffineExpr();
    tiles[group] = tile;
    return walked;
  }

  LogicalResult walk(unsigned group) {
    if (group == schedule.groups.size())
      return storeResults();
    const Schedule::Group &g = schedule.groups[group];
    if (!g.sequential) {
      place(group, tileNumbers[group]);
      return walk(group + 1);
    }
    // On a CPU the tiles that lie inside as a whole are stored without a look
    // at each element's place, along the innermost loop that has an end: all
    // that is inside is written once more for it.
    AffineExpr count = countOf(g);
    if (g.sequential && target.kind == EmitTarget::Kind::Cpu && g.tile > 1 &&
        !graph::constantOf(extentOf(g)))
      return walkOpen(group);
    bool ragged = isRagged(g) &&
                  llvm::none_of(ArrayRef(schedule.groups).drop_front(group + 1),
                                [&](const Schedule::Group &inner) {
                                  return isRagged(inner);
                                });
    if (ragged)
      count = e.constant(*graph::constantOf(extentOf(g)) / g.tile);
    const TileEmitter::RowShare &share = e.getRowShare();
    if (share.count > 1)
      count = e.simplify((count + (share.count - 1)).floorDiv(share.count), {});
    auto walked = e.loop(count, {},
                         [&](AffineExpr counter,
                             ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
                           place(group, share.count > 1
                                            ? counter * share.count + share.part
                                            : counter);
                           if (failed(walk(group + 1)))
                             return failure();
                           return SmallVector<Value>{};
                         });
    if (failed(walked) || !ragged)
      return walked;
    place(group, count);
    return walk(group + 1);
  }

  /// The same of an open extent: whole tiles, and what is left if anything is.
  LogicalResult walkOpen(unsigned group) {
    const Schedule::Group &g = schedule.groups[group];
    AffineExpr extent = extentOf(g);
    // All of a short row is one tile.
    if (int64_t most = e.boundsOf(extent).high;
        most > 1 && e.isOneTile(extent, g.tile)) {
      tiles[group] =
          most < target.vectorElements
              ? llvm::bit_ceil<uint64_t>(most)
              : std::min<int64_t>(llvm::alignTo(most, target.vectorElements),
                                  g.tile);
      place(group, e.constant(0));
      LogicalResult walked = walk(group + 1);
      tiles[group] = g.tile;
      return walked;
    }
    return success(succeeded(
        e.loopOverTiles(extent, g.tile, {},
                        [&](AffineExpr begin, AffineExpr number,
                            ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
                          starts[group] = begin;
                          place(group, number);
                          starts[group] = AffineExpr();
                          if (failed(walk(group + 1)))
                            return failure();
                          return SmallVector<Value>{};
                        })));
  }

  /// Whether what is written is a tile of a rest. What a product has of its
  /// rows is its own to look at.
  bool isRowOfRest(unsigned group) {
    auto ops = kernel.getBody().front().getOps<graph::GraphOpInterface>();
    return starts[group] && llvm::none_of(ops, [](graph::GraphOpInterface op) {
             return op.getRole() == graph::OpRole::Contraction;
           });
  }

  /// Whether a loop inside of a CPU's program instance ends with a tile that is
  /// not whole.
  bool isRagged(const Schedule::Group &g) {
    std::optional<int64_t> extent = graph::constantOf(extentOf(g));
    return g.sequential && target.kind == EmitTarget::Kind::Cpu && extent &&
           *extent > g.tile && *extent % g.tile != 0;
  }

  /// Coordinates of the group's dimensions for tile `number`.
  void place(unsigned group, AffineExpr number) {
    const Schedule::Group &g = schedule.groups[group];
    if (g.within)
      return placeWithin(group, number);
    AffineExpr index = starts[group] ? starts[group] : number * g.step();
    for (auto [axis, of] : llvm::enumerate(axes))
      if (of == group) {
        index = index + e.axis(axis);
        if (g.own)
          guards.push_back({e.axis(axis), e.constant(g.own), /*own=*/true});
      }
    SmallVector<int64_t> tile = tileOf();
    bool mayPassEnd =
        g.tile > 1 && !graph::isWithin(index, extentOf(g), e.facts(tile));
    ends.resize(schedule.groups.size());
    ends[group].reset();
    if (mayPassEnd && tiles[group] > 1)
      ends[group] = Guard{index, extentOf(g)};
    // The elements of a row that a tile has past its end belong to no row, and
    // must not make the row's own values differ along the tile.
    if (auto axis = llvm::find(axes, group);
        (g.sequential || isRowOfRest(group)) && axis != axes.end() &&
        mayPassEnd)
      index = e.addBounded(index, axis - axes.begin(), extentOf(g));
    setCoordinates(g, index);
  }

  void setCoordinates(const Schedule::Group &g, AffineExpr index) {
    Exprs extents;
    for (unsigned d : g.dims)
      extents.push_back(root[d]);
    for (auto [d, c] : llvm::zip(g.dims, delinearize(index, extents)))
      coordinates[d] = c;
  }

  /// The same of tiles that begin anew at each multiple of `within`. What one
  /// has past the next multiple is not its own, and is of the same part for all
  /// that is read.
  void placeWithin(unsigned group, AffineExpr number) {
    const Schedule::Group &g = schedule.groups[group];
    int64_t count = llvm::divideCeil(g.within, g.tile);
    AffineExpr part = number.floorDiv(count), inside = number % count * g.tile,
               extent = e.constant(g.within);
    ends.resize(schedule.groups.size());
    ends[group].reset();
    if (const auto *axis = llvm::find(axes, group); axis != axes.end()) {
      unsigned at = axis - axes.begin();
      inside = inside + e.axis(at);
      if (g.within % g.tile != 0) {
        ends[group] = Guard{inside, extent};
        guards.push_back({inside, extent, /*own=*/true});
        inside = e.addBounded(inside, at, extent);
      }
    }
    setCoordinates(g, e.simplify(part * g.within + inside, tileOf()));
  }

  SmallVector<int64_t> tileOf() const {
    SmallVector<int64_t> tile;
    for (unsigned group : axes)
      tile.push_back(tiles[group]);
    return tile;
  }

  LogicalResult storeResults() {
    SmallVector<int64_t> tile = tileOf();
    unsigned inputs = kernel.getInputs().size();
    if (graph::GraphOpInterface ordered = orderedOf(kernel))
      return cast<EmitOpInterface>(ordered.getOperation())
          .emitOrdered(e, {yield->getOperand(0), tile, coordinates, guards},
                       function.getArgument(inputs));
    for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
      Demand demand{value, tile, coordinates, guards};
      if (i) {
        demand = withoutUnusedAxes(throughMap(demand, resultMaps[i], value));
        // In another shape an element past a row's end is one of the next row.
        if (demand.rank() == tile.size())
          for (unsigned group : axes)
            if (ends[group])
              demand.guards.push_back(*ends[group]);
      }
      FailureOr<Value> result = e.emit(demand);
      if (failed(result))
        return failure();
      // All that share a row know what it has once.
      if (e.getRowShare().count > 1 && demand.rank() != tile.size())
        demand.guards.push_back({e.getRowShare().part, e.constant(1)});
      if (sharedAxis) {
        // Of a row value, which lacks the axis, nobody has a share.
        if (demand.rank() != tile.size())
          return failure();
        int64_t share = tile[*sharedAxis] / schedule.splits;
        demand.guards.push_back(
            {e.axis(*sharedAxis) - e.getSplit().part * share,
             e.constant(share)});
      }
      e.storeResult(*result, function.getArgument(inputs + i), value.getType(),
                    demand);
    }
    return success();
  }

  /// A row value is stored once for its row, not for each element along it.
  Demand withoutUnusedAxes(const Demand &demand) {
    SmallVector<int64_t> axes, tile;
    for (unsigned axis = 0; axis < demand.rank(); ++axis) {
      bool used = llvm::any_of(demand.coordinates, [&](AffineExpr c) {
        return e.dependsOnAxis(e.simplify(c, demand.tile), axis);
      });
      axes.push_back(used ? (int64_t)tile.size() : -1);
      if (used)
        tile.push_back(demand.tile[axis]);
    }
    return e.moveAxes(demand, axes, tile);
  }

  graph::KernelOp kernel;
  const EmitTarget &target;
  Schedule schedule; ///< Of the body that is being written.
  OpBuilder &b;
  func::FuncOp function;
  TileEmitter e;
  /// See TileEmitter::Split.
  std::optional<unsigned> sharedAxis;
  Operation *yield = nullptr;
  Exprs root, coordinates;
  /// What of the tile is its own.
  SmallVector<Guard> guards;
  /// Of groups whose tile may have elements past the last of their dimensions.
  SmallVector<std::optional<Guard>> ends;
  /// From coordinates of the first result to those of each.
  SmallVector<AffineMap> resultMaps;
  SmallVector<AffineExpr> tileNumbers;
  /// Of the tile that is being written: groups that have an axis, the extent of
  /// each group, and where it begins if that is not by its number.
  SmallVector<unsigned> axes;
  SmallVector<int64_t> tiles;
  SmallVector<AffineExpr> starts;
};

} // namespace

FailureOr<func::FuncOp> emit::emitKernel(graph::KernelOp kernel,
                                         const EmitTarget &target,
                                         OpBuilder &builder) {
  FailureOr<Schedule> schedule = scheduleOf(kernel, target);
  return failed(schedule) ? FailureOr<func::FuncOp>()
                          : emitKernel(kernel, *schedule, target, builder);
}

/// Writes the program of a kernel, one schedule for all sizes.
static FailureOr<func::FuncOp> emitOneBody(graph::KernelOp kernel,
                                           Schedule schedule,
                                           const EmitTarget &target,
                                           OpBuilder &builder) {
  bool sharesRows = true;
  auto build = [&](std::optional<unsigned> sharedAxis) {
    KernelBuilder kernelBuilder(kernel, target, schedule, builder, sharedAxis);
    FailureOr<func::FuncOp> function = kernelBuilder.run();
    sharesRows = kernelBuilder.sharesRows();
    if (succeeded(function) && target.kind == EmitTarget::Kind::Cpu) {
      branchParts(*function);
      keepRows(*function);
    }
    return function;
  };
  if (std::optional<unsigned> shared = sharedAxisOf(schedule, target)) {
    FailureOr<func::FuncOp> function = build(shared);
    if (succeeded(function)) {
      if (sumsOnce(*function) && takesShares(*function))
        return function;
      function->erase();
    }
  }
  FailureOr<func::FuncOp> function = build({});
  bool isAsAsked =
      failed(function) || ((schedule.splits == 1 || sumsOnce(*function)) &&
                           (schedule.rowParts == 1 || sharesRows));
  if (isAsAsked)
    return function;
  // Two contractions, or one inside of something else; rows of which each
  // instance would walk along all, and there are more of them.
  function->erase();
  schedule.splits = schedule.rowParts = 1;
  return build({});
}

FailureOr<func::FuncOp> emit::emitKernel(graph::KernelOp kernel,
                                         Schedule schedule,
                                         const EmitTarget &target,
                                         OpBuilder &builder) {
  FailureOr<func::FuncOp> function =
      emitOneBody(kernel, schedule, target, builder);
  if (failed(function))
    return failure();
  // The shortest is asked for first.
  SmallVector<ShortBody> bodies = shortBodiesOf(kernel, target, schedule);
  for (const ShortBody &body : llvm::reverse(bodies)) {
    OwningOpRef<ModuleOp> module = moduleOf(kernel, body);
    auto few = *module->getOps<func::FuncOp>().begin();
    auto ofFew = *few.getOps<graph::KernelOp>().begin();
    OpBuilder inner = OpBuilder::atBlockEnd(module->getBody());
    FailureOr<func::FuncOp> side =
        emitOneBody(ofFew, chooseSchedule(ofFew, target), target, inner);
    // Without it such sizes take the body of all others.
    if (failed(side))
      continue;
    addBody(*function, *side, kernel, body);
  }
  return function;
}
