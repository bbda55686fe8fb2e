#include "frontends/common/Steps.h"
#include "frontends/common/Conditions.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/common/OpenLoops.h"

using namespace charonia;
using namespace charonia::frontend;

std::optional<int64_t> charonia::frontend::knownInteger(mlir::Value value,
                                                        Emitter &e) {
  if (!value)
    return std::nullopt;
  if (auto known = e.evaluate(value).constants())
    return known->size() == 1 ? std::optional(known->front()) : std::nullopt;
  auto constant = e.constantOf(value);
  mlir::Type element = constant ? constant.getElementType() : mlir::Type();
  if (!constant || constant.getNumElements() != 1 || !element.isInteger())
    return std::nullopt;
  llvm::APInt number = *constant.value_begin<llvm::APInt>();
  return element.isInteger(1) ? int64_t(number.getZExtValue())
                              : number.getSExtValue();
}

constexpr int maxDepth = 16;

/// The number itself, or what an integer is at most or at least.
static std::optional<int64_t> extreme(mlir::Value value, bool largest,
                                      Emitter &e, int depth = 0) {
  if (depth > maxDepth || !value || !elementOf(value).isSignlessInteger())
    return std::nullopt;
  if (auto known = knownInteger(value, e))
    return known;
  mlir::Operation *op = value.getDefiningOp();
  if (llvm::isa_and_present<graph::ReshapeOp, graph::BroadcastOp>(op))
    return extreme(op->getOperand(0), largest, e, depth + 1);
  bool isMin = llvm::isa_and_present<graph::MinOp>(op);
  if (!isMin && !llvm::isa_and_present<graph::MaxOp>(op))
    return std::nullopt;
  auto a = extreme(op->getOperand(0), largest, e, depth + 1),
       b = extreme(op->getOperand(1), largest, e, depth + 1);
  // The least of two is at most either of them.
  if (isMin == largest && (!a || !b))
    return a ? a : b;
  if (!a || !b)
    return std::nullopt;
  return isMin ? std::min(*a, *b) : std::max(*a, *b);
}

std::optional<int64_t> charonia::frontend::boundedInteger(mlir::Value value,
                                                          Emitter &e) {
  auto low = extreme(value, false, e), high = extreme(value, true, e);
  return low && low == high ? low : std::nullopt;
}

namespace {
/// What is known of a loop's condition that data decides: whether it is false
/// whatever the data is, and whether steps that are known bring that about, as
/// where a counter is compared, too.
struct StepBound {
  bool isFalse = false, isBounded = false;
};
} // namespace

static StepBound boundOf(graph::CompareOp compare, bool isNegated, Emitter &e) {
  mlir::Value less = compare.getLhs(), more = compare.getRhs();
  using graph::Predicate;
  Predicate predicate = compare.getPredicate();
  if (predicate == Predicate::eq || predicate == Predicate::ne)
    return {};
  // not (a < b) is b <= a.
  if ((predicate == Predicate::gt || predicate == Predicate::ge) != isNegated)
    std::swap(less, more);
  auto low = extreme(less, false, e), high = extreme(more, true, e);
  if (!low || !high)
    return {};
  bool isStrict = predicate == Predicate::lt || predicate == Predicate::gt;
  return {isStrict != isNegated ? *low >= *high : *low > *high, true};
}

static StepBound boundOf(const Condition &condition, Emitter &e) {
  if (condition.kind == Condition::Kind::Known)
    return {!condition.truth, true};
  if (condition.kind == Condition::Kind::Other) {
    auto compare = condition.compare();
    return compare ? boundOf(compare, condition.isNegated, e) : StepBound();
  }
  StepBound a = boundOf(condition.parts[0], e),
            b = boundOf(condition.parts[1], e);
  return condition.kind == Condition::Kind::Both
             ? StepBound{a.isFalse || b.isFalse, a.isBounded || b.isBounded}
             : StepBound{a.isFalse && b.isFalse, a.isBounded && b.isBounded};
}

std::set<std::string> charonia::frontend::openSizesBehind(mlir::Value value,
                                                          Emitter &e) {
  std::set<std::string> names;
  std::vector<mlir::Value> todo = {value};
  constexpr size_t maxValues = 64;
  for (size_t i = 0; i < todo.size() && todo.size() < maxValues; ++i) {
    auto known = todo[i] ? e.evaluate(todo[i]) : graph::SymbolicTensor();
    for (mlir::AffineExpr element : known ? *known.elements : graph::Exprs())
      if (element)
        element.walk([&](mlir::AffineExpr part) {
          if (llvm::isa<mlir::AffineSymbolExpr>(part))
            names.insert(e.getSymbols().toString(part));
        });
    // Behind what follows from sizes are others that it does not name.
    if (todo[i] && todo[i].getDefiningOp() && !known.isComplete())
      llvm::append_range(todo, todo[i].getDefiningOp()->getOperands());
  }
  return names;
}

/// Of a loop whose condition is not known: by which sizes, as far as that can
/// be told.
static llvm::LogicalResult failUnknown(const StepLoop &loop,
                                       mlir::Value condition, Emitter &e) {
  std::set<std::string> names = openSizesBehind(condition, e);
  if (names.empty())
    return e.fail("the number of steps follows from data, which is not "
                  "supported",
                  loop.dataRemedy);
  std::string list, remedy;
  for (const std::string &name : names) {
    list += (list.empty() ? "" : ", ") + printable(name);
    remedy = loop.fixSize ? loop.fixSize(name) : "";
  }
  return e.fail("the number of steps depends on size " + list +
                    ", which is open",
                remedy.empty() ? "fix it with --shape, or export the model "
                                 "with it fixed"
                               : remedy);
}

namespace {
/// How far a loop is.
class StepWriter {
public:
  StepWriter(const StepLoop &loop, Emitter &e)
      : loop(loop), e(e), wasInBranch(e.setInBranch(false)) {}
  ~StepWriter() { e.setInBranch(wasInBranch); }

  llvm::LogicalResult run() {
    if (loop.count && loop.count->isExact &&
        loop.count->most > maxRepeatedSteps)
      return e.fail("takes " + llvm::Twine(loop.count->most) +
                        " steps; up to 2^20 are supported",
                    loop.lengthRemedy);
    for (int64_t step = 0; !loop.count || step < loop.count->most; ++step) {
      // What is assumed of a step that may not be is no need of the model.
      e.setInBranch(wasInBranch || runs);
      if (!loop.count || !loop.count->isExact) {
        auto condition = loop.test(step);
        if (failed(condition))
          return llvm::failure();
        auto more = goesOn(*condition);
        if (failed(more))
          return llvm::failure();
        if (!*more)
          return llvm::success();
      }
      if (step == maxSteps)
        return e.fail("takes over " + llvm::Twine(maxSteps) +
                          " steps that cannot be repeated: 2^20 of one form "
                          "are the most",
                      loop.lengthRemedy);
      if (failed(loop.take(step)) || (runs && failed(keep(runs))))
        return llvm::failure();
    }
    return llvm::success();
  }

private:
  llvm::LogicalResult keep(mlir::Value condition) {
    e.follow(condition);
    return llvm::failure(failed(loop.keep(condition)) || e.failed());
  }

  /// Whether another step is taken. Those that data may leave out are, and
  /// their results dropped where it does.
  llvm::FailureOr<bool> goesOn(mlir::Value condition) {
    if (auto known = knownInteger(condition, e))
      return *known != 0;
    // Of a choice it is seen at last alone whether anything ends it, but for
    // sizes, which do not become known on the way.
    constexpr int64_t maxChosenSteps = 1024;
    Condition read = readCondition(condition, e);
    StepBound bound = boundOf(read, e);
    bool mayEnd = bound.isBounded ||
                  (loop.count && loop.count->most <= maxSteps) ||
                  (loop.isChoice && ++chosen <= maxChosenSteps &&
                   !isOpenBySizes(read, e));
    if (!loop.keep && mayEnd)
      return e.fail("data may end the loop before its last step, so that the "
                    "number of outputs of steps is not known",
                    loop.dataRemedy);
    if (!mayEnd || !condition || !elementOf(condition).isInteger(1) ||
        rankOf(condition) != 0)
      return failUnknown(loop, condition, e);
    if (bound.isFalse)
      return false;
    e.follow(condition);
    if (!runs && failed(loop.keep({})))
      return llvm::failure();
    runs = runs ? e.op<graph::AndOp>({runs, condition}) : condition;
    return true;
  }

  const StepLoop &loop;
  Emitter &e;
  bool wasInBranch;
  /// Whether the loop still does; null as long as each step is known to be.
  mlir::Value runs;
  int64_t chosen = 0;
};
} // namespace

mlir::Value charonia::frontend::keepState(mlir::Value runs, mlir::Value state,
                                          mlir::Value kept, Emitter &e) {
  if (state == kept || !state || !kept)
    return kept;
  e.follow(state);
  e.follow(kept);
  if (state.getType() == kept.getType())
    return e.select(runs, state, kept);
  return e.fail("its steps give " + e.describe(kept.getType()) + " and " +
                    e.describe(state.getType()) +
                    ", and data decides which is the last one",
                "let each step keep the types and shapes of its states");
}

llvm::LogicalResult charonia::frontend::writeOutSteps(const StepLoop &loop,
                                                      Emitter &e) {
  return StepWriter(loop, e).run();
}
