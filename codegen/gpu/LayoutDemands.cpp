// Layouts in which values are asked for, from the last operator to the first.
#include "codegen/gpu/LayoutPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using tile::AccessOp;
using tile::isTile;
using tile::shapeOf;

/// What memory moves at least.
static constexpr unsigned kSectorBytes = 32;
/// What a register holds.
static constexpr unsigned kWordBytes = 4;

/// What costs little to compute again in another layout.
bool LayoutPlan::isCheap(Value value, unsigned depth) const {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 4)
    return false;
  if (isa<arith::ConstantOp, tile::SplatOp, tile::IndexOp, tile::InBoundsOp>(
          op))
    return true;
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return load.getType().getNumElements() <= int64_t(warps) * kLanes * 2;
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return isCheap(broadcast.getInput(), depth + 1);
  if (isElementwise(op) && op->getName().getDialectNamespace() == "arith")
    return llvm::all_of(op->getOperands(), [&](Value v) {
      return !isTile(v) || isCheap(v, depth + 1);
    });
  return false;
}

/// Neighbours in memory that a thread has in registers along an axis, be they
/// vectors or not.
static unsigned heldRun(const tile::AxisAccess &along,
                        const LinearLayout &layout, unsigned axis) {
  return 1u << axisVector(layout, axis, along.contiguous).size();
}

/// What the layout of an access becomes where instances stay and its value
/// comes from products of warpgroups, or goes to where they leave theirs: the
/// elements of each, so that no group has to wait for another on the way, and
/// halves that can go one after the other, as long as runs in memory are two
/// sectors.
LinearLayout LayoutPlan::besideGroups(const AccessOp &access,
                                      const LinearLayout &layout,
                                      const LinearLayout &other) const {
  constexpr unsigned leastBytes = 2 * kSectorBytes;
  auto chosen = [&](const LinearLayout &from, const LinearLayout &to) {
    Coalescing before = judge(access, from), after = judge(access, to);
    return after.vector == before.vector &&
                   after.runBytes >= std::min(before.runBytes, leastBytes)
               ? to
               : from;
  };
  if (!stays || !hasGroups)
    return layout;
  LinearLayout grouped = chosen(layout, withGroupsOf(layout, other));
  int64_t bytes = access.tile.getNumElements() *
                  simt::elementBits(access.tile.getElementType()) / 8;
  return bytes > mostExchanged() ? chosen(grouped, withHalvesOf(grouped, other))
                                 : grouped;
}

void LayoutPlan::demand(Value value, const LinearLayout &layout) {
  auto &list = demands[value];
  if (llvm::is_contained(list, layout))
    return;
  // Free values are computed in every layout that is asked for if that is
  // cheap, else in one and then converted.
  if (!list.empty() && !anchored(value) && !isCheap(value))
    return;
  LinearLayout wanted = layout;
  if (auto load = value.getDefiningOp<tile::LoadOp>();
      load && !anchored(value)) {
    AccessOp access = AccessOp::get(load);
    int64_t threads = int64_t(warps) * kLanes;
    if (load.getType().getNumElements() > threads &&
        !unalignedRuns(access, axesOf(access), layout)) {
      LinearLayout best = coalesced(access);
      Coalescing asked = judge(access, layout), possible = judge(access, best);
      unsigned bytes = simt::elementBits(access.tile.getElementType()) / 8;
      // Or by elements where it could be by many: a register for each.
      bool piecemeal = bytes * asked.moved() < kWordBytes &&
                       bytes * possible.moved() > kWordBytes;
      // Short runs that vectors cannot take are as well read by one thread
      // each, element by element: they come from the same sectors.
      bool byOne = possible.moved() == 1 &&
                   bytes * heldRun(axesOf(access)[possible.axis], layout,
                                   possible.axis) >=
                       possible.runBytes;
      if (piecemeal || (!byOne && asked.runBytes < std::min(kSectorBytes / 2,
                                                            possible.runBytes)))
        wanted = besideGroups(access, best, layout);
    }
  }
  list.push_back(wanted);
}

void LayoutPlan::demandBlock(Block &block) {
  for (Operation &op : llvm::reverse(block))
    demandOperands(&op);
}

void LayoutPlan::demandSymbols(ValueRange symbols, const LinearLayout &layout) {
  for (Value symbol : symbols)
    if (isTile(symbol))
      demand(symbol, broadcastSource(layout, shapeOf(symbol)));
}

/// A store takes its value as it is anchored if memory is then written in whole
/// sectors.
void LayoutPlan::demandStore(tile::StoreOp op) {
  AccessOp access = AccessOp::get(op);
  LinearLayout layout = coalesced(access);
  if (const LinearLayout *own = anchored(op.getValue())) {
    unsigned possible = judge(access, layout).runBytes;
    layout = judge(access, *own).runBytes >= std::min(kSectorBytes, possible)
                 ? *own
                 : besideGroups(access, layout, *own);
  }
  operands[op] = layout;
  demand(op.getValue(), layout);
  demandSymbols(access.symbols, layout);
}

void LayoutPlan::demandLoop(scf::ForOp loop) {
  for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs()))
    if (isTile(argument)) {
      LinearLayout layout = *anchored(argument);
      demand(loop.getResult(i), layout);
      demand(argument, layout);
      demand(loop.getBody()->getTerminator()->getOperand(i), layout);
      demand(loop.getInitArgs()[i], layout);
    }
  demandBlock(*loop.getBody());
}

void LayoutPlan::demandBranch(scf::IfOp branch) {
  for (auto [i, result] : llvm::enumerate(branch.getResults()))
    if (isTile(result)) {
      LinearLayout layout = *anchored(result);
      demand(result, layout);
      for (Region &region : branch->getRegions())
        demand(region.front().getTerminator()->getOperand(i), layout);
    }
  for (Region &region : branch->getRegions())
    if (!region.empty())
      demandBlock(region.front());
}

LinearLayout LayoutPlan::stagingLayout(Value operand) const {
  auto hint = hintFromProducers(operand);
  return hint ? *hint : defaultLayout(operand);
}

/// Operands go to shared memory in the layout in which they are loaded best.
void LayoutPlan::demandDot(tile::DotOp op) {
  const DotPlan &plan = dotPlan(op);
  demand(op.getAccumulator(), plan.result);
  for (Value operand : {op.getLhs(), op.getRhs()}) {
    if (operand == op.getLhs() && plan.lhsRegisters) {
      demand(operand, *plan.lhsRegisters);
      continue;
    }
    if (!staged.count(operand))
      staged.insert({operand, stagingLayout(operand)});
    demand(operand, staged.find(operand)->second);
  }
}

void LayoutPlan::demandReduce(tile::ReduceOp op) {
  LinearLayout layout = operandLayout(op);
  for (Value input : op.getInputs())
    demand(input, layout);
  for (Value result : op.getResults())
    demand(result, layout.withoutAxis(op.getAxis()));
}

void LayoutPlan::demandScan(tile::ScanOp op) {
  LinearLayout layout = operandLayout(op),
               outer = layout.withoutAxis(op.getAxis());
  demand(op.getInput(), layout);
  demand(op.getResult(), layout);
  demand(op.getCarry(), outer);
  demand(op.getTotal(), outer);
}

/// Operators whose operands lie as one layout of their result says.
void LayoutPlan::demandFor(Operation *op, const LinearLayout &layout) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    demand(broadcast.getInput(),
           broadcastSource(layout, broadcast.getAxes(),
                           shapeOf(broadcast.getInput())));
  } else if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
    SmallVector<int64_t> inverse(transpose.getPermutation().size());
    for (auto [i, p] : llvm::enumerate(transpose.getPermutation()))
      inverse[p] = i;
    demand(transpose.getInput(), layout.selectAxes(inverse));
  } else if (auto split = dyn_cast<tile::SplitAxisOp>(op)) {
    demand(split.getInput(), joinAxes(layout, split.getAxis()));
  } else if (auto join = dyn_cast<tile::JoinAxesOp>(op)) {
    demand(join.getInput(), layoutApart(join, layout));
  } else if (auto part = dyn_cast<tile::CellPartOp>(op)) {
    demand(part.getInput(), layoutOfCells(part, layout));
  } else if (auto swap = dyn_cast<tile::SwapHalvesOp>(op)) {
    demand(swap.getInput(), layout);
  } else if (isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (isTile(operand))
        demand(operand, layout);
  } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
    demandSymbols(load.getSymbols(), layout);
  } else if (isa<tile::IndexOp, tile::InBoundsOp>(op)) {
    demandSymbols(op->getOperands(), layout);
  }
}

void LayoutPlan::demandOperands(Operation *op) {
  // What has effects or carries tiles is always there.
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return demandStore(store);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return demandLoop(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return demandBranch(branch);
  if (auto sum = dyn_cast<tile::SplitSumOp>(op)) {
    LinearLayout layout = *anchored(sum);
    demand(sum, layout);
    demand(sum.getValue(), layout);
    return;
  }
  if (auto exchange = dyn_cast<tile::ExchangeOp>(op)) {
    LinearLayout layout = *anchored(exchange.getResult(0));
    for (Value tile : op->getResults())
      demand(tile, layout);
    for (Value tile : op->getOperands())
      demand(tile, layout);
    return;
  }
  if (llvm::none_of(op->getResults(),
                    [&](Value v) { return demands.count(v) != 0; }))
    return;
  if (auto dot = dyn_cast<tile::DotOp>(op))
    return demandDot(dot);
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return demandReduce(reduce);
  if (auto scan = dyn_cast<tile::ScanOp>(op))
    return demandScan(scan);
  Value result = op->getResult(0);
  if (!isTile(result))
    return;
  for (const LinearLayout &layout :
       SmallVector<LinearLayout>(layoutsOf(result)))
    demandFor(op, layout);
}
