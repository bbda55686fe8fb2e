// Layouts that an operator decides, and how they go forward.
#include "codegen/gpu/LayoutPlan.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using tile::isTile;
using tile::shapeOf;

void LayoutPlan::anchorBlock(Block &block) {
  for (Operation &op : block) {
    if (isElementwise(&op)) {
      Value result = op.getResult(0);
      natural.erase(result);
      for (Value operand : op.getOperands())
        if (isTile(operand))
          if (const LinearLayout *layout = anchored(operand)) {
            LinearLayout copy = *layout;
            natural.insert({result, copy});
            break;
          }
    } else if (auto dot = dyn_cast<tile::DotOp>(op)) {
      anchorDot(dot);
    } else if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      anchorReduce(reduce);
    } else if (auto scan = dyn_cast<tile::ScanOp>(op)) {
      anchorScan(scan);
    } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
      anchorStore(store);
    } else if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
      if (const LinearLayout *layout = anchored(transpose.getInput()))
        natural[transpose] = layout->selectAxes(transpose.getPermutation());
    } else if (auto split = dyn_cast<tile::SplitAxisOp>(op)) {
      if (const LinearLayout *layout = anchored(split.getInput())) {
        LinearLayout apart =
            splitAxis(*layout, split.getAxis(), split.getInner());
        natural[split] = apart;
      }
    } else if (auto join = dyn_cast<tile::JoinAxesOp>(op)) {
      if (const LinearLayout *layout = anchored(join.getInput())) {
        LinearLayout joined = joinAxes(*layout, join.getAxis());
        natural[join] = joined;
      }
    } else if (isa<tile::CellPartOp, tile::SwapHalvesOp>(op)) {
      anchorCells(op);
    } else if (auto sum = dyn_cast<tile::SplitSumOp>(op)) {
      const LinearLayout *layout = anchored(sum.getValue());
      LinearLayout chosen = layout ? *layout : defaultLayout(sum.getValue());
      natural[sum] = chosen;
    } else if (auto exchange = dyn_cast<tile::ExchangeOp>(op)) {
      anchorExchange(exchange);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      anchorLoop(loop);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      anchorBranch(branch);
    }
  }
}

/// What a thread takes of a cell it has in its registers.
void LayoutPlan::anchorCells(Operation &op) {
  Value input = op.getOperand(0), result = op.getResult(0);
  const LinearLayout *layout = anchored(input);
  LinearLayout chosen = layout ? *layout : defaultLayout(input);
  if (auto swap = dyn_cast<tile::SwapHalvesOp>(op)) {
    chosen = holdingBit(chosen, swap.getAxis(), llvm::Log2_64(swap.getRun()));
  } else {
    auto part = cast<tile::CellPartOp>(op);
    for (int64_t parts = part.getParts(); parts > 1; parts /= 2)
      chosen = withoutBit(chosen, part.getAxis(), llvm::Log2_64(part.getRun()));
  }
  natural[result] = chosen;
}

void LayoutPlan::anchorLike(Value value, const LinearLayout *layout) {
  if (!layout)
    return;
  LinearLayout copy = *layout; // which lies where `value` is put
  natural[value] = copy;
}

/// What the branches of a conditional give has one layout.
void LayoutPlan::anchorBranch(scf::IfOp op) {
  for (Region &region : op->getRegions())
    if (!region.empty())
      anchorBlock(region.front());
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    if (!isTile(result))
      continue;
    for (Region &region : op->getRegions())
      if (!anchored(result))
        anchorLike(result,
                   anchored(region.front().getTerminator()->getOperand(i)));
    if (!anchored(result))
      natural[result] = defaultLayout(result);
  }
}

/// What a loop carries has one layout.
void LayoutPlan::anchorLoop(scf::ForOp loop) {
  Block &body = *loop.getBody();
  // First the body says what it yields; then what it carries is known inside
  // too.
  for (unsigned round = 0; round < 2; ++round) {
    anchorBlock(body);
    for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
      if (!isTile(argument) || anchored(argument))
        continue;
      anchorLike(argument, anchored(body.getTerminator()->getOperand(i)));
      if (!anchored(argument))
        anchorLike(argument, anchored(loop.getInitArgs()[i]));
    }
  }
  bool changed = false;
  for (BlockArgument argument : loop.getRegionIterArgs())
    if (isTile(argument) && !anchored(argument)) {
      natural[argument] = defaultLayout(argument);
      changed = true;
    }
  if (changed)
    anchorBlock(body);
  for (auto [argument, result] :
       llvm::zip(loop.getRegionIterArgs(), loop.getResults()))
    if (isTile(argument))
      anchorLike(result, anchored(argument));
}

/// Whether rows should stay in one warp: the value is reduced along its rows,
/// or is the left operand of another dot.
bool LayoutPlan::keepsRowsTogether(Value value,
                                   SmallPtrSetImpl<Value> &seen) const {
  if (!seen.insert(value).second)
    return false;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto reduce = dyn_cast<tile::ReduceOp>(user)) {
      if (reduce.getAxis() == 1)
        return true;
    } else if (isa<tile::DotOp>(user)) {
      if (use.getOperandNumber() == 0)
        return true;
    } else if (isElementwise(user)) {
      if (keepsRowsTogether(user->getResult(0), seen))
        return true;
    } else if (isa<scf::YieldOp>(user)) {
      if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp())) {
        if (keepsRowsTogether(loop.getRegionIterArg(use.getOperandNumber()),
                              seen) ||
            keepsRowsTogether(loop.getResult(use.getOperandNumber()), seen))
          return true;
      }
    }
  }
  return false;
}

/// The grid in which warps read least of both operands, or in which each has
/// whole rows (`together`).
static WarpGrid chooseWarps(unsigned warps, int64_t m, int64_t n, bool mma,
                            bool together) {
  int64_t mostRows = mma ? m / 16 : std::max<int64_t>(1, m / 4);
  int64_t mostColumns = mma ? n / 8 : std::max<int64_t>(1, n / 8);
  WarpGrid best;
  int64_t bestCost = -1;
  for (unsigned rows = 1; rows <= warps; rows *= 2) {
    unsigned columns = warps / rows;
    int64_t r = std::min<int64_t>(rows, mostRows),
            c = std::min<int64_t>(columns, mostColumns);
    // What a warp reads of both operands; warps that only repeat others' work
    // weigh.
    int64_t cost = (m / r + n / c) * (warps / (r * c));
    if (together)
      cost = std::abs(
          int64_t(llvm::Log2_32(rows)) -
          std::min<int64_t>(llvm::Log2_64(mostRows), llvm::Log2_32(warps)));
    if (bestCost < 0 || cost < bestCost) {
      bestCost = cost;
      best = {rows, columns};
    }
  }
  return best;
}

/// By wgmma: four warps have 64 rows; of several such groups as many as there
/// are such rows share them, the others the columns. The left operand stays in
/// registers if it lies there as a group takes it; not by wgmma where only
/// mma.sync could leave it there.
std::optional<DotPlan> LayoutPlan::planWarpgroup(tile::DotOp op,
                                                 const DotShape &dot) const {
  // A group's columns fill a row of the swizzle, whichever axis lies in memory;
  // of bytes the terms do.
  constexpr int64_t groupRows = 64, mostColumns = 256, mostAccumulators = 160;
  const int64_t leastColumns = dot.bits == 8 ? 8 : 64;
  unsigned groups = warps / 4;
  auto rows = unsigned(std::min<int64_t>(dot.m / groupRows, groups));
  unsigned columns = groups / rows;
  // What does not count is left out where one group has all columns.
  constexpr int64_t leastWidth = 8;
  int64_t used = op.getUsedColumns();
  if (columns > 1 || used % leastWidth != 0)
    used = dot.n;
  if (dot.n / columns < leastColumns || dot.n / columns > mostColumns ||
      dot.m * used > mostAccumulators * warps * kLanes)
    return std::nullopt;
  DotPlan plan;
  plan.form = DotInstruction::Form::WarpgroupMma;
  plan.used = used == dot.n ? 0 : used;
  plan.warps = {rows, columns};
  plan.result = warpgroupResultLayout({dot.m, dot.n}, plan.warps);
  auto staysIn = [&](const LinearLayout &whole) {
    const LinearLayout *layout = anchored(op.getLhs());
    return layout && classifyMove(*layout, whole) == Move::Registers;
  };
  LinearLayout whole = warpgroupLhsLayout({dot.m, dot.k}, plan.warps);
  constexpr unsigned halfBits = 16;
  if (dot.bits == halfBits && staysIn(whole))
    plan.lhsRegisters = whole;
  else if (dot.bits >= halfBits &&
           staysIn(mmaLhsLayout({dot.m, dot.k}, dot.bits, {warps, 1})))
    return std::nullopt;
  return plan;
}

/// By mma.sync m16n8: the left operand stays in registers if it lies there as
/// its fragments do.
DotPlan LayoutPlan::planMma(tile::DotOp op, const DotShape &dot) const {
  auto staysIn = [&](const LinearLayout &whole) {
    const LinearLayout *layout = anchored(op.getLhs());
    return layout && classifyMove(*layout, whole) == Move::Registers;
  };
  llvm::SmallPtrSet<Value, 16> seen;
  bool together = keepsRowsTogether(op.getResult(), seen) ||
                  staysIn(mmaLhsLayout({dot.m, dot.k}, dot.bits, {warps, 1}));
  DotPlan plan;
  plan.form = DotInstruction::Form::Mma;
  plan.warps = chooseWarps(warps, dot.m, dot.n, true, together);
  plan.step = dot.bits == 16 ? 16 : 8;
  plan.result = mmaResultLayout({dot.m, dot.n}, plan.warps);
  plan.lhs = mmaLhsLayout({dot.m, plan.step}, dot.bits, plan.warps);
  plan.rhs = mmaRhsLayout({plan.step, dot.n}, dot.bits, plan.warps);
  LinearLayout whole = mmaLhsLayout({dot.m, dot.k}, dot.bits, plan.warps);
  if (staysIn(whole))
    plan.lhsRegisters = whole;
  return plan;
}

DotPlan LayoutPlan::planMultiplyAdds(const DotShape &dot) const {
  DotPlan plan;
  plan.form = DotInstruction::Form::MultiplyAdd;
  plan.warps = chooseWarps(warps, dot.m, dot.n, false, false);
  plan.step = std::min<int64_t>(dot.k, 4);
  plan.result = fmaResultLayout({dot.m, dot.n}, plan.warps);
  plan.lhs = fmaOperandLayout(plan.result, true, plan.step);
  plan.rhs = fmaOperandLayout(plan.result, false, plan.step);
  return plan;
}

void LayoutPlan::anchorDot(tile::DotOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  Type element = getElementTypeOrSelf(op.getLhs()),
       accumulator = getElementTypeOrSelf(op.getResult());
  DotShape dot{shape[0], shape[1], shapeOf(op.getLhs())[1],
               simt::elementBits(element)};
  bool half = element.isF16() || element.isBF16();
  bool tf32 = element.isF32() && op.getTf32();
  bool bytes = isa<Float8E4M3FNType, Float8E5M2Type>(element);
  bool tensorCores = accumulator.isF32() && (half || tf32 || bytes);
  auto lies = [&](Value operand, unsigned axis) {
    return longestRun(stagingLayout(operand), 128 / dot.bits).first == axis;
  };
  const DotInstruction &best =
      target.dotFor(tensorCores ? dot.bits : 0, dot.m, dot.n, dot.k, warps,
                    lies(op.getLhs(), 1) && lies(op.getRhs(), 0));
  std::optional<DotPlan> plan;
  if (best.form == DotInstruction::Form::WarpgroupMma)
    plan = planWarpgroup(op, dot);
  if (!plan)
    plan = best.form == DotInstruction::Form::MultiplyAdd
               ? planMultiplyAdds(dot)
               : planMma(op, dot);
  natural[op] = plan->result;
  dots[op] = *plan;
  hasGroups |= plan->form == DotInstruction::Form::WarpgroupMma &&
               warps > 1u << kWarpgroupBits;
}

void LayoutPlan::anchorReduce(tile::ReduceOp op) {
  std::optional<LinearLayout> found;
  for (Value input : op.getInputs())
    if (const LinearLayout *layout = anchored(input); layout && !found)
      found = *layout;
  for (Value input : op.getInputs())
    if (!found)
      found = hintFromProducers(input);
  LinearLayout chosen = found ? *found : defaultLayout(op.getInputs()[0]);
  for (Value input : op.getInputs())
    fix(input, chosen);
  for (Value result : op.getResults())
    natural[result] = chosen.withoutAxis(op.getAxis());
  operands[op] = chosen;
}

/// A warp has all of the axis: lanes are neighbours along it where its elements
/// are neighbours in memory, else each has some elements of its own. What is
/// combined one by one is a thread's.
void LayoutPlan::anchorScan(tile::ScanOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getInput());
  unsigned rank = shape.size(), axis = op.getAxis();
  bool oneByOne = op->hasAttr(tile::kOneByOneAttr);
  auto hint = hintFromProducers(op.getInput());
  LinearLayout wanted = hint ? *hint : defaultLayout(op.getInput());
  int64_t others = 1;
  for (unsigned i = 0; i < rank; ++i)
    others *= i == axis ? 1 : shape[i];
  bool along = oneByOne || wanted.basis(Dim::Lane, 0, axisDim(axis)) != 0 ||
               others < int64_t(warps) * kLanes;
  SmallVector<unsigned> order;
  for (unsigned i = rank; i-- > 0;)
    if (i != axis)
      order.push_back(i);
  order.insert(along ? order.begin() : order.end(), axis);
  int64_t threads = oneByOne ? 1 : kLanes;
  unsigned vector = along ? std::max<int64_t>(1, shape[axis] / threads) : 1;
  LinearLayout chosen = blockedLayout(shape, order, vector, warps);
  fix(op.getInput(), chosen);
  natural[op.getResult()] = chosen;
  natural[op.getTotal()] = chosen.withoutAxis(axis);
  operands[op] = chosen;
}

/// What all parts give has the layout of what this one does.
void LayoutPlan::anchorExchange(tile::ExchangeOp op) {
  const LinearLayout *known = nullptr;
  for (Value input : op.getInputs())
    if (!known)
      known = anchored(input);
  LinearLayout chosen = known ? *known : defaultLayout(op.getInputs()[0]);
  for (Value result : op.getResults())
    natural[result] = chosen;
}

/// Several tiles that lie in memory otherwise than the result (the neighbours
/// of a window) are combined as they are read, and the result is turned.
void LayoutPlan::anchorStore(tile::StoreOp op) {
  if (anchored(op.getValue()))
    return;
  if (auto window = layoutOfWindow(op.getValue()))
    return fix(op.getValue(), *window);
  tile::AccessOp access = tile::AccessOp::get(op);
  if (auto layout =
          layoutOfLoads(op.getValue(), coalesced(access), /*least=*/2))
    fix(op.getValue(), *layout);
}

/// Anchors a free value and the free values that it is computed from.
void LayoutPlan::fix(Value value, const LinearLayout &layout) {
  if (!isTile(value) || anchored(value) || isCheap(value))
    return;
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  if (isElementwise(op)) {
    natural.insert({value, layout});
    for (Value operand : op->getOperands())
      fix(operand, layout);
  } else if (isa<tile::LoadOp>(op)) {
    natural.insert({value, layout});
  }
}
