#include "codegen/gpu/LayoutPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using f2::Vector;
using tile::AccessOp;
using tile::isTile;
using tile::shapeOf;

static constexpr unsigned kVectorBytes = 16;
static constexpr unsigned kSectorBytes = 32;

bool charonia::gpu::isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) &&
         op->getNumResults() == 1 &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

LinearLayout charonia::gpu::broadcastSource(const LinearLayout &layout,
                                            ArrayRef<int64_t> axes,
                                            ArrayRef<int64_t> inputShape) {
  LinearLayout selected = layout.selectAxes(axes);
  SmallVector<LinearLayout::Space> outs;
  for (auto [i, extent] : llvm::enumerate(inputShape))
    outs.push_back({axisDim(i), llvm::Log2_64(extent)});
  SmallVector<Vector> images;
  for (Vector v : selected.allColumns()) {
    Vector image = 0;
    unsigned shift = 0;
    for (const LinearLayout::Space &out : outs) {
      image |= Vector(selected.coordinate(v, out.dim) & ((1u << out.bits) - 1))
               << shift;
      shift += out.bits;
    }
    images.push_back(image);
  }
  return LinearLayout(selected.ins(), outs, images).withoutFreeRegisters();
}

LinearLayout charonia::gpu::broadcastSource(const LinearLayout &layout,
                                            ArrayRef<int64_t> inputShape) {
  return broadcastSource(
      layout, llvm::to_vector(llvm::seq<int64_t>(0, inputShape.size())),
      inputShape);
}

Move charonia::gpu::classifyMove(const LinearLayout &from,
                                 const LinearLayout &to) {
  LinearLayout move = from.conversionTo(to);
  Move result = Move::Registers;
  for (const LinearLayout::Space &in : move.ins())
    for (unsigned bit = 0; bit < in.bits; ++bit) {
      bool isWarp = in.dim == Dim::Warp, isLane = in.dim == Dim::Lane;
      if (move.basis(in.dim, bit, Dim::Warp) != (isWarp ? 1u << bit : 0))
        return Move::Shared;
      // A lane cannot choose the register that another lane sends to it.
      if ((isLane || isWarp) && move.basis(in.dim, bit, Dim::Register) != 0)
        return Move::Shared;
      if (move.basis(in.dim, bit, Dim::Lane) != (isLane ? 1u << bit : 0))
        result = Move::Shuffles;
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Memory accesses
//===----------------------------------------------------------------------===//

ArrayRef<tile::AxisAccess> LayoutPlan::axesOf(const AccessOp &access) const {
  auto [it, isNew] = analyzed.try_emplace(access.op);
  if (isNew)
    it->second = tile::analyzeAxes(access);
  return it->second;
}

LinearLayout LayoutPlan::coalesced(const AccessOp &access) const {
  ArrayRef<int64_t> shape = access.tile.getShape();
  int64_t rank = shape.size(), elements = access.tile.getNumElements();
  unsigned bytes = simt::elementBits(access.tile.getElementType()) / 8;
  // The axis of longest vectors leads; among equals one whose neighbours are
  // neighbours in memory, then the last.
  int64_t best = rank - 1, bestVector = 0;
  bool bestNeighbours = false;
  ArrayRef<tile::AxisAccess> axes = axesOf(access);
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    const tile::AxisAccess &along = axes[axis];
    int64_t vector =
        std::min({along.contiguous, along.alignment, along.uniformChecks,
                  int64_t(std::max(1u, kVectorBytes / bytes))});
    bool neighbours = along.stride == 1 && shape[axis] > 1;
    if (std::tuple(vector, neighbours) >
        std::tuple(bestVector, bestNeighbours)) {
      best = axis;
      bestVector = vector;
      bestNeighbours = neighbours;
    }
  }
  int64_t threads = int64_t(warps) * kLanes;
  int64_t share =
      llvm::bit_floor(uint64_t(std::max<int64_t>(1, elements / threads)));
  int64_t vector = rank ? std::max<int64_t>(1, std::min(bestVector, share)) : 1;
  SmallVector<unsigned> order;
  if (rank)
    order.push_back(best);
  for (int64_t axis = rank - 1; axis >= 0; --axis)
    if (axis != best)
      order.push_back(axis);
  return blockedLayout(shape, order, vector, warps);
}

Coalescing LayoutPlan::judge(const AccessOp &access,
                             ArrayRef<tile::AxisAccess> axes,
                             const LinearLayout &layout) {
  Coalescing result;
  unsigned bytes = simt::elementBits(access.tile.getElementType()) / 8;
  for (unsigned axis = 0; axis < access.tile.getRank(); ++axis) {
    const tile::AxisAccess &along = axes[axis];
    int64_t limit =
        std::min({along.contiguous, along.alignment, along.uniformChecks,
                  int64_t(std::max(1u, kVectorBytes / bytes))});
    unsigned vector = 1u << axisVector(layout, axis, limit).size();
    // Lanes that go on where the vector ends.
    unsigned run = vector;
    while (run < along.contiguous &&
           llvm::any_of(
               layout.columnsOf(Dim::Lane),
               [&](Vector v) {
                 for (const LinearLayout::Space &out : layout.outs())
                   if (layout.coordinate(v, out.dim) !=
                       (out.dim == axisDim(axis) ? run : 0))
                     return false;
                 return true;
               }))
      run *= 2;
    if (std::tuple(run * bytes, vector) >
        std::tuple(result.runBytes, result.vector))
      result = {axis, vector, run * bytes};
  }
  if (access.tile.getRank() == 0)
    result.runBytes = bytes;
  return result;
}

static std::optional<AccessOp> accessOf(Operation *op) {
  if (auto load = dyn_cast_or_null<tile::LoadOp>(op))
    return AccessOp::get(load);
  if (auto store = dyn_cast_or_null<tile::StoreOp>(op))
    return AccessOp::get(store);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Anchors
//===----------------------------------------------------------------------===//

LogicalResult LayoutPlan::run() {
  if (failed(verify()))
    return failure();
  anchorBlock(function.getBody().front());
  demandBlock(function.getBody().front());
  return success();
}

LogicalResult LayoutPlan::verify() {
  WalkResult result = function.walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor)
        continue;
      for (int64_t extent : tensor.getShape())
        if (extent < 1 || !llvm::isPowerOf2_64(extent)) {
          op->emitOpError("on a GPU, tile extents are powers of two, not ")
              << type;
          return WalkResult::interrupt();
        }
    }
    if (op->getNumRegions() &&
        !isa<func::FuncOp, scf::ForOp, scf::IfOp, tile::ReduceOp>(op)) {
      op->emitOpError("has no lowering to a GPU");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

const LinearLayout *LayoutPlan::anchored(Value value) const {
  auto it = natural.find(value);
  return it == natural.end() ? nullptr : &it->second;
}

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
    } else if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
      if (const LinearLayout *layout = anchored(transpose.getInput()))
        natural[transpose] = layout->selectAxes(transpose.getPermutation());
    } else if (auto sum = dyn_cast<tile::SplitSumOp>(op)) {
      const LinearLayout *layout = anchored(sum.getValue());
      LinearLayout chosen = layout ? *layout : defaultLayout(sum.getValue());
      natural[sum] = chosen;
    } else if (isa<scf::ForOp, scf::IfOp>(op)) {
      anchorLoop(&op);
    }
  }
}

/// What a loop carries, or the branches of a conditional give, has one layout.
void LayoutPlan::anchorLoop(Operation *op) {
  auto set = [&](Value value, const LinearLayout *layout) {
    if (layout) {
      LinearLayout copy = *layout;
      natural[value] = copy;
    }
  };
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (Region &region : branch->getRegions())
      if (!region.empty())
        anchorBlock(region.front());
    for (auto [i, result] : llvm::enumerate(branch.getResults())) {
      if (!isTile(result))
        continue;
      for (Region &region : branch->getRegions())
        if (!anchored(result))
          set(result, anchored(region.front().getTerminator()->getOperand(i)));
      if (!anchored(result))
        natural[result] = defaultLayout(result);
    }
    return;
  }
  auto loop = cast<scf::ForOp>(op);
  Block &body = *loop.getBody();
  // First the body says what it yields; then what it carries is known inside
  // too.
  for (unsigned round = 0; round < 2; ++round) {
    anchorBlock(body);
    for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
      if (!isTile(argument) || anchored(argument))
        continue;
      set(argument, anchored(body.getTerminator()->getOperand(i)));
      if (!anchored(argument))
        set(argument, anchored(loop.getInitArgs()[i]));
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
      set(result, anchored(argument));
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

void LayoutPlan::anchorDot(tile::DotOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  int64_t m = shape[0], n = shape[1], k = shapeOf(op.getLhs())[1];
  Type element = cast<RankedTensorType>(op.getLhs().getType()).getElementType();
  Type accumulator = cast<RankedTensorType>(op.getType()).getElementType();
  bool half = element.isF16() || element.isBF16();
  bool tf32 = element.isF32() && op.getTf32();
  DotPlan plan;
  plan.mma = accumulator.isF32() && m >= 16 && n >= 8 &&
             ((half && k >= 16) || (tf32 && k >= 8));
  unsigned bits = simt::elementBits(element);

  int64_t mostRows = plan.mma ? m / 16 : std::max<int64_t>(1, m / 4);
  int64_t mostColumns = plan.mma ? n / 8 : std::max<int64_t>(1, n / 8);
  llvm::SmallPtrSet<Value, 16> seen;
  bool together = plan.mma && keepsRowsTogether(op.getResult(), seen);
  if (const LinearLayout *layout = anchored(op.getLhs()); layout && plan.mma)
    together |= classifyMove(*layout, mmaLhsLayout({m, k}, bits, {warps, 1})) ==
                Move::Registers;
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
      plan.warps = {rows, columns};
    }
  }

  if (plan.mma) {
    plan.step = half ? 16 : 8;
    plan.result = mmaResultLayout(shape, plan.warps);
    plan.lhs = mmaLhsLayout({m, plan.step}, bits, plan.warps);
    plan.rhs = mmaRhsLayout({plan.step, n}, bits, plan.warps);
    if (const LinearLayout *layout = anchored(op.getLhs())) {
      LinearLayout whole = mmaLhsLayout({m, k}, bits, plan.warps);
      if (classifyMove(*layout, whole) == Move::Registers)
        plan.lhsRegisters = whole;
    }
  } else {
    plan.step = std::min<int64_t>(k, 4);
    plan.result = fmaResultLayout(shape, plan.warps);
    plan.lhs = fmaOperandLayout(plan.result, true, plan.step);
    plan.rhs = fmaOperandLayout(plan.result, false, plan.step);
  }
  natural[op] = plan.result;
  dots[op] = plan;
}

void LayoutPlan::anchorReduce(tile::ReduceOp op) {
  const LinearLayout *layout = nullptr;
  for (Value input : op.getInputs())
    if (!layout)
      layout = anchored(input);
  LinearLayout chosen;
  if (layout) {
    chosen = *layout;
  } else {
    std::optional<LinearLayout> hint;
    for (Value input : op.getInputs())
      if (!hint)
        hint = hintFromProducers(input);
    chosen = hint ? *hint : defaultLayout(op.getInputs()[0]);
  }
  for (Value input : op.getInputs())
    fix(input, chosen);
  for (Value result : op.getResults())
    natural[result] = chosen.withoutAxis(op.getAxis());
  operands[op] = chosen;
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

//===----------------------------------------------------------------------===//
// Hints for what no anchor reaches
//===----------------------------------------------------------------------===//

static constexpr unsigned kHintDepth = 16;

std::optional<LinearLayout>
LayoutPlan::hintFromProducers(Value value, unsigned depth) const {
  if (const LinearLayout *layout = anchored(value))
    return *layout;
  Operation *op = value.getDefiningOp();
  if (!op || depth > kHintDepth)
    return std::nullopt;
  if (auto access = accessOf(op))
    return coalesced(*access);
  if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
    if (auto hint = hintFromProducers(transpose.getInput(), depth + 1))
      return hint->selectAxes(transpose.getPermutation());
    return std::nullopt;
  }
  if (isElementwise(op))
    for (Value operand : op->getOperands())
      if (isTile(operand))
        if (auto hint = hintFromProducers(operand, depth + 1))
          return hint;
  return std::nullopt;
}

std::optional<LinearLayout> LayoutPlan::hintFromUsers(Value value,
                                                      unsigned depth) const {
  if (depth > kHintDepth)
    return std::nullopt;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    std::optional<LinearLayout> hint;
    if (auto access = accessOf(user);
        access && access->tile == value.getType()) {
      hint = coalesced(*access);
    } else if (isElementwise(user)) {
      if (const LinearLayout *layout = anchored(user->getResult(0)))
        hint = *layout;
      else
        hint = hintFromUsers(user->getResult(0), depth + 1);
    } else if (isa<scf::YieldOp>(user) &&
               isa<scf::ForOp, scf::IfOp>(user->getParentOp())) {
      Value result = user->getParentOp()->getResult(use.getOperandNumber());
      if (const LinearLayout *layout = anchored(result))
        hint = *layout;
      else
        hint = hintFromUsers(result, depth + 1);
    }
    if (hint)
      return hint;
  }
  return std::nullopt;
}

LinearLayout LayoutPlan::defaultLayout(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
    unsigned i = argument.getArgNumber() - 1;
    if (auto hint = hintFromUsers(loop.getResult(i)))
      return *hint;
    if (auto hint =
            hintFromProducers(loop.getBody()->getTerminator()->getOperand(i)))
      return *hint;
  }
  if (auto hint = hintFromProducers(value))
    return *hint;
  if (auto hint = hintFromUsers(value))
    return *hint;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<unsigned> order;
  for (int64_t axis = type.getRank() - 1; axis >= 0; --axis)
    order.push_back(axis);
  int64_t share = type.getNumElements() / (int64_t(warps) * kLanes);
  unsigned vector = std::max<int64_t>(
      1, std::min<int64_t>(llvm::bit_floor(uint64_t(share)),
                           kVectorBytes * 8 /
                               simt::elementBits(type.getElementType())));
  return blockedLayout(type.getShape(), order, vector, warps);
}

//===----------------------------------------------------------------------===//
// Demands, from the last operator to the first
//===----------------------------------------------------------------------===//

ArrayRef<LinearLayout> LayoutPlan::layoutsOf(Value value) const {
  auto it = demands.find(value);
  if (it == demands.end())
    return {};
  if (const LinearLayout *layout = anchored(value))
    return *layout;
  return it->second;
}

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
    if (load.getType().getNumElements() > threads) {
      LinearLayout best = coalesced(access);
      unsigned asked = judge(access, layout).runBytes,
               possible = judge(access, best).runBytes;
      if (asked < std::min(kSectorBytes / 2, possible))
        wanted = best;
    }
  }
  list.push_back(wanted);
}

void LayoutPlan::demandBlock(Block &block) {
  for (Operation &op : llvm::reverse(block))
    demandOperands(&op);
}

void LayoutPlan::demandOperands(Operation *op) {
  auto demandSymbols = [&](ValueRange symbols, const LinearLayout &layout) {
    for (Value symbol : symbols)
      if (isTile(symbol))
        demand(symbol, broadcastSource(layout, shapeOf(symbol)));
  };
  if (auto store = dyn_cast<tile::StoreOp>(op)) {
    AccessOp access = AccessOp::get(store);
    Value value = store.getValue();
    LinearLayout layout = coalesced(access);
    if (const LinearLayout *own = anchored(value)) {
      unsigned possible = judge(access, layout).runBytes;
      if (judge(access, *own).runBytes >= std::min(kSectorBytes, possible))
        layout = *own;
    }
    operands[op] = layout;
    demand(value, layout);
    demandSymbols(access.symbols, layout);
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs()))
      if (isTile(argument)) {
        LinearLayout layout = *anchored(argument);
        demand(loop.getResult(i), layout);
        demand(argument, layout);
        demand(loop.getBody()->getTerminator()->getOperand(i), layout);
        demand(loop.getInitArgs()[i], layout);
      }
    demandBlock(*loop.getBody());
    return;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
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
    return;
  }
  if (auto sum = dyn_cast<tile::SplitSumOp>(op)) {
    LinearLayout layout = *anchored(sum);
    demand(sum, layout);
    demand(sum.getValue(), layout);
    return;
  }
  if (op->getNumResults() == 0 || !llvm::any_of(op->getResults(), [&](Value v) {
        return demands.count(v) != 0;
      }))
    return;

  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    const DotPlan &plan = dots.find(op)->second;
    demand(dot.getAccumulator(), plan.result);
    for (Value operand : {dot.getLhs(), dot.getRhs()}) {
      if (operand == dot.getLhs() && plan.lhsRegisters) {
        demand(operand, *plan.lhsRegisters);
        continue;
      }
      if (!staged.count(operand)) {
        auto hint = hintFromProducers(operand);
        LinearLayout layout = hint ? *hint : defaultLayout(operand);
        staged.insert({operand, layout});
      }
      demand(operand, staged.find(operand)->second);
    }
    return;
  }
  if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    LinearLayout layout = operandLayout(op);
    for (Value input : reduce.getInputs())
      demand(input, layout);
    for (Value result : reduce.getResults())
      demand(result, layout.withoutAxis(reduce.getAxis()));
    return;
  }
  Value result = op->getResult(0);
  if (!isTile(result))
    return;
  SmallVector<LinearLayout> layouts(layoutsOf(result));
  for (const LinearLayout &layout : layouts) {
    if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
      demand(broadcast.getInput(),
             broadcastSource(layout, broadcast.getAxes(),
                             shapeOf(broadcast.getInput())));
    } else if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
      SmallVector<int64_t> inverse(transpose.getPermutation().size());
      for (auto [i, p] : llvm::enumerate(transpose.getPermutation()))
        inverse[p] = i;
      demand(transpose.getInput(), layout.selectAxes(inverse));
    } else if (isElementwise(op)) {
      for (Value operand : op->getOperands())
        if (isTile(operand))
          demand(operand, layout);
    } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
      demandSymbols(load.getSymbols(), layout);
    } else if (auto index = dyn_cast<tile::IndexOp>(op)) {
      demandSymbols(index.getSymbols(), layout);
    } else if (auto inside = dyn_cast<tile::InBoundsOp>(op)) {
      demandSymbols(inside.getSymbols(), layout);
    }
  }
}
