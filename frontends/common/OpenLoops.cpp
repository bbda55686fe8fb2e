#include "frontends/common/OpenLoops.h"
#include "frontends/common/SizeCases.h"
#include "frontends/common/StepTables.h"
#include "frontends/common/StepValues.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::Value;

/// Whether a truth value is seen to be true.
static bool isSeenTrue(Value condition, Emitter &e) {
  if (knownInteger(condition, e) == 1)
    return true;
  graph::SymbolicTensor known = e.evaluateSizes(condition);
  return known.isComplete() && known.elements->size() == 1 &&
         e.getSymbols().isAtLeast(known.elements->front(), e.number(1));
}

bool charonia::frontend::mayRepeat(Value condition, Emitter &e) {
  constexpr size_t most = 64;
  if (!knownInteger(condition, e))
    return true;
  llvm::SmallVector<Value> todo = {condition};
  bool compares = false;
  for (size_t i = 0; i < todo.size() && todo.size() < most; ++i) {
    mlir::Operation *op = todo[i].getDefiningOp();
    bool isMade =
        llvm::isa_and_present<graph::CompareOp, graph::AndOp, graph::OrOp,
                              graph::NotOp, graph::SelectOp, graph::ReshapeOp,
                              graph::BroadcastOp, graph::CastOp>(op);
    compares |= llvm::isa_and_present<graph::CompareOp>(op);
    if (!isMade && !knownInteger(todo[i], e))
      return true;
    if (!isMade)
      continue;
    llvm::append_range(todo, op->getOperands());
    if (!llvm::isa<graph::CompareOp>(op))
      continue;
    auto a = knownInteger(op->getOperand(0), e),
         b = knownInteger(op->getOperand(1), e);
    if (!a || !b || std::abs(double(*a) - double(*b)) > mostWrittenOut)
      return true;
  }
  // What a comparison has chosen already shows none, as `i < n and not done`.
  return todo.size() >= most || (todo.size() > 1 && !compares);
}

LoopBuilder::LoopBuilder(const OpenLoop &loop, Emitter &e)
    : loop(loop), e(e), symbols(e.getSymbols()), symbol(symbols.addCounter()),
      inductions(loop.states.size()), carried(loop.states.size()),
      follow(loop.states.size()), tables(loop.states.size()) {
  if (!symbol || e.failed())
    return;
  number = graph::simplify(symbol - 1);
  bool wasTrial = symbols.setTrial(true);
  if (loop.most)
    symbols.setCount(symbol, loop.most);
  Values opaque;
  for (auto [i, init] : llvm::enumerate(loop.states))
    opaque.push_back(isKept(i) ? init : placeholder(i));
  findCandidates();
  constexpr int mostLooks = 8;
  for (int look = 0; look < mostLooks && !lookOnce(opaque); ++look)
    ;
  symbols.setTrial(wasTrial);
}

LoopBuilder::~LoopBuilder() {
  if (symbol && !steps)
    symbols.giveBack(symbol);
}

bool LoopBuilder::canRepeat() const {
  auto known = count ? graph::constantOf(count) : std::nullopt;
  if (!known)
    return bool(count);
  int64_t fewest = isExact && carries() && !mayGrow() ? mostWrittenOut
                                                      : mostWrittenOutToKnow;
  return *known == 0 ||
         (*known > fewest && *known <= (isExact ? maxRepeatedSteps : maxSteps));
}

/// Whether steps need what the ones before computed: others become a batch once
/// they are written out.
bool LoopBuilder::carries() const {
  return llvm::any_of(llvm::seq<size_t>(0, loop.states.size()),
                      [&](size_t i) { return !isKept(i) && !inductions[i]; });
}

/// Whether there are states that may be lists that grow, which may be known
/// once steps are written out.
bool LoopBuilder::mayGrow() const {
  return llvm::any_of(llvm::seq<size_t>(0, loop.states.size()), [&](size_t i) {
    return !isKept(i) && !inductions[i] && !loop.states[i];
  });
}

std::optional<StepCount> LoopBuilder::known() const {
  auto most = count ? graph::constantOf(count) : std::nullopt;
  return most ? std::optional(StepCount{*most, isExact}) : std::nullopt;
}

/// Whether so many steps could be written out as well.
bool LoopBuilder::canWriteOut() const {
  return graph::constantOf(count).value_or(maxDimension) <= maxSteps;
}

/// A state that follows from the step's number; null for others.
Value LoopBuilder::stateAt(size_t i, AffineExpr step) {
  if (!inductions[i])
    return {};
  auto type = llvm::cast<mlir::RankedTensorType>(loop.states[i].getType());
  return e.sizes({inductions[i]->at(step)}, type.getShape(),
                 type.getElementType());
}

/// A value of which nothing is known, but which state it is.
Value LoopBuilder::placeholder(size_t i) {
  Value init = loop.states[i];
  if (!init)
    return {};
  return e.opTo<graph::CarriedOp>(
      llvm::cast<mlir::RankedTensorType>(init.getType()), {init},
      {e.map("counter", symbol), e.attr("index", static_cast<int64_t>(i))});
}

/// All states of one integer are taken to count by one, until a step says
/// otherwise. Sizes are no unsigned integers, which wrap at 0.
void LoopBuilder::findCandidates() {
  for (auto [i, init] : llvm::enumerate(loop.states)) {
    if (!init || isKept(i) ||
        !(elementOf(init).isSignlessInteger(32) ||
          elementOf(init).isSignlessInteger(64)) ||
        graph::constantOf(
            graph::numElements(graph::getShape(init), e.getContext())) != 1)
      continue;
    graph::SymbolicTensor known = e.evaluate(init);
    if (known.isComplete())
      inductions[i] = Induction{known.elements->front()};
  }
}

std::optional<OpenLoop::Step>
LoopBuilder::look(const Values &opaque, const OpenLoop::Wanted &wanted) {
  Values states = opaque;
  for (size_t i = 0; i < states.size(); ++i)
    if (inductions[i])
      states[i] = stateAt(i, number);
  auto forget = loop.mark();
  auto step = loop.take(number, states, &wanted);
  forget();
  return step;
}

/// Takes those for what does not count which cannot be looked at alone. Whether
/// there are any.
bool LoopBuilder::dropWhatCannotBeSeen(const Values &opaque,
                                       const OpenLoop::Wanted &wanted) {
  OpenLoop::Wanted dropped(wanted.size());
  for (unsigned i : wanted.set_bits()) {
    OpenLoop::Wanted alone(wanted.size());
    alone.set(i);
    if (!look(opaque, alone))
      dropped.set(i);
  }
  for (unsigned i : dropped.set_bits())
    inductions[i].reset();
  return dropped.any();
}

/// Builds a step to look at. Whether states are as they were taken to be; then
/// the number of steps is found, if it can be.
bool LoopBuilder::lookOnce(const Values &opaque) {
  OpenLoop::Wanted wanted(loop.states.size());
  for (size_t i = 0; i < loop.states.size(); ++i)
    wanted[i] = inductions[i].has_value();
  auto step = look(opaque, wanted);
  if (!step && dropWhatCannotBeSeen(opaque, wanted))
    return false;
  bool settled = true;
  for (unsigned i : wanted.set_bits()) {
    auto stride = step ? strideOf(i, step->states[i]) : std::nullopt;
    settled &= stride == inductions[i]->stride;
    if (!stride)
      inductions[i].reset();
    else
      inductions[i]->stride = *stride;
  }
  if (settled && step)
    return readSteps(*step);
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
      graph::simplify(known.elements->front() - inductions[i]->at(number)));
  constexpr int64_t farthest = int64_t(1) << 31;
  return stride && *stride > -farthest && *stride < farthest ? stride
                                                             : std::nullopt;
}

/// Finds the number of steps. Whether states count as they were taken to also
/// where 32 bits are few.
bool LoopBuilder::readSteps(const OpenLoop::Step &step) {
  // What this needs of sizes, as that none wraps, is needed.
  bool wasTrial = symbols.setTrial(false);
  readCount(step);
  bool settled = true;
  if (count)
    symbols.setCount(symbol, count);
  for (size_t i = 0; count && i < inductions.size(); ++i)
    if (inductions[i] && !e.assumeNoneWraps(step.states[i], /*mayWrap=*/true)) {
      inductions[i].reset();
      settled = false;
    }
  // Where something may wrap, that is no failure of the model.
  e.begin(e.getLocation());
  symbols.setCount(symbol, loop.most);
  symbols.setTrial(wasTrial);
  if (!settled)
    count = {};
  return settled;
}

void LoopBuilder::readCount(const OpenLoop::Step &step) {
  Values compared;
  holds = !step.condition || isSeenTrue(step.condition, e);
  Duration duration = step.condition
                          ? durationOf(step.condition, symbol, e, compared)
                          : Duration();
  setCount(duration);
  if (!fit(compared))
    setCount(Duration::unknown());
  if (!loop.first || !count || isSeenTrue(loop.first, e))
    return;
  // Whether there is a first step follows from sizes, or data says so.
  graph::SymbolicTensor starts = e.evaluateSizes(loop.first);
  if (!starts.isComplete() || starts.elements->size() != 1)
    isExact = false;
  else
    count = choiceOf(symbols, starts.elements->front(), count, e.number(0));
  isExact |= count && graph::constantOf(count) == 0;
}

void LoopBuilder::setCount(const Duration &found) {
  Duration duration = found;
  if (duration.most && !loop.testsBefore)
    duration.most = graph::simplify(duration.most + 1);
  duration = shorterOf(duration, {loop.most}, symbols);
  count = duration.most;
  isExact = duration.isExact;
}

/// Whether none of what a condition compares wraps, up to the last time that it
/// is asked.
bool LoopBuilder::fit(llvm::ArrayRef<Value> compared) {
  if (!count)
    return true;
  e.begin(e.getLocation());
  symbols.setCount(symbol,
                   loop.testsBefore ? graph::simplify(count + 1) : count);
  return llvm::all_of(compared, [&](Value v) { return e.assumeNoneWraps(v); });
}

std::optional<llvm::FailureOr<LoopResults>> LoopBuilder::build() {
  auto forget = loop.mark();
  if (auto results = repeat(forget))
    return llvm::FailureOr<LoopResults>(std::move(*results));
  if (!canWriteOut())
    return llvm::FailureOr<LoopResults>(llvm::failure());
  forget();
  return std::nullopt;
}

/// Begins the steps; gives the states that one finds.
Values LoopBuilder::begin() {
  steps.emplace(symbol, count, e);
  order.clear();
  carried.assign(loop.states.size(), {});
  Values states(loop.states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    if (inductions[i])
      states[i] = stateAt(i, number);
    else if (isKept(i))
      states[i] = loop.states[i];
    else if (tables[i])
      states[i] = rowOf(tables[i], number, e);
    else if (loop.states[i])
      states[i] = carried[i] = carry(i, loop.states[i]);
  }
  return states;
}

std::optional<OpenLoop::Step> LoopBuilder::takeStep(const Values &states) {
  if (e.failed())
    return std::nullopt;
  // What is assumed of a step that data may leave out is no need of the model.
  bool wasInBranch = e.isInBranch();
  e.setInBranch(wasInBranch || !isExact);
  auto step = loop.take(number, states, nullptr);
  e.setInBranch(wasInBranch);
  return e.failed() ? std::nullopt : std::move(step);
}

/// Whether steps that could be, are written out for what the one that was built
/// behind `last` is, or cannot be.
bool LoopBuilder::isWrittenOut(const std::optional<OpenLoop::Step> &step,
                               const Symbols::Supposed &supposed,
                               mlir::Operation *last, mlir::Block &block) {
  bool areFew = *graph::constantOf(count) <= mostWrittenOutToKnow;
  // What fails where something is but supposed may not where it is assumed.
  if (!step || !checkStates(*step))
    return areFew || supposed.all == 0;
  Values next = nextOf(*step);
  if (!steps->mayCarryOn(next))
    return true;
  follow = statesThatFollow(loop.states, carried, step->states, e);
  if (!areFew)
    return false;
  // Of steps that are known a branch in each is known, too.
  if (supposed.inBranches > 0 && !e.isInBranch())
    return true;
  return hasPositionsOfStates(last, block, carried, follow, e) ||
         hasWeightsOfSteps(last, block, carried, follow, e);
}

/// Those outputs that follow from constants, sizes and the number of a step at
/// whose place they are; null for others, and those that are in tables.
Values LoopBuilder::outputsThatFollow(const OpenLoop::Step &step) {
  Values outputs(step.outputs.size());
  for (auto [i, output] : llvm::enumerate(step.outputs)) {
    bool isPlaced =
        i < step.places.size() && graph::simplify(step.places[i] - number) != 0;
    bool isKnown = i < outputTables.size() && outputTables[i];
    if (output && !isPlaced && !isKnown &&
        followsFrom(output, carried, follow, e))
      outputs[i] = output;
  }
  return outputs;
}

/// Computes what states and outputs are that follow from the number of a step,
/// where that is known now. Whether there are any. Not where data may end the
/// steps, and with them what states become.
bool LoopBuilder::tabulate(const OpenLoop::Step &step) {
  StepTables found(loop.states, carried, step.states, follow,
                   outputsThatFollow(step), symbol, *graph::constantOf(count),
                   e);
  found.tabulate();
  tables = std::move(found.states);
  outputTables = std::move(found.outputs);
  auto isThere = [](mlir::DenseElementsAttr table) { return bool(table); };
  return llvm::any_of(tables, isThere) || llvm::any_of(outputTables, isThere);
}

/// Whether what is not in tables are outputs of steps that carry nothing, and
/// become a batch once they are written out.
bool LoopBuilder::leavesBatch(const OpenLoop::Step &step) const {
  auto isLeft = [&](size_t i) {
    return !isKept(i) && !inductions[i] && !tables[i];
  };
  return *graph::constantOf(count) <= mostWrittenOutToKnow &&
         llvm::none_of(llvm::seq<size_t>(0, loop.states.size()), isLeft) &&
         llvm::any_of(outputTables,
                      [](mlir::DenseElementsAttr table) { return !table; });
}

std::optional<LoopResults>
LoopBuilder::repeat(const std::function<void()> &forget) {
  mlir::Block &block = *e.getBuilder().getInsertionBlock();
  mlir::Operation *last = block.empty() ? nullptr : &block.back();
  Values states = begin();
  if (!canWriteOut() || graph::constantOf(count) == 0) {
    auto step = takeStep(states);
    return step ? finish(*step) : std::nullopt;
  }
  // Steps that are written out instead may need less.
  Symbols::Supposed supposed, *before = symbols.setSupposed(&supposed);
  auto step = takeStep(states);
  bool writesOut = isWrittenOut(step, supposed, last, block);
  symbols.setSupposed(before);
  if (writesOut)
    return std::nullopt;
  bool hasTables = step && isExact && tabulate(*step);
  if (hasTables && leavesBatch(*step))
    return std::nullopt;
  if (!step || supposed.all > 0 || hasTables) {
    forget();
    states = begin();
    step = takeStep(states);
  }
  return step ? finish(*step) : std::nullopt;
}

Values LoopBuilder::nextOf(const OpenLoop::Step &step) const {
  Values next;
  for (std::optional<size_t> state : order)
    next.push_back(state ? step.states[*state] : goesOn);
  return next;
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
  Value starts =
      loop.first ? e.reshape(loop.first, {}) : e.scalar(int64_t(1), i1);
  Value before = carry(std::nullopt, starts);
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

/// That states count in the steps that are built as they did in those that were
/// looked at.
bool LoopBuilder::checkInductions(const OpenLoop::Step &step) {
  for (size_t i = 0; i < inductions.size(); ++i) {
    if (!inductions[i])
      continue;
    graph::SymbolicTensor next = e.evaluate(step.states[i]);
    AffineExpr wanted =
        symbols.resolve(inductions[i]->at(graph::simplify(number + 1)));
    if (next.isComplete() && next.elements->size() == 1 &&
        graph::simplify(next.elements->front() - wanted) == 0)
      continue;
    e.fail("state " + llvm::Twine(i) + " of a step is another than " +
               symbols.toString(wanted) + ", which it was taken for",
           "this is a fault of charonia: please report it with the model");
    return false;
  }
  return true;
}

/// What is known of results: all of those in tables, and of others that follow
/// from open sizes what copies of the steps tell, which nothing computes.
void LoopBuilder::learnResults(const OpenLoop::Step &step, LoopResults &left) {
  for (auto [state, table] : llvm::zip(left.states, tables))
    if (table)
      state = rowOf(table, left.count, e);
  auto known = graph::constantOf(count);
  if (!known || !isExact || *known == 0 || *known > maxSteps)
    return;
  follow = statesThatFollow(loop.states, carried, step.states, e);
  Values outputs = outputsThatFollow(step);
  if (follow.none() && llvm::none_of(outputs, [](Value v) { return bool(v); }))
    return;
  auto [last, stacked] = StepTables(loop.states, carried, step.states, follow,
                                    outputs, symbol, *known, e)
                             .copySteps();
  auto learn = [&](Values &results, llvm::ArrayRef<Value> copies) {
    for (auto [result, copy] : llvm::zip_equal(results, copies))
      if (copy && copy.getType() == result.getType())
        e.learnEqual(result, copy);
  };
  learn(left.states, last);
  learn(left.outputs, stacked);
}

std::optional<LoopResults> LoopBuilder::finish(OpenLoop::Step &step) {
  if (!checkStates(step) || !checkInductions(step))
    return std::nullopt;
  // What steps set and the first one does not find.
  for (auto [i, next] : llvm::enumerate(step.states))
    if (next && !loop.states[i])
      carried[i] = carry(i, e.broadcast(e.scalar(int64_t(0), elementOf(next)),
                                        graph::getShape(next)));
  if (!isExact && !keepEnded(step))
    return std::nullopt;
  Values next = nextOf(step), outputs;
  llvm::SmallVector<AffineExpr> places;
  outputTables.resize(step.outputs.size());
  for (auto [i, output] : llvm::enumerate(step.outputs))
    if (!outputTables[i]) {
      outputs.push_back(output);
      places.push_back(i < step.places.size() ? step.places[i] : number);
    }
  Values results;
  if (!next.empty() || !outputs.empty())
    results = steps->finish(next, outputs, places);
  if (e.failed())
    return std::nullopt;
  LoopResults left;
  left.count = symbols.resolve(count);
  for (size_t i = 0; i < loop.states.size(); ++i)
    left.states.push_back(isKept(i) ? loop.states[i] : stateAt(i, left.count));
  for (auto [state, result] : llvm::zip(order, results))
    if (state)
      left.states[*state] = result;
  auto *result = results.begin() + order.size();
  for (mlir::DenseElementsAttr table : outputTables)
    left.outputs.push_back(table ? e.constant(table) : *result++);
  learnResults(step, left);
  return e.failed() ? std::nullopt : std::optional(std::move(left));
}
