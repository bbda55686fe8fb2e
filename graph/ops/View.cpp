#include "graph/ir/Constraints.h"
#include "graph/ops/Common.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace charonia::graph;

static bool sameElements(Value a, Value b) {
  return getElementTypeOrSelf(a) == getElementTypeOrSelf(b);
}

// reshape

LogicalResult ReshapeOp::verify() {
  if (!sameElements(getInput(), getResult()))
    return emitOpError("must keep the element type");
  if (!sizesAgree(numElements(getShape(getInput()), getContext()),
                  numElements(getShape(getResult()), getContext()),
                  "keeps the number of elements"))
    return emitOpError("cannot view ") << shapeToString(getInput().getType())
                                       << " as " << shapeToString(getType());
  return success();
}

AffineMap ReshapeOp::getOperandMap(unsigned) {
  return reshapeMap(getShape(getInput()), getShape(getResult()), getContext());
}

SymbolicTensor ReshapeOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  return operands[0];
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  // reshape(reshape(x)) = reshape(x)
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

// transpose

CHARONIA_INFER(TransposeOp) {
  TransposeOp::Adaptor op(operands, attributes, properties, regions);
  if (!hasSymbolicShape(operands[0].getType()))
    return emitOptionalError(location, "the operand's shape is not known");
  Exprs shape = getShape(operands[0]), result;
  if (op.getPermutation().size() != shape.size() ||
      !isPermutationVector(op.getPermutation()))
    return emitOptionalError(location, "permutation does not fit ",
                             shapeToString(operands[0].getType()));
  for (int64_t p : op.getPermutation())
    result.push_back(shape[p]);
  types.push_back(makeType(result, getElementTypeOrSelf(operands[0])));
  return success();
}

LogicalResult TransposeOp::verify() {
  if (getPermutation().size() != getShape(getInput()).size() ||
      !isPermutationVector(getPermutation()))
    return emitOpError("permutation does not fit ")
           << shapeToString(getInput().getType());
  return success();
}

AffineMap TransposeOp::getOperandMap(unsigned) {
  Exprs coordinates(getPermutation().size());
  for (auto [i, p] : llvm::enumerate(getPermutation()))
    coordinates[p] = getAffineDimExpr(i, getContext());
  return AffineMap::get(coordinates.size(), 0, coordinates, getContext());
}

SymbolicTensor
TransposeOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  return pick(operands[0], getInput().getType(), getType(), getOperandMap(0));
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (isIdentityPermutation(getPermutation()) &&
      getInput().getType() == getType())
    return getInput();
  // transpose(transpose(x, p), q) = transpose(x, p o q)
  if (auto inner = getInput().getDefiningOp<TransposeOp>()) {
    setPermutation(applyPermutation(inner.getPermutation(), getPermutation()));
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

// slice

/// Whether an open size may be 0, as one that is defined may.
static bool mayBeZero(AffineExpr size, Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  SmallVector<Symbol> symbols =
      module ? getSymbols(module) : SmallVector<Symbol>();
  return !symbols.empty() &&
         boundsOf(size, SizeFacts(symbols, {}).ranges()).low < 1;
}

LogicalResult SliceOp::verify() {
  Exprs from = getShape(getInput()), to = getShape(getResult());
  if (!sameElements(getInput(), getResult()))
    return emitOpError("must keep the element type");
  AffineMap starts = getStarts();
  if (to.size() != from.size() || starts.getNumDims() != 0 ||
      starts.getNumResults() != from.size() || getSteps().size() != from.size())
    return emitOpError("needs a start and a step for each dimension");
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t step = getSteps()[i];
    if (step == 0)
      return emitOpError("step of dimension ") << i << " is 0";
    if (constantOf(to[i]) == 0)
      continue;
    AffineExpr first = starts.getResult(i),
               last = simplify(first + (to[i] - 1) * step);
    for (AffineExpr at : {first, last})
      if ((isNonNegative(-at - 1) || isNonNegative(at - from[i])) &&
          !mayBeZero(to[i], *this))
        return emitOpError("reaches outside of dimension ")
               << i << " of " << shapeToString(getInput().getType());
  }
  return success();
}

AffineMap SliceOp::getOperandMap(unsigned) {
  AffineMap starts = getStarts();
  Exprs coordinates;
  for (auto [i, step] : llvm::enumerate(getSteps()))
    coordinates.push_back(starts.getResult(i) +
                          getAffineDimExpr(i, getContext()) * step);
  return AffineMap::get(coordinates.size(), starts.getNumSymbols(), coordinates,
                        getContext());
}

SymbolicTensor SliceOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  return pick(operands[0], getInput().getType(), getType(), getOperandMap(0));
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  AffineMap starts = getStarts();
  bool identity =
      getInput().getType() == getType() &&
      llvm::all_of(getSteps(), [](int64_t s) { return s == 1; }) &&
      llvm::all_of(starts.getResults(), [](AffineExpr e) { return e == 0; });
  if (identity)
    return getInput();
  // slice(slice(x)): starts and steps compose.
  if (auto inner = getInput().getDefiningOp<SliceOp>()) {
    AffineMap first = inner.getStarts();
    Exprs joined;
    SmallVector<int64_t> steps;
    for (auto [i, step] : llvm::enumerate(getSteps())) {
      int64_t innerStep = inner.getSteps()[i], product;
      if (llvm::MulOverflow(step, innerStep, product))
        return {};
      joined.push_back(
          simplify(first.getResult(i) + starts.getResult(i) * innerStep));
      steps.push_back(product);
    }
    setStarts(AffineMap::get(
        0, std::max(first.getNumSymbols(), starts.getNumSymbols()), joined,
        getContext()));
    setSteps(steps);
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

// broadcast

LogicalResult BroadcastOp::verify() {
  Exprs from = getShape(getInput()), to = getShape(getResult());
  if (!sameElements(getInput(), getResult()))
    return emitOpError("must keep the element type");
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    AffineExpr target = to[to.size() - from.size() + i];
    fits = constantOf(from[i]) == 1 ||
           sizesAgree(from[i], target, "broadcasts one to the other");
  }
  if (!fits)
    return emitOpError("cannot broadcast ")
           << shapeToString(getInput().getType()) << " to "
           << shapeToString(getType());
  return success();
}

AffineMap BroadcastOp::getOperandMap(unsigned) {
  return broadcastMap(getInput(), getResult());
}

SymbolicTensor
BroadcastOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  return pick(operands[0], getInput().getType(), getType(), getOperandMap(0));
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<BroadcastOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

/// Pointwise operators broadcast by themselves: they read the smaller tensor,
/// and where that makes their result smaller, the broadcast moves behind them.
static bool passBroadcastInto(Operation *user, PatternRewriter &rewriter) {
  auto pointwise = dyn_cast<GraphOpInterface>(user);
  auto infer = dyn_cast<InferTypeOpInterface>(user);
  if (!pointwise || !infer || pointwise.getRole() != OpRole::Pointwise)
    return false;
  SmallVector<Value> operands(user->getOperands());
  for (Value &operand : operands)
    if (auto broadcast = operand.getDefiningOp<BroadcastOp>())
      operand = broadcast.getInput();
  SmallVector<Type> types;
  if (failed(infer.inferReturnTypes(
          user->getContext(), std::nullopt, operands, user->getAttrDictionary(),
          user->getPropertiesStorage(), user->getRegions(), types)))
    return false;
  Type before = user->getResult(0).getType();
  if (types[0] == before) {
    rewriter.modifyOpInPlace(user, [&] { user->setOperands(operands); });
    return true;
  }
  rewriter.setInsertionPoint(user);
  Operation *smaller = rewriter.clone(*user);
  rewriter.modifyOpInPlace(smaller, [&] {
    smaller->setOperands(operands);
    smaller->getResult(0).setType(cast<RankedTensorType>(types[0]));
  });
  rewriter.replaceOpWithNewOp<BroadcastOp>(user, before, smaller->getResult(0));
  return true;
}

/// All users at once: one that was left would wait for the next iteration, of
/// which there are ten.
static LogicalResult passBroadcast(BroadcastOp op, PatternRewriter &rewriter) {
  bool changed = false;
  // One that reads it twice is listed twice.
  SetVector<Operation *> users(op->user_begin(), op->user_end());
  for (Operation *user : users)
    changed |= passBroadcastInto(user, rewriter);
  return success(changed);
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *) {
  patterns.add(passBroadcast);
}
