// The frame of a tile program: function, grid, what is stored.
#include "codegen/emit/BranchParts.h"
#include "codegen/emit/KeepRows.h"
#include "codegen/emit/KernelBuilder.h"
#include "codegen/emit/KernelShape.h"
#include "codegen/emit/ShortBodies.h"
#include "codegen/emit/ShortRows.h"
#include "codegen/emit/SplitParts.h"
#include "codegen/emit/Streamed.h"
#include "codegen/emit/rules/Rules.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Walked.h"
#include "graph/ir/FormedOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

/// Element type of a buffer: signless integers, bytes for i1.
static Type storageType(Type tensor) {
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

FailureOr<func::FuncOp> KernelBuilder::run() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  Block &body = kernel.getBody().front();
  yield = body.getTerminator();
  for (auto [i, argument] : llvm::enumerate(body.getArguments()))
    e.setBuffer(argument, function.getArgument(i));
  first = graph::getFirst(kernel);
  root = graph::getShape(graph::getWalked(kernel));
  cells = graph::getCellSides(kernel);
  if (!cells.empty())
    space = graph::getIterationSpace(kernel);
  walksProduct = kernel->hasAttr(graph::kWalksProductAttr);
  if (yield->getNumOperands() > 1 || !cells.empty() || walksProduct) {
    auto maps = graph::getResultMaps(kernel);
    if (!maps)
      return kernel.emitOpError(
                 "has results that do not follow from the first"),
             failure();
    resultMaps = std::move(*maps);
  }
  coordinates.assign(root.size(), e.constant(0));
  unbounded = coordinates;
  if (failed(checkThatAllIsWalked()) || failed(checkRowParts()) ||
      failed(checkCells())) {
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

LogicalResult KernelBuilder::checkThatAllIsWalked() {
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

LogicalResult KernelBuilder::checkRowParts() {
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

void KernelBuilder::allowContraction() {
  function.walk([&](Operation *op) {
    auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
    if (fast && isa<arith::MulFOp, arith::AddFOp, arith::SubFOp>(op) &&
        !op->removeAttr(kRoundedAttr))
      op->setAttr(fast.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(
                      op->getContext(), arith::FastMathFlags::contract));
  });
}

func::FuncOp KernelBuilder::createFunction(const EmitTarget &target) {
  SmallVector<Type> types;
  for (Value input : kernel.getInputs())
    types.push_back(
        tile::BufferType::get(b.getContext(), storageType(input.getType())));
  for (Type result : kernel.getResultTypes())
    types.push_back(tile::BufferType::get(b.getContext(), storageType(result)));
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
      f.setArgAttr(first + i, tile::kDivisorAttr, b.getI64IntegerAttr(divisor));
  if (target.kind == EmitTarget::Kind::Cpu)
    markStreamed(f, kernel, target, schedule);
  if (target.kind == EmitTarget::Kind::Gpu) {
    f->setAttr(tile::kWarpsAttr, b.getI64IntegerAttr(schedule.warps));
    f->setAttr(tile::kStagesAttr, b.getI64IntegerAttr(schedule.stages));
    if (schedule.residents > 1)
      f->setAttr(tile::kResidentsAttr, b.getI64IntegerAttr(schedule.residents));
  }
  return f;
}

AffineExpr KernelBuilder::extentOf(const Schedule::Group &g) {
  AffineExpr n = e.constant(1);
  for (unsigned d : g.dims)
    n = n * root[d];
  return e.simplify(n, {});
}

AffineExpr KernelBuilder::countOf(const Schedule::Group &g) {
  if (g.within)
    return e.simplify(extentOf(g).floorDiv(g.within) *
                          llvm::divideCeil(g.within, g.tile),
                      {});
  return e.simplify((extentOf(g) + (g.step() - 1)).floorDiv(g.step()), {});
}

void KernelBuilder::startGrid() {
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
    e.setRowShare(
        {schedule.rowParts, e.addSymbol(part, e.constant(schedule.rowParts))});
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

bool KernelBuilder::runsLongestLast() {
  return function->hasAttr(tile::kWarpsAttr) && growsByRow(kernel);
}

bool KernelBuilder::isAnyMoving(ArrayRef<unsigned> groups) {
  return llvm::any_of(groups, [&](unsigned g) {
    return graph::constantOf(countOf(schedule.groups[g])) != 1;
  });
}

Value KernelBuilder::startRuns(ArrayRef<unsigned> parallel, Value rest) {
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
    return arith::MinUIOp::create(b, loc, most,
                                  arith::SubIOp::create(b, loc, count, first));
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
  tileNumbers[fast] =
      e.addSymbol(arith::AddIOp::create(b, loc, first, fastNumber), fastCount);
  return rest;
}

void KernelBuilder::findPosition(ArrayRef<unsigned> parallel) {
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

SmallVector<int64_t> KernelBuilder::tileOf() const {
  SmallVector<int64_t> tile;
  for (unsigned group : axes)
    tile.push_back(tiles[group]);
  return tile;
}

void KernelBuilder::addEnds(Demand &demand) {
  for (unsigned group : axes)
    if (ends[group])
      demand.guards.push_back(*ends[group]);
}

LogicalResult KernelBuilder::storeResults() {
  SmallVector<int64_t> tile = tileOf();
  unsigned inputs = kernel.getInputs().size();
  cellSums.clear();
  if (graph::GraphOpInterface ordered = orderedOf(kernel))
    return cast<EmitOpInterface>(ordered.getOperation())
        .emitOrdered(e, {yield->getOperand(0), tile, coordinates, guards},
                     function.getArgument(inputs));
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    Demand demand{value, tile, coordinates, guards};
    if (std::optional<LogicalResult> stored = storeOfCells(i, demand)) {
      if (failed(*stored))
        return failure();
      continue;
    }
    const Demand walked = demand;
    if (i || value != first) {
      demand = withoutUnusedAxes(throughMap(demand, resultMaps[i], value));
      if (demand.rank() == tile.size())
        addEnds(demand);
    }
    FailureOr<Value> result = emitResult(walked, demand);
    if (failed(result))
      return failure();
    // All that share a row know what it has once.
    if (e.getRowShare().count > 1 && demand.rank() != tile.size())
      demand.guards.push_back({e.getRowShare().part, e.constant(1)});
    // Of a row value, which lacks the axis, nobody has a share.
    if (sharedAxis && demand.rank() != tile.size())
      return failure();
    if (!takeShare(demand))
      return failure();
    store(i, *result, demand);
  }
  return success();
}

void KernelBuilder::store(unsigned result, Value tile, const Demand &demand) {
  unsigned argument = kernel.getInputs().size() + result;
  e.storeResult(tile, function.getArgument(argument), demand, {},
                graph::getStoredPart(kernel, result));
}

FailureOr<Value> KernelBuilder::emitResult(const Demand &walked,
                                           const Demand &demand) {
  Value computed = demand.value;
  auto isFull = [&](Value value) {
    auto place = space->lookup(value);
    return place && place->extent == graph::IterationSpace::Extent::Full;
  };
  // What views put elsewhere is computed in the order in which it is walked,
  // and stored in its own type whatever it is converted to on the way.
  auto isPassed = [](graph::GraphOpInterface op) {
    auto cast = dyn_cast<graph::CastOp>(op.getOperation());
    return op.getRole() == graph::OpRole::View ||
           (cast && !op->hasAttr(graph::kAsStoredAttr) &&
            isa<FloatType>(getElementTypeOrSelf(cast.getInput())) &&
            isa<FloatType>(getElementTypeOrSelf(cast.getResult())));
  };
  while (auto op = space && !walksProduct
                       ? computed.getDefiningOp<graph::GraphOpInterface>()
                       : graph::GraphOpInterface()) {
    if (!isPassed(op) || !isFull(op->getOperand(0)))
      break;
    computed = op->getOperand(0);
  }
  if (computed == demand.value)
    return e.emit(demand);
  return e.emit(
      throughMap(walked, space->mapBetween(first, computed), computed));
}

Demand KernelBuilder::withoutUnusedAxes(const Demand &demand) {
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
  if (std::optional<unsigned> shared =
          sharedAxisOf(schedule, target, graph::getCellSides(kernel))) {
    FailureOr<func::FuncOp> function = build(shared);
    if (succeeded(function)) {
      if (sumsOnce(*function) && takesShares(*function, *shared))
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
