#include "graph/passes/PrecisionNeeds.h"
#include "graph/ir/Scalar.h"
#include "graph/passes/Expression.h"

using namespace mlir;

namespace charonia::graph {

PrecisionNeeds::PrecisionNeeds(Block &block, FloatType target)
    : target(target),
      // From here on a number that is added to it is lost in rounding.
      ranges(std::ldexp(
          1.0, APFloat::semanticsPrecision(target.getFloatSemantics()))) {
  findFullRange(block);
  findDistances(block);
  findPartialSums(block);
  // What distances are made of.
  findFullRange(block);
  // A softmax feels more than that: here numbers are rounded by 2^-6.
  int digits = APFloat::semanticsPrecision(target.getFloatSemantics());
  for (auto op : block.getOps<GraphOpInterface>())
    if (llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
          return wantsFullRange(operand);
        }))
      ranges.setLimit(op, std::ldexp(1.0, digits - 5));
  findGuards(block);
}

bool PrecisionNeeds::leadsToFullRange(GraphOpInterface op) const {
  return isOnTheWay(op) && fullRange.contains(op->getResult(0));
}

bool PrecisionNeeds::wantsFullRange(OpOperand &use) const {
  auto op = dyn_cast<GraphOpInterface>(use.getOwner());
  return op && (op.readsFullRange(use.getOperandNumber()) ||
                leadsToFullRange(op) || distances.contains(op));
}

/// Finds the values of which a reader, through views and pointwise operators,
/// wants the full range: masks, whose lowest numbers a small type lacks.
void PrecisionNeeds::findFullRange(Block &block) {
  findAbove(block, fullRange,
            [&](OpOperand &use) { return wantsFullRange(use); });
}

/// Adds the values with a use that `leads` accepts, readers first.
void PrecisionNeeds::findAbove(Block &block, llvm::DenseSet<Value> &found,
                               function_ref<bool(OpOperand &)> leads) {
  auto visit = [&](Value value) {
    if (llvm::any_of(value.getUses(), leads))
      found.insert(value);
  };
  for (Operation &op : llvm::reverse(block))
    for (Value result : op.getResults())
      visit(result);
  for (Value argument : block.getArguments())
    visit(argument);
}

/// Finds what is subtracted of places, as a coordinate and its floor,
/// whatever is between: of rounded ones the distance would be another, or
/// none. Places are what becomes integers, and floats made of integers.
void PrecisionNeeds::findDistances(Block &block) {
  llvm::DenseSet<Value> places, converted;
  auto leads = [&](OpOperand &use) {
    auto op = dyn_cast<GraphOpInterface>(use.getOwner());
    if (!op || op->getNumResults() != 1)
      return false;
    Value result = op->getResult(0);
    auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(result));
    return isOnTheWay(op) &&
           (converted.contains(result) || (integer && integer.getWidth() > 1));
  };
  findAbove(block, converted, leads);
  for (Value argument : block.getArguments())
    if (isFull(argument) && converted.contains(argument))
      places.insert(argument);
  for (auto op : block.getOps<GraphOpInterface>()) {
    if (!isMadeOf(op, places))
      continue;
    if (op.mayCancel())
      distances.insert(op);
    places.insert(op->getResult(0));
  }
}

/// Whether floats are computed of places, integers and constants alone.
bool PrecisionNeeds::isMadeOf(GraphOpInterface op,
                              const llvm::DenseSet<Value> &places) {
  Value result = op->getResult(0);
  bool computes = isOnTheWay(op) || op.getRole() == OpRole::Source;
  return computes && isFull(result) && !weightsOnly(result) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return places.contains(operand) || weightsOnly(operand) ||
                  !isa<FloatType>(getElementTypeOrSelf(operand));
         });
}

/// The contraction of which an operator moves elements: all it reads but
/// weights are parts of that one; null: there is no such, or it computes.
Operation *
PrecisionNeeds::movedOf(GraphOpInterface op,
                        const llvm::DenseMap<Value, Operation *> &products) {
  if (op.getRole() != OpRole::View && op.getRole() != OpRole::Indexing)
    return nullptr;
  Operation *product = nullptr;
  for (Value operand : op->getOperands()) {
    if (!isFull(operand) || weightsOnly(operand))
      continue;
    Operation *of = products.lookup(operand);
    if (!of || (product && product != of))
      return nullptr;
    product = of;
  }
  return product;
}

/// Finds the sums and differences of parts of one product, and what of it
/// leads to them: they are sums of more of its terms, which are rounded once,
/// as those of a contraction are. Parts may leave the range of a small type,
/// and cancel.
void PrecisionNeeds::findPartialSums(Block &block) {
  llvm::DenseMap<Value, Operation *> products;
  for (auto op : block.getOps<GraphOpInterface>()) {
    if (op->getNumResults() != 1 || !isFull(op->getResult(0)) ||
        weightsOnly(op->getResult(0)))
      continue;
    Operation *product = op.getRole() == OpRole::Contraction
                             ? op.getOperation()
                             : movedOf(op, products);
    if (op.getRole() == OpRole::Pointwise && op.mayCancel() &&
        op->getNumOperands() == 2) {
      product = products.lookup(op->getOperand(0));
      if (product != products.lookup(op->getOperand(1)))
        product = nullptr;
      if (product)
        partialSums.insert(op);
    }
    if (product)
      products[op->getResult(0)] = product;
  }
  findAbove(block, parts, [&](OpOperand &use) {
    auto op = dyn_cast<GraphOpInterface>(use.getOwner());
    return op && products.contains(use.get()) &&
           (partialSums.contains(op) || (op.getRole() != OpRole::Contraction &&
                                         products.contains(op->getResult(0)) &&
                                         parts.contains(op->getResult(0))));
  });
}

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

/// Finds what tiny numbers keep from being 0, as x² + 1e-12 and max(|x|,
/// 1e-12): the small type has no such numbers, or ones of few digits, and
/// nothing can be divided by the 0 that it has instead. What such a value is
/// where activations are 0 says whether an operator that reads it gives
/// another one: a root of x² + 1e-12 is 1e-6 there, of x² + 1e-5 it is no
/// tiny number, and a quotient by it is 0.
void PrecisionNeeds::findGuards(Block &block) {
  for (auto op : block.getOps<GraphOpInterface>()) {
    Value result = op->getResult(0);
    if (!isFull(result) || weightsOnly(result))
      continue;
    if (std::optional<RealRange> range = resultAtZero(op);
        range && isTiny(*range))
      guards[result] = *range;
  }
  findWhatLeadsToGuards(block);
}

/// The numbers that an operator on tiny ones gives where activations are 0;
/// nothing where it reads none, or gives rows anew.
std::optional<RealRange> PrecisionNeeds::resultAtZero(GraphOpInterface op) {
  if (op.getRole() == OpRole::RowNormalization)
    return std::nullopt;
  std::optional<RealRange> tiny;
  SmallVector<RealRange> atZero;
  bool isOfFixed = true;
  for (Value operand : op->getOperands()) {
    RealRange range = rangeAtZero(operand);
    atZero.push_back(range);
    if (isFull(operand) && isTiny(range))
      tiny = tiny ? scalar::hull(*tiny, range) : range;
    else
      isOfFixed &= !isFull(operand) || weightsOnly(operand);
  }
  if (!tiny)
    return std::nullopt;
  // Products with activations are 0.
  if (op.getRole() == OpRole::Contraction)
    return isOfFixed ? tiny : std::nullopt;
  std::optional<RealRange> range = op.getRange(atZero);
  // What combines elements of what it reads.
  return range || op.getRole() == OpRole::Pointwise ? range : tiny;
}

/// A square that is lost ahead of its sum with 1e-12 were as bad. Not so what
/// others read too: the model would be stored in f32.
void PrecisionNeeds::findWhatLeadsToGuards(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    auto producer = dyn_cast<GraphOpInterface>(op);
    if (!producer || !isOnTheWay(producer) || op.use_empty())
      continue;
    Value result = op.getResult(0);
    auto allReaders = [&](function_ref<bool(GraphOpInterface)> accepts) {
      return llvm::all_of(op.getUsers(), [&](Operation *user) {
        auto reader = dyn_cast<GraphOpInterface>(user);
        return reader && isOnTheWay(reader) && accepts(reader);
      });
    };
    if (allReaders([&](GraphOpInterface reader) {
          Value read = reader->getResult(0);
          return guards.contains(read) || guarded.contains(read);
        }))
      guarded.insert(result);
    if (allReaders([&](GraphOpInterface reader) {
          return reader.mayCancel() || (reader.getRole() == OpRole::View &&
                                        summed.contains(reader->getResult(0)));
        }))
      summed.insert(result);
  }
  // From the first one on that may lose something: those ahead of it are as
  // exact as what they read, and longer where a kernel stores them.
  for (auto op : block.getOps<GraphOpInterface>())
    if (!changesScale(op) &&
        llvm::none_of(op->getOperands(),
                      [&](Value operand) { return guarded.contains(operand); }))
      for (Value result : op->getResults())
        guarded.erase(result);
}

bool PrecisionNeeds::changesScale(GraphOpInterface op) {
  if (op.getRole() != OpRole::Pointwise || op.mayCancel())
    return false;
  const llvm::fltSemantics &semantics = target.getFloatSemantics();
  double usual = std::ldexp(1.0, APFloat::semanticsPrecision(semantics));
  unsigned activations = 0;
  SmallVector<RealRange> ranges;
  for (Value operand : op->getOperands()) {
    bool isActivation = isFull(operand) && !weightsOnly(operand);
    activations += isActivation;
    std::optional<RealRange> known;
    if (isFull(operand) && !isActivation)
      known = this->ranges.boundsOf(operand);
    ranges.push_back(known.value_or(RealRange{-usual, usual}));
  }
  if (activations != 1 || op.isExpensive())
    return activations > 0;
  // A quotient by it, or a large multiple.
  std::optional<RealRange> range = op.getRange(ranges);
  double largest = APFloat::getLargest(semantics).convertToDouble();
  return !range || range->low < -largest || range->high > largest;
}

/// Whether there are numbers, as far as the ends say, that the small type
/// rounds to 0 or to few digits.
bool PrecisionNeeds::isTiny(RealRange range) const {
  auto isLost = [&](double number) {
    return number != 0 && std::abs(number) < smallestNormal();
  };
  return isLost(range.low) || isLost(range.high);
}
/// The same of constants and weights, of one sign: those of both signs bound
/// nothing, they are biases that were not trained.
bool PrecisionNeeds::isTinyConstant(Value value) {
  if (!isFull(value) || !weightsOnly(value))
    return false;
  std::optional<RealRange> range = ranges.boundsOf(value);
  return range && isTiny(*range) && (range->low >= 0 || range->high <= 0);
}
bool PrecisionNeeds::makesTiny(GraphOpInterface op) {
  return op.getRole() == OpRole::Pointwise &&
         !summed.contains(op->getResult(0)) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return isTinyConstant(operand) &&
                  ranges.isBelow(operand, smallestNormal());
         });
}
/// The numbers of a value where activations are 0.
RealRange PrecisionNeeds::rangeAtZero(Value value) {
  if (auto it = guards.find(value); it != guards.end())
    return it->second;
  if (isTinyConstant(value))
    return *ranges.boundsOf(value);
  double number = splatOf(value).value_or(0);
  return {number, number};
}

/// Below it numbers have fewer digits, and then none; 0 where the type has as
/// small ones as f32.
double PrecisionNeeds::smallestNormal() const {
  const llvm::fltSemantics &semantics = target.getFloatSemantics();
  if (APFloat::semanticsMinExponent(semantics) <=
      APFloat::semanticsMinExponent(APFloat::IEEEsingle()))
    return 0;
  return APFloat::getSmallestNormalized(semantics).convertToDouble();
}

} // namespace charonia::graph
