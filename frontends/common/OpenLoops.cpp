#include "frontends/common/OpenLoops.h"
#include "frontends/common/SizeCases.h"
#include "frontends/common/Steps.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::Value;

namespace {

/// For how many steps in a row a condition holds.
struct Duration {
  /// Null: for ever, as far as that is told.
  AffineExpr most;
  /// Whether it holds as long as that, and not only no longer.
  bool isExact = true;
};

/// Reads a condition that was built for step `counter`.
class DurationFinder {
public:
  DurationFinder(AffineExpr counter, Emitter &e)
      : counter(counter), e(e), symbols(e.getSymbols()) {}

  Duration of(Value condition, int depth = 0) {
    constexpr int maxDepth = 16;
    if (!condition || depth > maxDepth)
      return {{}, false};
    if (auto known = knownInteger(condition, e))
      return {*known ? AffineExpr() : e.number(0), true};
    mlir::Operation *op = condition.getDefiningOp();
    if (llvm::isa_and_present<graph::ReshapeOp, graph::BroadcastOp>(op))
      return of(op->getOperand(0), depth + 1);
    bool isBoth = llvm::isa_and_present<graph::AndOp>(op) ||
                  (llvm::isa_and_present<graph::SelectOp>(op) &&
                   knownInteger(op->getOperand(2), e) == 0);
    if (isBoth) {
      Duration a = of(op->getOperand(0), depth + 1),
               b = of(op->getOperand(1), depth + 1);
      return {smaller(a.most, b.most), a.isExact && b.isExact};
    }
    if (auto compare = llvm::dyn_cast_or_null<graph::CompareOp>(op))
      return of(compare);
    return {{}, false};
  }

  /// Null stands for no limit.
  AffineExpr smaller(AffineExpr a, AffineExpr b) {
    return !a ? b : !b ? a : largerOf(symbols, a, b, false);
  }

private:
  Duration of(graph::CompareOp compare) {
    AffineExpr less = sizeOf(compare.getLhs()), more = sizeOf(compare.getRhs());
    using graph::Predicate;
    Predicate predicate = compare.getPredicate();
    if (predicate == Predicate::gt || predicate == Predicate::ge)
      std::swap(less, more);
    bool isOrdered = predicate != Predicate::eq && predicate != Predicate::ne;
    if (!less || !more || !isOrdered)
      return {{}, false};
    bool isStrict = predicate == Predicate::lt || predicate == Predicate::gt;
    // It holds where `left` > 0.
    AffineExpr left = graph::simplify(more - less + (isStrict ? 0 : 1)),
               first = at(left, 0);
    auto slope = graph::constantOf(graph::simplify(at(left, 1) - first));
    if (!slope || graph::simplify(left - counter * *slope - first) != 0)
      return {{}, false};
    if (*slope >= 0)
      return {{}, symbols.isAtLeast(first, e.number(1))};
    AffineExpr steps = graph::simplify(first.ceilDiv(-*slope));
    return {largerOf(symbols, steps, e.number(0), true), true};
  }

  AffineExpr sizeOf(Value value) {
    graph::SymbolicTensor known = e.evaluate(value);
    if (!known.isComplete())
      known = e.evaluateSizes(value);
    return known.isComplete() && known.elements->size() == 1
               ? known.elements->front()
               : AffineExpr();
  }
  AffineExpr at(AffineExpr expr, int64_t step) {
    return graph::simplify(expr.replace(counter, e.number(step)));
  }

  AffineExpr counter;
  Emitter &e;
  Symbols &symbols;
};
} // namespace

LoopBuilder::LoopBuilder(const OpenLoop &loop, Emitter &e)
    : loop(loop), e(e), symbols(e.getSymbols()), counter(symbols.addCounter()),
      inductions(loop.states.size()), carried(loop.states.size()) {
  if (!counter || e.failed())
    return;
  bool wasTrial = symbols.setTrial(true);
  if (loop.most)
    symbols.setCount(counter, loop.most);
  Values opaque;
  for (auto [i, init] : llvm::enumerate(loop.states))
    opaque.push_back(isKept(i) ? init : placeholder(init));
  findCandidates();
  constexpr int mostLooks = 8;
  for (int look = 0; look < mostLooks && !lookOnce(opaque); ++look)
    ;
  symbols.setTrial(wasTrial);
}

LoopBuilder::~LoopBuilder() {
  if (counter && !steps)
    symbols.giveBack(counter);
}

bool LoopBuilder::canRepeat() const {
  auto known = count ? graph::constantOf(count) : std::nullopt;
  return known ? isExact && *known > maxSteps && *known <= maxRepeatedSteps
               : bool(count);
}

/// A state that follows from the step's number; null for others.
Value LoopBuilder::stateAt(size_t i, AffineExpr step) {
  if (!inductions[i])
    return {};
  auto type = llvm::cast<mlir::RankedTensorType>(loop.states[i].getType());
  return e.sizes({inductions[i]->at(step)}, type.getShape(),
                 type.getElementType());
}

/// A value of which nothing is known.
Value LoopBuilder::placeholder(Value init) {
  if (!init)
    return {};
  return e.opTo<graph::CarriedOp>(
      llvm::cast<mlir::RankedTensorType>(init.getType()), {init},
      {e.map("counter", counter), e.attr("index", int64_t(0))});
}

/// All states of one integer are taken to count by one, until a step says
/// otherwise.
void LoopBuilder::findCandidates() {
  for (auto [i, init] : llvm::enumerate(loop.states)) {
    if (!init || isKept(i) ||
        !(elementOf(init).isInteger(32) || elementOf(init).isInteger(64)) ||
        graph::constantOf(
            graph::numElements(graph::getShape(init), e.getContext())) != 1)
      continue;
    graph::SymbolicTensor known = e.evaluate(init);
    if (known.isComplete())
      inductions[i] = Induction{known.elements->front()};
  }
}

/// Builds a step to look at. Whether states are as they were taken to be; then
/// the number of steps is found, if it can be.
bool LoopBuilder::lookOnce(const Values &opaque) {
  OpenLoop::Wanted wanted(loop.states.size());
  Values states = opaque;
  for (size_t i = 0; i < states.size(); ++i)
    if (inductions[i]) {
      wanted.set(i);
      states[i] = stateAt(i, counter);
    }
  auto step = loop.take(counter, states, &wanted);
  bool settled = true;
  for (unsigned i : wanted.set_bits()) {
    auto stride = step ? strideOf(i, step->states[i]) : std::nullopt;
    settled &= stride == inductions[i]->stride;
    if (!stride)
      inductions[i].reset();
    else
      inductions[i]->stride = *stride;
  }
  if (settled && step) {
    // What the condition itself needs of sizes, as that none wraps, is needed.
    bool wasTrial = symbols.setTrial(false);
    readCount(*step);
    symbols.setTrial(wasTrial);
  }
  // A condition that cannot be looked at is as one that data decides.
  if (settled && !step) {
    count = loop.most;
    isExact = false;
  }
  return settled;
}

std::optional<int64_t> LoopBuilder::strideOf(size_t i, Value next) {
  if (!next || next.getType() != loop.states[i].getType())
    return std::nullopt;
  graph::SymbolicTensor known = e.evaluate(next);
  if (!known.isComplete())
    return std::nullopt;
  auto stride = graph::constantOf(
      graph::simplify(known.elements->front() - inductions[i]->at(counter)));
  constexpr int64_t farthest = int64_t(1) << 31;
  return stride && std::abs(*stride) < farthest ? stride : std::nullopt;
}

void LoopBuilder::readCount(const OpenLoop::Step &step) {
  DurationFinder finder(counter, e);
  Duration duration = step.condition ? finder.of(step.condition) : Duration();
  AffineExpr most = duration.most;
  if (most && !loop.testsBefore)
    most = graph::simplify(most + 1);
  isExact = duration.isExact;
  count = finder.smaller(most, loop.most);
}

std::optional<LoopResults> LoopBuilder::build() {
  steps.emplace(counter, count, e);
  Values states(loop.states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    if (inductions[i])
      states[i] = stateAt(i, counter);
    else if (isKept(i))
      states[i] = loop.states[i];
    else if (loop.states[i])
      states[i] = carried[i] = carry(i, loop.states[i]);
  }
  if (e.failed())
    return std::nullopt;
  auto step = loop.take(counter, states, nullptr);
  if (!step || e.failed())
    return std::nullopt;
  return finish(*step);
}

Value LoopBuilder::carry(std::optional<size_t> state, Value init) {
  order.push_back(state);
  return steps->carry(init);
}

/// States stay what they were when data ended the loop.
bool LoopBuilder::keepEnded(OpenLoop::Step &step) {
  if (!step.outputs.empty()) {
    e.fail("data may end the loop before its last step, so that the number of "
           "outputs of steps is not known",
           loop.dataRemedy);
    return false;
  }
  mlir::Type i1 = e.getBuilder().getI1Type();
  if (!step.condition || elementOf(step.condition) != i1) {
    e.fail("the condition is no truth value");
    return false;
  }
  Value before = carry(std::nullopt, e.scalar(int64_t(1), i1));
  goesOn = e.op<graph::AndOp>({before, e.reshape(step.condition, {})});
  // A test before a step leaves that step out, one behind it the next.
  Value taken = loop.testsBefore ? goesOn : before;
  for (size_t i = 0; i < step.states.size(); ++i) {
    if (isKept(i) || !step.states[i])
      continue;
    if (!carried[i])
      carried[i] = carry(i, loop.states[i]);
    step.states[i] = keepState(taken, step.states[i], carried[i], e);
  }
  return bool(goesOn) && !e.failed();
}

bool LoopBuilder::checkStates(const OpenLoop::Step &step) {
  bool fits = step.states.size() == loop.states.size();
  for (size_t i = 0; fits && i < step.states.size(); ++i)
    fits = isKept(i) ? step.states[i] == loop.states[i]
                     : step.states[i] || !loop.states[i];
  if (!fits)
    e.fail("a step does not give the states that it finds");
  return fits;
}

std::optional<LoopResults> LoopBuilder::finish(OpenLoop::Step &step) {
  if (!checkStates(step))
    return std::nullopt;
  // What steps set and the first one does not find.
  for (auto [i, next] : llvm::enumerate(step.states))
    if (next && !loop.states[i])
      carried[i] = carry(i, e.broadcast(e.scalar(int64_t(0), elementOf(next)),
                                        graph::getShape(next)));
  if (!isExact && !keepEnded(step))
    return std::nullopt;
  Values next;
  for (std::optional<size_t> state : order)
    next.push_back(state ? step.states[*state] : goesOn);
  llvm::SmallVector<AffineExpr> places(step.outputs.size(), counter);
  Values results = steps->finish(next, step.outputs, places);
  if (e.failed())
    return std::nullopt;
  LoopResults left;
  left.count = symbols.resolve(count);
  for (size_t i = 0; i < loop.states.size(); ++i)
    left.states.push_back(isKept(i) ? loop.states[i] : stateAt(i, left.count));
  for (auto [state, result] : llvm::zip(order, results))
    if (state)
      left.states[*state] = result;
  left.outputs.append(results.begin() + order.size(), results.end());
  return left;
}
