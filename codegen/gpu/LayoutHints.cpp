// Layouts for what no anchor reaches: those of the memory accesses near it.
#include "codegen/gpu/LayoutPlan.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using f2::Vector;
using tile::AccessOp;
using tile::isTile;

/// What one instruction moves for a thread, at most.
static constexpr unsigned kVectorBytes = 16;
/// What memory moves at least.
static constexpr unsigned kSectorBytes = 32;

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
    int64_t vector = std::min(
        {along.repeat * std::min({along.contiguous, along.alignment,
                                  int64_t(std::max(1u, kVectorBytes / bytes))}),
         along.steppedChecks});
    bool neighbours =
        (along.stride == 1 || along.repeat > 1) && shape[axis] > 1;
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
                             const LinearLayout &layout,
                             int64_t tile::AxisAccess::*checks) {
  Coalescing result;
  unsigned bytes = simt::elementBits(access.tile.getElementType()) / 8;
  for (unsigned axis = 0; axis < access.tile.getRank(); ++axis) {
    const tile::AxisAccess &along = axes[axis];
    int64_t limit = std::min(
        along.repeat * std::min({along.contiguous, along.alignment,
                                 int64_t(std::max(1u, kVectorBytes / bytes))}),
        along.*checks);
    unsigned vector = 1u << axisVector(layout, axis, limit).size();
    // Lanes that go on where the vector ends.
    unsigned run = vector;
    while (run < along.contiguous * along.repeat &&
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
    unsigned repeat = std::min<int64_t>(along.repeat, vector),
             runBytes = llvm::divideCeil(run, along.repeat) * bytes;
    if (std::tuple(runBytes, vector) >
        std::tuple(result.runBytes, result.vector))
      result = {axis, vector, repeat, runBytes};
  }
  if (access.tile.getRank() == 0)
    result.runBytes = bytes;
  return result;
}

std::optional<unsigned>
LayoutPlan::unalignedRuns(const AccessOp &access,
                          ArrayRef<tile::AxisAccess> axes,
                          const LinearLayout &layout) {
  constexpr unsigned bits = 16, vector = kVectorBytes * 8 / bits;
  if (!access.buffer || access.rank < 1 ||
      simt::elementBits(access.tile.getElementType()) != bits ||
      access.checks != ArrayRef<int64_t>{access.rank - 1})
    return std::nullopt;
  auto extent =
      dyn_cast<AffineConstantExpr>(access.shape.getResult(access.rank - 1));
  if (!extent || extent.getValue() < 4 * vector)
    return std::nullopt;
  for (unsigned axis = 0; axis < access.tile.getRank(); ++axis) {
    const tile::AxisAccess &along = axes[axis];
    if (along.stride == 1 && along.contiguous >= vector &&
        along.alignment < vector / 2 && along.steppedChecks >= vector &&
        axisVector(layout, axis, vector).size() == llvm::Log2_32(vector))
      return axis;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Hints
//===----------------------------------------------------------------------===//

static std::optional<AccessOp> accessOf(Operation *op) {
  if (auto load = dyn_cast_or_null<tile::LoadOp>(op))
    return AccessOp::get(load);
  if (auto store = dyn_cast_or_null<tile::StoreOp>(op))
    return AccessOp::get(store);
  return std::nullopt;
}

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
  if (auto split = dyn_cast<tile::SplitAxisOp>(op)) {
    if (auto hint = hintFromProducers(split.getInput(), depth + 1))
      return splitAxis(*hint, split.getAxis(), split.getInner());
    return std::nullopt;
  }
  if (auto join = dyn_cast<tile::JoinAxesOp>(op)) {
    if (auto hint = hintFromProducers(join.getInput(), depth + 1))
      return joinAxes(*hint, join.getAxis());
    return std::nullopt;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned i = cast<OpResult>(value).getResultNumber();
    return hintFromProducers(
        branch.getThenRegion().front().getTerminator()->getOperand(i),
        depth + 1);
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

std::optional<LinearLayout> LayoutPlan::layoutOfLoads(Value value,
                                                      const LinearLayout &asked,
                                                      unsigned least) const {
  llvm::SmallSetVector<Value, 16> values;
  values.insert(value);
  unsigned poor = 0, good = 0;
  std::optional<LinearLayout> best;
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (!op || anchored(values[i]) || isCheap(values[i]))
      continue;
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      AccessOp access = AccessOp::get(load);
      LinearLayout own = coalesced(access);
      unsigned possible = judge(access, own).runBytes;
      bool reads =
          judge(access, asked).runBytes >= std::min(kSectorBytes, possible);
      ++(reads ? good : poor);
      if (!reads && !best)
        best = own;
    } else if (isElementwise(op)) {
      for (Value operand : op->getOperands())
        if (isTile(operand) && tile::shapeOf(operand) == tile::shapeOf(value))
          values.insert(operand);
    }
  }
  return poor >= least && poor > good ? best : std::nullopt;
}

LinearLayout LayoutPlan::defaultLayout(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
    unsigned i = argument.getArgNumber() - 1;
    auto yielded = loop.getBody()->getTerminator()->getOperands();
    if (auto window = layoutOfWindow(yielded[i]))
      return *window;
    if (auto hint = hintFromUsers(loop.getResult(i))) {
      // What is stored once is read again and again.
      auto read = layoutOfLoads(yielded[i], *hint, /*least=*/1);
      return read ? *read : *hint;
    }
    // What is near none, as a count, lies as what is carried beside it.
    if (auto hint = hintFromProducers(yielded[i]))
      return *hint;
    for (Value other : yielded)
      if (isTile(other) && tile::shapeOf(other) == tile::shapeOf(value))
        if (auto hint = hintFromProducers(other))
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
