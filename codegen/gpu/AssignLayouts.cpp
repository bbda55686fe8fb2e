#include "codegen/gpu/AssignLayouts.h"
#include "codegen/gpu/LayoutPlan.h"
#include "graph/ir/Float8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using f2::Vector;
using tile::isTile;
using tile::shapeOf;

namespace {

/// Writes a kernel again with the layouts of a plan.
class LayoutRewriter {
public:
  LayoutRewriter(func::FuncOp function, const LayoutPlan &plan)
      : function(function), plan(plan), b(function.getContext()) {}

  LogicalResult run() {
    Block &old = function.getBody().front();
    auto *body = new Block();
    for (BlockArgument argument : old.getArguments())
      scalars.map(argument,
                  body->addArgument(argument.getType(), argument.getLoc()));
    b.setInsertionPointToEnd(body);
    if (failed(rewriteBlock(old)))
      return failure();
    old.dropAllReferences();
    function.getBody().push_back(body);
    old.erase();
    return success();
  }

private:
  LogicalResult rewriteBlock(Block &block) {
    for (Operation &op : block)
      if (failed(rewrite(&op)))
        return failure();
    return success();
  }
  LogicalResult rewrite(Operation *op);
  LogicalResult rewriteTile(Operation *op, const LinearLayout &layout);
  LogicalResult rewriteLoop(scf::ForOp op);
  LogicalResult rewriteBranch(scf::IfOp op);
  void rewriteStore(tile::StoreOp op);
  void rewriteDot(tile::DotOp op);
  void rewriteReduce(tile::ReduceOp op);
  void rewriteScan(tile::ScanOp op);
  void rewriteExchange(tile::ExchangeOp op);
  Value exchangeMemory(const LinearLayout &layout, unsigned operands);

  /// The new value of `value` in a layout, converted where it is defined.
  Value get(Value value, const LinearLayout &layout);
  SmallVector<Value> getAll(ValueRange values, const LinearLayout &layout) {
    SmallVector<Value> result;
    for (Value value : values)
      result.push_back(isTile(value) ? get(value, layout)
                                     : scalars.lookup(value));
    return result;
  }
  SmallVector<Value> getSymbols(ValueRange symbols,
                                const LinearLayout &layout) {
    SmallVector<Value> result;
    for (Value symbol : symbols)
      result.push_back(
          isTile(symbol) ? get(symbol, broadcastSource(layout, shapeOf(symbol)))
                         : scalars.lookup(symbol));
    return result;
  }
  void set(Value value, const LinearLayout &layout, Value with) {
    tiles[value].push_back({layout, with});
  }
  Value convert(Value value, const LinearLayout &layout);
  Value throughShared(Value value, const LinearLayout &layout);
  Value byHalves(Value value, const LinearLayout &layout);
  /// An operand of a dot in shared memory.
  Value toShared(Value operand, const DotPlan &dot, bool lhs);
  Value warpgroupDot(tile::DotOp op, const DotPlan &dot, Value lhs, Value rhs);

  static RankedTensorType typeOf(Value value, const LinearLayout &layout) {
    return simt::withLayout(cast<RankedTensorType>(value.getType()), layout);
  }

  struct Version {
    LinearLayout layout;
    Value value;
  };
  func::FuncOp function;
  const LayoutPlan &plan;
  OpBuilder b;
  IRMapping scalars;
  DenseMap<Value, SmallVector<Version, 1>> tiles;
  DenseMap<std::pair<Value, Type>, Value> shared;
};

Value LayoutRewriter::get(Value value, const LinearLayout &layout) {
  auto &versions = tiles[value];
  assert(!versions.empty() && "nothing demanded this tile");
  for (const Version &version : versions)
    if (version.layout == layout)
      return version.value;
  Value first = versions.front().value;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(first);
  Value converted = convert(first, layout);
  tiles[value].push_back({layout, converted});
  return converted;
}

Value LayoutRewriter::convert(Value value, const LinearLayout &layout) {
  const LinearLayout &from = simt::layoutOf(value);
  if (from == layout)
    return value;
  if (classifyMove(from, layout) == Move::Shared)
    return throughShared(value, layout);
  return simt::ConvertOp::create(b, value.getLoc(), typeOf(value, layout),
                                 value);
}

/// One half of a tile along an axis after the other, by the memory of one; null
/// where threads do not hold the same of both.
Value LayoutRewriter::byHalves(Value value, const LinearLayout &layout) {
  auto type = cast<RankedTensorType>(value.getType());
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    auto from = halfOf(simt::layoutOf(value), axis), to = halfOf(layout, axis);
    if (!from || !to)
      continue;
    SmallVector<int64_t> shape(type.getShape()), start(type.getRank(), 0);
    shape[axis] /= 2;
    auto half = simt::withLayout(
        RankedTensorType::get(shape, type.getElementType()), *from);
    SmallVector<Value> parts;
    for (int64_t at : {int64_t(0), shape[axis]}) {
      start[axis] = at;
      parts.push_back(throughShared(
          simt::SliceOp::create(b, value.getLoc(), half, value, start), *to));
    }
    return simt::JoinOp::create(b, value.getLoc(), typeOf(value, layout), parts,
                                axis);
  }
  return Value();
}

Value LayoutRewriter::throughShared(Value value, const LinearLayout &layout) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t bytes =
      type.getNumElements() * simt::elementBits(type.getElementType()) / 8;
  if (bytes > plan.mostExchanged())
    if (Value joined = byHalves(value, layout))
      return joined;
  Type element = type.getElementType();
  LinearLayout memory = conversionLayout(simt::layoutOf(value), layout,
                                         simt::elementBits(element));
  auto memoryType =
      simt::MemoryType::get(b.getContext(), type.getShape(), element,
                            simt::LayoutAttr::get(b.getContext(), memory));
  Location loc = value.getLoc();
  Value alloc =
      simt::AllocOp::create(b, loc, memoryType, 1, IntegerAttr(), false);
  simt::StoreSharedOp::create(b, loc, value, alloc);
  SmallVector<int64_t> start(type.getRank(), 0);
  return simt::LoadSharedOp::create(b, loc, typeOf(value, layout), alloc,
                                    start);
}

Value LayoutRewriter::toShared(Value operand, const DotPlan &dot, bool lhs) {
  using Form = DotInstruction::Form;
  const LinearLayout &writer = plan.stagedLayout(operand);
  Value value = get(operand, writer);
  auto type = cast<RankedTensorType>(value.getType());
  unsigned bits = simt::elementBits(type.getElementType());
  auto [contiguous, vector] = longestRun(writer, 128 / bits);
  unsigned kAxis = lhs ? 1 : 0;
  LinearLayout memory;
  // ldmatrix moves pairs of bytes: wider elements only along K.
  if (dot.form == Form::WarpgroupMma)
    memory = warpgroupOperandLayout(type.getShape(), contiguous, bits);
  else if (dot.form == Form::Mma && (bits == 16 || contiguous == kAxis))
    memory = matrixLayout(writer, contiguous, vector, bits);
  else
    memory = operandLayout(writer, contiguous, vector, lhs ? dot.lhs : dot.rhs,
                           bits);
  auto memoryType = simt::MemoryType::get(
      b.getContext(), type.getShape(), type.getElementType(),
      simt::LayoutAttr::get(b.getContext(), memory));
  Value &known = shared[{value, memoryType}];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(value);
    known = simt::ToSharedOp::create(b, value.getLoc(), memoryType, value);
  }
  return known;
}

/// All of K at once; waited for behind, until the pipeline finds a better
/// place.
Value LayoutRewriter::warpgroupDot(tile::DotOp op, const DotPlan &dot,
                                   Value lhs, Value rhs) {
  Value accumulator = get(op.getAccumulator(), dot.result);
  Value product = simt::WarpgroupDotOp::create(
      b, op.getLoc(), accumulator.getType(), lhs, rhs, accumulator,
      dot.warps.rows, dot.warps.columns, dot.used);
  return simt::WaitDotsOp::create(b, op.getLoc(), TypeRange{product.getType()},
                                  ValueRange{product}, 0)
      .getResult(0);
}

void LayoutRewriter::rewriteDot(tile::DotOp op) {
  const DotPlan &dot = plan.dotPlan(op);
  Location loc = op.getLoc();
  Value accumulator = get(op.getAccumulator(), dot.result);
  Value lhs, rhs = toShared(op.getRhs(), dot, false);
  if (dot.lhsRegisters)
    lhs = get(op.getLhs(), *dot.lhsRegisters);
  else
    lhs = toShared(op.getLhs(), dot, true);
  if (dot.form == DotInstruction::Form::WarpgroupMma)
    return set(op, dot.result, warpgroupDot(op, dot, lhs, rhs));

  int64_t m = shapeOf(op.getLhs())[0], k = shapeOf(op.getLhs())[1],
          n = shapeOf(op.getRhs())[1];
  Type element = cast<RankedTensorType>(op.getLhs().getType()).getElementType();
  auto fragmentType = [&](ArrayRef<int64_t> shape, const LinearLayout &layout) {
    return simt::withLayout(RankedTensorType::get(shape, element), layout);
  };
  RankedTensorType lhsType = fragmentType({m, dot.step}, dot.lhs);
  RankedTensorType rhsType = fragmentType({dot.step, n}, dot.rhs);
  auto load = [&](int64_t step) -> std::pair<Value, Value> {
    Value left;
    if (dot.lhsRegisters)
      left = k == dot.step
                 ? lhs
                 : Value(simt::SliceOp::create(b, loc, lhsType, lhs,
                                               ArrayRef<int64_t>{0, step}));
    else
      left = simt::LoadSharedOp::create(b, loc, lhsType, lhs,
                                        ArrayRef<int64_t>{0, step});
    Value right = simt::LoadSharedOp::create(b, loc, rhsType, rhs,
                                             ArrayRef<int64_t>{step, 0});
    return {left, right};
  };
  // The next step's fragments are on their way while this one's are multiplied.
  std::pair<Value, Value> next = load(0);
  for (int64_t step = 0; step < k; step += dot.step) {
    auto [left, right] = next;
    if (step + dot.step < k)
      next = load(step + dot.step);
    auto product =
        simt::DotOp::create(b, loc, accumulator.getType(), left, right,
                            accumulator, dot.form == DotInstruction::Form::Mma);
    accumulator = product;
  }
  set(op, dot.result, accumulator);
}

/// The layout in which each warp has its own element along `axis`: warp bits
/// that move along it keep doing so, lanes and registers hold copies.
static std::pair<LinearLayout, int64_t>
partialLayout(const LinearLayout &layout, unsigned axis) {
  SmallVector<Vector> images;
  SmallVector<LinearLayout::Space> outs(layout.outs());
  unsigned bits = 0;
  SmallVector<unsigned>
      position; // of each column: its bit on the new axis, plus 1
  for (const LinearLayout::Space &in : layout.ins())
    for (Vector v : layout.columnsOf(in.dim)) {
      bool moves =
          in.dim == Dim::Warp && layout.coordinate(v, axisDim(axis)) != 0;
      position.push_back(moves ? ++bits : 0);
    }
  outs[axis].bits = bits;
  for (auto [i, v] : llvm::enumerate(layout.allColumns())) {
    Vector image = 0;
    unsigned shift = 0;
    for (auto [j, out] : llvm::enumerate(outs)) {
      if (j == axis)
        image |= position[i] ? Vector(1) << (shift + position[i] - 1) : 0;
      else
        image |= Vector(layout.coordinate(v, out.dim)) << shift;
      shift += out.bits;
    }
    images.push_back(image);
  }
  return {LinearLayout(layout.ins(), outs, images).withoutFreeRegisters(),
          int64_t(1) << bits};
}

void LayoutRewriter::rewriteReduce(tile::ReduceOp op) {
  const LinearLayout &layout = plan.operandLayout(op);
  unsigned axis = op.getAxis();
  Location loc = op.getLoc();
  SmallVector<Value> inputs = getAll(op.getInputs(), layout);
  LinearLayout reduced = layout.withoutAxis(axis);
  auto [partial, count] = partialLayout(layout, axis);
  if (count > 1) {
    // Each warp reduces what it holds; then every thread gets the warps'
    // results.
    SmallVector<int64_t> shape(shapeOf(inputs[0]));
    shape[axis] = count;
    SmallVector<Type> types;
    for (Value input : inputs) {
      Type element = cast<RankedTensorType>(input.getType()).getElementType();
      types.push_back(
          simt::withLayout(RankedTensorType::get(shape, element), partial));
    }
    auto inWarp = simt::WarpReduceOp::create(b, loc, types, inputs, axis);
    IRMapping mapping;
    op.getCombiner().cloneInto(&inWarp.getCombiner(), mapping);
    unsigned rank = shape.size();
    SmallVector<int64_t>
        order; // `reduced` has the axis's bits as its last axis
    for (unsigned i = 0; i < rank; ++i)
      order.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
    LinearLayout gathered =
        (LinearLayout::identity(Dim::Register, axisDim(rank - 1),
                                llvm::Log2_64(count)) *
         reduced)
            .selectAxes(order)
            .withInputOrder({Dim::Register, Dim::Lane, Dim::Warp});
    for (auto [input, result] : llvm::zip(inputs, inWarp.getResults()))
      input = convert(result, gathered);
  }
  SmallVector<Type> types;
  for (Value result : op.getResults())
    types.push_back(typeOf(result, reduced));
  auto reduce = tile::ReduceOp::create(b, loc, types, inputs, axis);
  IRMapping mapping;
  op.getCombiner().cloneInto(&reduce.getCombiner(), mapping);
  for (auto [old, result] : llvm::zip(op.getResults(), reduce.getResults()))
    set(old, reduced, result);
}

void LayoutRewriter::rewriteScan(tile::ScanOp op) {
  const LinearLayout &layout = plan.operandLayout(op);
  LinearLayout outer = layout.withoutAxis(op.getAxis());
  auto scan = tile::ScanOp::create(
      b, op.getLoc(),
      {typeOf(op.getResult(), layout), typeOf(op.getTotal(), outer)},
      get(op.getInput(), layout), get(op.getCarry(), outer), op.getAxis());
  scan->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping mapping;
  op.getCombiner().cloneInto(&scan.getCombiner(), mapping);
  set(op.getResult(), layout, scan.getResult());
  set(op.getTotal(), outer, scan.getTotal());
}

/// A place for each operand and element of a thread.
Value LayoutRewriter::exchangeMemory(const LinearLayout &layout,
                                     unsigned operands) {
  unsigned threadBits = layout.inBits(Dim::Lane) + layout.inBits(Dim::Warp);
  int64_t places = *llvm::max_element(heldElements(layout)) + 1;
  auto ofThreads = LinearLayout::identity(Dim::Offset, axisDim(0), threadBits);
  auto type = simt::MemoryType::get(
      b.getContext(), {int64_t(1) << threadBits}, b.getF32Type(),
      simt::LayoutAttr::get(b.getContext(), ofThreads));
  return simt::AllocOp::create(b, function.getLoc(), type, places * operands,
                               IntegerAttr(), false);
}

void LayoutRewriter::rewriteExchange(tile::ExchangeOp op) {
  LinearLayout layout = plan.layoutsOf(op.getResult(0)).front();
  SmallVector<Value> inputs = getAll(op.getInputs(), layout);
  SmallVector<Type> types(op.getNumResults(), inputs[0].getType());
  auto exchange = simt::ExchangeOp::create(
      b, op.getLoc(), types, exchangeMemory(layout, inputs.size()), inputs,
      op.getParts());
  for (auto [old, result] : llvm::zip(op.getResults(), exchange.getResults()))
    set(old, layout, result);
}

LogicalResult LayoutRewriter::rewriteLoop(scf::ForOp op) {
  SmallVector<Value> inits;
  SmallVector<LinearLayout> layouts(op.getInitArgs().size());
  for (auto [i, init, argument] :
       llvm::enumerate(op.getInitArgs(), op.getRegionIterArgs())) {
    if (isTile(init)) {
      ArrayRef<LinearLayout> known = plan.layoutsOf(argument);
      layouts[i] = known.front();
      inits.push_back(get(init, layouts[i]));
    } else {
      inits.push_back(scalars.lookup(init));
    }
  }
  auto loop = scf::ForOp::create(
      b, op.getLoc(), scalars.lookup(op.getLowerBound()),
      scalars.lookup(op.getUpperBound()), scalars.lookup(op.getStep()), inits);
  OpBuilder::InsertionGuard guard(b);
  Block *body = loop.getBody();
  if (!body->empty())
    body->getTerminator()->erase();
  b.setInsertionPointToEnd(body);
  scalars.map(op.getInductionVar(), loop.getInductionVar());
  auto map = [&](Value old, Value with, unsigned i) {
    if (isTile(old))
      set(old, layouts[i], with);
    else
      scalars.map(old, with);
  };
  for (auto [i, old] : llvm::enumerate(op.getRegionIterArgs()))
    map(old, loop.getRegionIterArg(i), i);
  if (failed(rewriteBlock(*op.getBody())))
    return failure();
  SmallVector<Value> yields;
  for (auto [i, value] :
       llvm::enumerate(op.getBody()->getTerminator()->getOperands()))
    yields.push_back(isTile(value) ? get(value, layouts[i])
                                   : scalars.lookup(value));
  b.setInsertionPointToEnd(body);
  scf::YieldOp::create(b, op.getLoc(), yields);
  for (auto [i, old] : llvm::enumerate(op.getResults()))
    map(old, loop.getResult(i), i);
  return success();
}

LogicalResult LayoutRewriter::rewriteBranch(scf::IfOp op) {
  SmallVector<Type> types;
  SmallVector<LinearLayout> layouts(op.getNumResults());
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    if (isTile(result)) {
      ArrayRef<LinearLayout> known = plan.layoutsOf(result);
      layouts[i] = known.front();
      types.push_back(typeOf(result, layouts[i]));
    } else {
      types.push_back(result.getType());
    }
  }
  auto branch = scf::IfOp::create(b, op.getLoc(), types,
                                  scalars.lookup(op.getCondition()),
                                  !op.getElseRegion().empty());
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip(op->getRegions(), branch->getRegions())) {
    if (from.empty())
      continue;
    if (!to.front().empty())
      to.front().getTerminator()->erase();
    b.setInsertionPointToEnd(&to.front());
    if (failed(rewriteBlock(from.front())))
      return failure();
    SmallVector<Value> yields;
    for (auto [i, value] :
         llvm::enumerate(from.front().getTerminator()->getOperands()))
      yields.push_back(isTile(value) ? get(value, layouts[i])
                                     : scalars.lookup(value));
    b.setInsertionPointToEnd(&to.front());
    scf::YieldOp::create(b, op.getLoc(), yields);
  }
  for (auto [i, old] : llvm::enumerate(op.getResults())) {
    if (isTile(old))
      set(old, layouts[i], branch.getResult(i));
    else
      scalars.map(old, branch.getResult(i));
  }
  return success();
}

/// One operator with a tile as its result, in one layout.
LogicalResult LayoutRewriter::rewriteTile(Operation *op,
                                          const LinearLayout &layout) {
  Value result = op->getResult(0);
  OperationState state(op->getLoc(), op->getName());
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addTypes(typeOf(result, layout));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!dense || !dense.isSplat())
      return op->emitOpError(
          "a tile constant has one value everywhere on a GPU");
    Type type = typeOf(result, layout);
    auto splat = DenseElementsAttr::get(cast<ShapedType>(type),
                                        dense.getSplatValue<Attribute>());
    set(result, layout, arith::ConstantOp::create(b, op->getLoc(), splat));
    return success();
  }
  if (isElementwise(op)) {
    state.addOperands(getAll(op->getOperands(), layout));
  } else if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    state.addOperands(get(broadcast.getInput(),
                          broadcastSource(layout, broadcast.getAxes(),
                                          shapeOf(broadcast.getInput()))));
  } else if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
    SmallVector<int64_t> inverse(transpose.getPermutation().size());
    for (auto [i, p] : llvm::enumerate(transpose.getPermutation()))
      inverse[p] = i;
    state.addOperands(get(transpose.getInput(), layout.selectAxes(inverse)));
  } else if (auto split = dyn_cast<tile::SplitAxisOp>(op)) {
    state.addOperands(get(split.getInput(), joinAxes(layout, split.getAxis())));
  } else if (auto join = dyn_cast<tile::JoinAxesOp>(op)) {
    state.addOperands(get(join.getInput(), layoutApart(join, layout)));
  } else if (auto part = dyn_cast<tile::CellPartOp>(op)) {
    state.addOperands(get(part.getInput(), layoutOfCells(part, layout)));
  } else if (auto swap = dyn_cast<tile::SwapHalvesOp>(op)) {
    state.addOperands(get(swap.getInput(), layout));
  } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
    state.addOperands(scalars.lookup(load.getBuffer()));
    state.addOperands(getSymbols(load.getSymbols(), layout));
  } else if (isa<tile::IndexOp, tile::InBoundsOp>(op)) {
    state.addOperands(getSymbols(op->getOperands(), layout));
  } else if (auto splat = dyn_cast<tile::SplatOp>(op)) {
    state.addOperands(scalars.lookup(splat.getValue()));
  } else if (isa<tile::SplitSumOp>(op)) {
    state.addOperands(getAll(op->getOperands(), layout));
  } else {
    return op->emitOpError("has no lowering to a GPU");
  }
  Operation *created = b.create(state);
  set(result, layout, created->getResult(0));
  return success();
}

void LayoutRewriter::rewriteStore(tile::StoreOp op) {
  const LinearLayout &layout = plan.operandLayout(op);
  OperationState state(op->getLoc(), op->getName());
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addOperands(
      {get(op.getValue(), layout), scalars.lookup(op.getBuffer())});
  state.addOperands(getSymbols(op.getSymbols(), layout));
  b.create(state);
}

LogicalResult LayoutRewriter::rewrite(Operation *op) {
  if (isa<scf::YieldOp>(op))
    return success();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return rewriteLoop(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return rewriteBranch(branch);
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return rewriteStore(store), success();
  bool hasTile = llvm::any_of(op->getResults(), isTile);
  if (!hasTile) {
    if (llvm::any_of(op->getOperands(), isTile))
      return op->emitOpError("has no lowering to a GPU");
    b.clone(*op, scalars);
    return success();
  }
  if (llvm::all_of(op->getResults(),
                   [&](Value v) { return plan.layoutsOf(v).empty(); }))
    return success(); // nothing needs it
  if (auto dot = dyn_cast<tile::DotOp>(op))
    return rewriteDot(dot), success();
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return rewriteReduce(reduce), success();
  if (auto scan = dyn_cast<tile::ScanOp>(op))
    return rewriteScan(scan), success();
  if (auto exchange = dyn_cast<tile::ExchangeOp>(op))
    return rewriteExchange(exchange), success();
  SmallVector<LinearLayout> layouts(plan.layoutsOf(op->getResult(0)));
  for (const LinearLayout &layout : layouts)
    if (failed(rewriteTile(op, layout)))
      return failure();
  return success();
}

} // namespace

LogicalResult charonia::gpu::assignLayouts(func::FuncOp function,
                                           unsigned warps,
                                           const GpuTarget &target,
                                           bool stays) {
  if (!llvm::isPowerOf2_32(warps) || warps > 32)
    return function.emitError()
           << "a GPU kernel has 1, 2, 4, 8, 16 or 32 warps, not " << warps;
  LayoutPlan plan(function, warps, target, stays);
  if (failed(plan.run()))
    return failure();
  // An instruction on floats of 8 bits takes them as they lie, or there is
  // none.
  if (!widenFloat8Dots(function, [&](tile::DotOp op) {
        return plan.dotPlan(op).form != DotInstruction::Form::WarpgroupMma;
      }))
    return LayoutRewriter(function, plan).run();
  LayoutPlan again(function, warps, target, stays);
  if (failed(again.run()))
    return failure();
  return LayoutRewriter(function, again).run();
}

bool charonia::gpu::widenFloat8Dots(
    func::FuncOp function, llvm::function_ref<bool(tile::DotOp)> which) {
  SmallVector<tile::DotOp> dots;
  function.walk([&](tile::DotOp op) {
    if (graph::isFloat8(getElementTypeOrSelf(op.getLhs())) && which(op))
      dots.push_back(op);
  });
  for (tile::DotOp op : dots) {
    OpBuilder b(op);
    for (OpOperand *operand : {&op.getLhsMutable(), &op.getRhsMutable()}) {
      auto type = cast<RankedTensorType>(operand->get().getType());
      operand->set(arith::ExtFOp::create(
          b, op.getLoc(), type.clone(b.getF16Type()), operand->get()));
    }
  }
  return !dots.empty();
}
