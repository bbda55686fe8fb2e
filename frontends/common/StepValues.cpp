#include "frontends/common/StepValues.h"
#include "llvm/ADT/SetVector.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::Value;

/// Whether a value is computed of nothing but what `isEnd` takes: of others, of
/// which it says nothing, their operands are looked at.
static bool isComputedOf(Value value,
                         llvm::function_ref<std::optional<bool>(Value)> isEnd) {
  // Of what is a size, or done to a weight, there is little.
  constexpr size_t most = 1024;
  llvm::SmallSetVector<Value, 16> todo;
  todo.insert(value);
  for (size_t i = 0; i < todo.size() && i < most; ++i) {
    std::optional<bool> end = isEnd(todo[i]);
    mlir::Operation *op = todo[i].getDefiningOp();
    if (!end.value_or(op && op->getNumOperands() > 0))
      return false;
    if (!end)
      todo.insert_range(op->getOperands());
  }
  return todo.size() <= most;
}

static bool isSource(mlir::Operation *op) {
  auto asked = llvm::dyn_cast_or_null<graph::GraphOpInterface>(op);
  return asked && asked.getRole() == graph::OpRole::Source;
}

bool charonia::frontend::followsFrom(Value value, llvm::ArrayRef<Value> carried,
                                     const llvm::BitVector &known, Emitter &e) {
  // What is longer is not evaluated.
  constexpr int64_t mostElements = 1024;
  return isComputedOf(value, [&](Value v) -> std::optional<bool> {
    auto type = llvm::cast<mlir::RankedTensorType>(v.getType());
    if (!type.hasStaticShape() || type.getNumElements() > mostElements)
      return false;
    if (const auto *state = llvm::find(carried, v); state != carried.end())
      return known.test(state - carried.begin());
    if (e.evaluate(v).isComplete() || e.constantOf(v))
      return true;
    if (isSource(v.getDefiningOp()) || v.getDefiningOp<graph::CarriedOp>())
      return false;
    return std::nullopt;
  });
}

llvm::BitVector
charonia::frontend::statesThatFollow(llvm::ArrayRef<Value> firsts,
                                     llvm::ArrayRef<Value> carried,
                                     llvm::ArrayRef<Value> next, Emitter &e) {
  llvm::BitVector known(carried.size());
  for (size_t i = 0; i < carried.size(); ++i)
    known[i] = carried[i] && next[i] && followsFrom(firsts[i], {}, {}, e);
  // One that follows from another which does not, does not either.
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i : known.set_bits())
      if (!followsFrom(next[i], carried, known, e)) {
        known.reset(i);
        changed = true;
      }
  }
  return known;
}

/// Whether a value is made of what the model stores, by something that differs
/// from step to step: a part of a tensor, as it is or as it is computed with
/// others.
static bool isWeightOfStep(Value value, llvm::ArrayRef<Value> carried,
                           const llvm::BitVector &follow,
                           const Symbols &symbols) {
  bool isStored = false, differs = false;
  auto isEnd = [&](Value v) -> std::optional<bool> {
    mlir::Operation *op = v.getDefiningOp();
    if (const auto *state = llvm::find(carried, v); state != carried.end()) {
      differs = true;
      return follow.test(state - carried.begin());
    }
    if (!op || llvm::isa<graph::CarriedOp>(op))
      return false;
    for (mlir::NamedAttribute attribute : op->getAttrs())
      if (auto map = llvm::dyn_cast<mlir::AffineMapAttr>(attribute.getValue()))
        differs |= llvm::any_of(
            map.getValue().getResults(),
            [&](mlir::AffineExpr expr) { return symbols.namesCounter(expr); });
    isStored |= llvm::isa<graph::WeightOp, graph::ConstantOp>(op);
    return isSource(op) || op->getNumOperands() == 0 ? std::optional(true)
                                                     : std::nullopt;
  };
  return isComputedOf(value, isEnd) && isStored && differs;
}

static llvm::iterator_range<mlir::Block::iterator>
operatorsBehind(mlir::Operation *last, mlir::Block &block) {
  return {last ? std::next(last->getIterator()) : block.begin(), block.end()};
}

bool charonia::frontend::hasWeightsOfSteps(mlir::Operation *last,
                                           mlir::Block &block,
                                           llvm::ArrayRef<Value> carried,
                                           const llvm::BitVector &follow,
                                           Emitter &e) {
  return llvm::any_of(operatorsBehind(last, block), [&](mlir::Operation &op) {
    auto asked = llvm::dyn_cast<graph::GraphOpInterface>(op);
    return asked && asked.getRole() == graph::OpRole::Contraction &&
           llvm::any_of(op.getOperands(), [&](Value operand) {
             return isWeightOfStep(operand, carried, follow, e.getSymbols());
           });
  });
}

bool charonia::frontend::hasPositionsOfStates(mlir::Operation *last,
                                              mlir::Block &block,
                                              llvm::ArrayRef<Value> carried,
                                              const llvm::BitVector &follow,
                                              Emitter &e) {
  auto isOfState = [&](Value position) {
    // What follows without any state is of the step's number.
    llvm::BitVector none(carried.size());
    return elementOf(position).isInteger() &&
           followsFrom(position, carried, follow, e) &&
           !followsFrom(position, carried, none, e);
  };
  return llvm::any_of(operatorsBehind(last, block), [&](mlir::Operation &op) {
    auto asked = llvm::dyn_cast<graph::GraphOpInterface>(op);
    return asked && asked.getRole() == graph::OpRole::Indexing &&
           llvm::any_of(llvm::drop_begin(op.getOperands()), isOfState);
  });
}
