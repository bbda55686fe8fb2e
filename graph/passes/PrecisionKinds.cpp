#include "graph/passes/PrecisionKinds.h"
#include "graph/ir/Exact.h"
#include "graph/ir/Float8.h"
#include "graph/passes/Expression.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace charonia::graph {

using Kind = PrecisionKind;

PrecisionKinds::PrecisionKinds(Block &block, FloatType target)
    : block(block), target(target), needs(block, target),
      ranges(needs.getRanges()),
      isOfSteps(cast<func::FuncOp>(block.getParentOp()).isPrivate()) {
  if (isOfSteps)
    for (Value argument : block.getArguments())
      if (isFull(argument) && !needs.wantsFullRange(argument))
        kept.insert(argument);
  // Kinds tell what is read in f32 alone. That it is kept changes no other
  // reader: those that it has take it in full already.
  assign();
  findKept();
  assign();
}

void PrecisionKinds::assign() {
  kinds.clear();
  masks.clear();
  ranges = needs.getRanges();
  for (Value argument : block.getArguments())
    if (isFull(argument)) {
      bool full = needs.wantsFullRange(argument);
      kinds[argument] = full                      ? Kind::Index
                        : kept.contains(argument) ? Kind::Wide
                                                  : Kind::Narrow;
      if (full) {
        ranges.setUnbounded(argument);
        addMask(argument);
      }
    }
  for (auto op : block.getOps<GraphOpInterface>())
    if (isFull(op->getResult(0)))
      set(op, isDistanceOfInputs(op) ? Kind::Narrow : kindOf(op));
}

/// A mask made of an input: its other readers take it as they take any input,
/// so that the rest of the model is no wider for it.
void PrecisionKinds::addMask(Value value) {
  masks.insert(value);
  for (OpOperand &use : value.getUses())
    if (!needs.wantsFullRange(use))
      ranges.setActivation(use);
}

void PrecisionKinds::addActivation(Value value) {
  kinds[value] = Kind::Narrow;
  ranges.setActivation(value);
}

void PrecisionKinds::set(GraphOpInterface op, Kind kind) {
  Value result = op->getResult(0);
  if (kind == Kind::Narrow)
    return addActivation(result);
  kinds[result] = kind;
  if (kind == Kind::Index && needs.leadsToFullRange(op) &&
      llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
        return masks.contains(operand.get()) && !ranges.isActivation(operand);
      }))
    addMask(result);
}

/// Whether an operator gives a distance of places that are inputs, or made of
/// them: an activation, as inputs are to all who don't take them for places.
bool PrecisionKinds::isDistanceOfInputs(GraphOpInterface op) {
  return needs.isDistance(op) && !needs.wantsFullRange(op->getResult(0)) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return masks.contains(operand); });
}

/// Whether the operator reads numbers that the small type lacks, or next to
/// which it would lose what is added to them. It then stays in f32, and so
/// does what reads its results, up to the next contraction.
bool PrecisionKinds::readsOutside(GraphOpInterface op) {
  return op.getRole() != OpRole::Contraction &&
         llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
           return isFull(operand.get()) && ranges.isOutside(operand);
         });
}

/// Whether an operator gives, element by element, what it reads: in another
/// place, or made of it.
static bool handsOn(GraphOpInterface op) {
  return PrecisionNeeds::isOnTheWay(op) || op.getRole() == OpRole::Indexing;
}

/// Whether a reader takes a value in f32 as long as it is there: what gives no
/// activation, as a sum, a scan or a comparison, or computes one in full, what
/// hands it on to such readers alone, and the step behind.
bool PrecisionKinds::takesInFull(OpOperand &use,
                                 const llvm::DenseSet<Value> &taken) {
  auto op = dyn_cast<GraphOpInterface>(use.getOwner());
  if (!op)
    return isOfSteps;
  Value result = op->getResult(0);
  return of(result) != Kind::Narrow || computesInFull(op) ||
         (handsOn(op) && taken.contains(result));
}

/// Finds squares of a norm and the like, and what is made of them, where all
/// that read them take them in f32: they are f32, since they may leave the
/// range of the small type where what they are made of does not, and a kernel
/// may store them.
void PrecisionKinds::findKept() {
  llvm::DenseSet<Value> taken;
  for (Operation &op : llvm::reverse(block))
    for (Value result : op.getResults())
      if (contains(result) && !result.use_empty() &&
          llvm::all_of(result.getUses(),
                       [&](OpOperand &use) { return takesInFull(use, taken); }))
        taken.insert(result);
  for (auto op : block.getOps<GraphOpInterface>())
    if (taken.contains(op->getResult(0)) &&
        (needs.changesScale(op) ||
         (handsOn(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
            return kept.contains(operand);
          }))))
      kept.insert(op->getResult(0));
}

Kind PrecisionKinds::kindOf(GraphOpInterface op) {
  Value result = op->getResult(0);
  if (needs.isFixed(result))
    return Kind::Fixed;
  // Floats of 8 bits are activations, but their products leave the range of
  // others as long as they are not scaled.
  bool ofSmall = llvm::any_of(op->getOperandTypes(), [](Type type) {
    return isFloat8(getElementTypeOrSelf(type));
  });
  bool isProduct = op.getRole() == OpRole::Contraction;
  if ((ofSmall && isProduct) || (!isProduct && needs.isPart(result)))
    return Kind::Wide;
  // The last one is an activation.
  if (needs.isPartialSum(op))
    return Kind::Narrow;
  return ofOperands(op, ofSmall);
}

Kind PrecisionKinds::ofOperands(GraphOpInterface op, bool ofSmall) {
  bool fixed = false, index = false, wide = false, narrow = ofSmall;
  for (OpOperand &operand : op->getOpOperands())
    if (isFull(operand.get())) {
      // What is kept is an activation to all that reads it.
      Kind kind = kept.contains(operand.get()) ? Kind::Narrow : of(operand);
      fixed |= kind == Kind::Fixed;
      index |= kind == Kind::Index;
      wide |= kind == Kind::Wide;
      narrow |= kind == Kind::Narrow;
    }
  Value result = op->getResult(0);
  Kind full = narrow || wide || !index ? Kind::Wide : Kind::Index;
  if (readsOutside(op) || needs.makesTiny(op) || kept.contains(result) ||
      needs.isGuard(result) || needs.leadsToGuard(result))
    return full;
  switch (op.getRole()) {
  case OpRole::View:
    return narrow ? Kind::Narrow : of(op->getOpOperand(0));
  case OpRole::Reduction:
  case OpRole::Ordered:
    return full;
  case OpRole::Source:
  case OpRole::Pointwise:
    return narrow ? Kind::Narrow : wide ? Kind::Wide : Kind::Index;
  case OpRole::Indexing:
    // A table of weights looked up by an input.
    return narrow || (fixed && !index && !wide) ? Kind::Narrow
           : wide                               ? Kind::Wide
                                                : Kind::Index;
  default:
    return Kind::Narrow;
  }
}

bool PrecisionKinds::computesInFull(GraphOpInterface op) {
  return readsInexact(op) || readsWide(op) || needs.isDistance(op) ||
         needs.isPartialSum(op);
}

/// Whether a pointwise operator reads a number of which the small type has no
/// exact form, as 1/6: rounded, it would put all elements off alike.
bool PrecisionKinds::readsInexact(GraphOpInterface op) {
  return op.getRole() == OpRole::Pointwise &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           std::optional<double> number = splatOf(operand);
           return number && isFull(operand) && std::isfinite(*number) &&
                  std::abs(*number) <= largestFinite() &&
                  !isExact(*number, target);
         });
}

/// Whether a pointwise operator of activations reads a statistic or a guard,
/// as a norm that is 1e-12 at least: rounded, it may be a divisor of 0, or
/// infinite.
bool PrecisionKinds::readsWide(GraphOpInterface op) {
  return op.getRole() == OpRole::Pointwise &&
         llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
           return contains(operand.get()) &&
                  (of(operand) == Kind::Wide || needs.isGuard(operand.get()));
         });
}

double PrecisionKinds::largestFinite() const {
  return APFloat::getLargest(target.getFloatSemantics()).convertToDouble();
}

} // namespace charonia::graph
