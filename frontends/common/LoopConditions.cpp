#include "frontends/common/LoopConditions.h"
#include "frontends/common/SizeCases.h"
#include "frontends/common/Steps.h"
#include "mlir/IR/OperationSupport.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::Value;

Duration charonia::frontend::shorterOf(const Duration &a, const Duration &b,
                                       Symbols &symbols) {
  if (a.isNever() || b.isNever())
    return a.isNever() ? a : b;
  bool isExact = a.isExact && b.isExact, isForGood = a.isForGood && b.isForGood;
  if (!a.most || !b.most)
    return {a.most ? a.most : b.most, isExact, isForGood};
  if (AffineExpr most = largerOf(symbols, a.most, b.most, /*largest=*/false))
    return {most, isExact, isForGood};
  return {a.most, false, isForGood}; // no longer than one of them
}

namespace {

/// Whether two values are computed alike.
bool areAlike(Value a, Value b, int depth = 0) {
  constexpr int maxDepth = 8;
  if (a == b)
    return true;
  mlir::Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  auto operands = [&](Value x, Value y) {
    return llvm::success(areAlike(x, y, depth + 1));
  };
  using mlir::OperationEquivalence;
  return left && right && depth < maxDepth && left->getNumResults() == 1 &&
         OperationEquivalence::isEquivalentTo(
             left, right, operands, /*markEquivalent=*/nullptr,
             OperationEquivalence::IgnoreLocations);
}

/// Reads a condition that was built for the step that `counter` is one more
/// than.
class DurationFinder {
public:
  DurationFinder(AffineExpr counter, Emitter &e)
      : counter(counter), e(e), symbols(e.getSymbols()) {}

  Duration of(Value condition) { return of({condition, false}, 0); }

private:
  /// A truth value, or what it is not.
  struct Term {
    Value value;
    bool isNegated = false;
    Term negated() const { return {value, !isNegated}; }
  };
  /// Two of which both hold, or either.
  struct Pair {
    Term a, b;
    bool isBoth;
  };

  Duration of(Term term, int depth) {
    constexpr int maxDepth = 16;
    if (!term.value || depth > maxDepth)
      return {{}, false};
    term = seenThrough(term);
    if (auto known = knownInteger(term.value, e))
      return {(*known != 0) != term.isNegated ? AffineExpr() : e.number(0),
              true};
    if (std::optional<Pair> pair = pairOf(term)) {
      Duration a = of(pair->a, depth + 1), b = of(pair->b, depth + 1);
      if (pair->isBoth)
        return shorterOf(a, b, symbols);
      return a.isNever() && a.isForGood   ? b
             : b.isNever() && b.isForGood ? a
                                          : Duration{{}, false};
    }
    if (auto compare = term.value.getDefiningOp<graph::CompareOp>())
      return of(compare, term.isNegated);
    return {{}, false};
  }

  /// Behind negations and other shapes.
  Term seenThrough(Term term) {
    for (mlir::Operation *op; (op = term.value.getDefiningOp());) {
      std::optional<unsigned> next;
      if (llvm::isa<graph::ReshapeOp, graph::BroadcastOp>(op)) {
        next = 0;
      } else if (llvm::isa<graph::NotOp>(op)) {
        next = 0;
        term.isNegated = !term.isNegated;
      } else if (auto compare = llvm::dyn_cast<graph::CompareOp>(op)) {
        next = comparedTruth(compare, term.isNegated);
      }
      if (!next)
        break;
      term.value = op->getOperand(*next);
    }
    return term;
  }
  /// The operand that is compared with true or false.
  std::optional<unsigned> comparedTruth(graph::CompareOp compare,
                                        bool &isNegated) {
    bool isSame = compare.getPredicate() == graph::Predicate::eq;
    if (!elementOf(compare.getLhs()).isInteger(1) ||
        (!isSame && compare.getPredicate() != graph::Predicate::ne))
      return std::nullopt;
    for (unsigned i : {0, 1})
      if (auto known = knownInteger(compare->getOperand(i), e)) {
        isNegated ^= isSame == (*known == 0);
        return 1 - i;
      }
    return std::nullopt;
  }

  std::optional<Pair> pairOf(Term term) {
    mlir::Operation *op = term.value.getDefiningOp();
    std::optional<Pair> pair;
    if (llvm::isa_and_present<graph::AndOp, graph::OrOp>(op))
      pair = Pair{{op->getOperand(0)},
                  {op->getOperand(1)},
                  llvm::isa<graph::AndOp>(op)};
    else if (auto select = llvm::dyn_cast_or_null<graph::SelectOp>(op))
      pair = chosen(select);
    // Not both is that either is not.
    if (pair && term.isNegated)
      pair = Pair{pair->a.negated(), pair->b.negated(), !pair->isBoth};
    return pair;
  }
  /// What a branch makes of `and`, `or` and `break`: one of two is known, or is
  /// the condition itself.
  std::optional<Pair> chosen(graph::SelectOp select) {
    Term test = seenThrough({select->getOperand(0)});
    Value yes = select->getOperand(1), no = select->getOperand(2);
    if (test.isNegated)
      std::swap(yes, no);
    test.isNegated = false;
    auto isKnown = [&](Value v, bool truth) {
      auto known = knownInteger(v, e);
      return known ? (*known != 0) == truth : areAlike(v, test.value);
    };
    if (isKnown(no, false))
      return Pair{test, {yes}, true};
    if (isKnown(yes, true))
      return Pair{test, {no}, false};
    if (knownInteger(yes, e) == 0)
      return Pair{test.negated(), {no}, true};
    if (knownInteger(no, e) == 1)
      return Pair{test.negated(), {yes}, false};
    return std::nullopt;
  }

  Duration of(graph::CompareOp compare, bool isNegated) {
    AffineExpr less = sizeOf(compare.getLhs()), more = sizeOf(compare.getRhs());
    using graph::Predicate;
    Predicate predicate = compare.getPredicate();
    if (!less || !more)
      return {{}, false};
    bool isNot = predicate == Predicate::ne,
         isSame = predicate == Predicate::eq;
    if (isNegated ? isSame : isNot)
      return untilEqual(less, more);
    if (isNot || isSame)
      return {{}, false};
    bool isStrict = predicate == Predicate::lt || predicate == Predicate::gt;
    // not (a < b) is b <= a.
    if ((predicate == Predicate::gt || predicate == Predicate::ge) != isNegated)
      std::swap(less, more);
    // It holds where `left` > 0.
    return whilePositive(
        graph::simplify(more - less + (isStrict != isNegated ? 0 : 1)));
  }

  /// While what counts by one is not another size, which it has ahead.
  Duration untilEqual(AffineExpr a, AffineExpr b) {
    for (AffineExpr left : {graph::simplify(a - b), graph::simplify(b - a)})
      if (graph::simplify(at(left, 0) - at(left, 1)) == 1 &&
          symbols.isAtLeast(at(left, 0), e.number(0))) {
        Duration duration = whilePositive(left);
        duration.isForGood = false;
        return duration;
      }
    return {{}, false};
  }

  Duration whilePositive(AffineExpr left) {
    AffineExpr first = at(left, 0);
    auto slope = graph::constantOf(graph::simplify(at(left, 1) - first));
    if (!slope || *slope < -maxDimension ||
        graph::simplify(left - (counter - 1) * *slope - first) != 0)
      return {{}, false};
    if (*slope >= 0)
      return {{}, symbols.isAtLeast(first, e.number(1))};
    AffineExpr steps = largerOf(
        symbols, graph::simplify(first.ceilDiv(-*slope)), e.number(0), true);
    return {steps, bool(steps)};
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
    return graph::simplify(expr.replace(counter, e.number(step + 1)));
  }

  AffineExpr counter;
  Emitter &e;
  Symbols &symbols;
};
} // namespace

Duration charonia::frontend::durationOf(Value condition, AffineExpr counter,
                                        Emitter &e) {
  return DurationFinder(counter, e).of(condition);
}
