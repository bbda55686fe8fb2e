#include "frontends/common/LoopConditions.h"
#include "frontends/common/Conditions.h"
#include "frontends/common/SizeCases.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::Value;

Duration charonia::frontend::shorterOf(const Duration &a, const Duration &b,
                                       Symbols &symbols) {
  if (a.isNever() || b.isNever())
    return a.isNever() ? a : b;
  bool isExact = a.isExact && b.isExact, isForGood = a.isForGood && b.isForGood;
  if (!a.most && !b.most)
    return isExact ? a : Duration::unknown();
  // Behind the end of one it does not matter what the other is.
  if (!a.most || !b.most)
    return {a.most ? a.most : b.most, isExact,
            a.most ? a.isForGood : b.isForGood};
  if (AffineExpr most = largerOf(symbols, a.most, b.most, /*largest=*/false))
    return {most, isExact, isForGood};
  return {a.most, false, a.isForGood}; // no longer than one of them
}

Duration charonia::frontend::longerOf(const Duration &a, const Duration &b,
                                      Symbols &symbols) {
  auto isOver = [](const Duration &d) { return d.isNever() && d.isForGood; };
  auto isForEver = [](const Duration &d) { return d.isExact && !d.most; };
  if (isOver(a) || isForEver(b))
    return b;
  if (isOver(b) || isForEver(a))
    return a;
  // One that holds again may do so before the other has ended.
  AffineExpr most = a.most && b.most && a.isForGood && b.isForGood
                        ? largerOf(symbols, a.most, b.most, /*largest=*/true)
                        : AffineExpr();
  if (!most)
    return Duration::unknown();
  return {most, (a.isExact && b.isExact) || (a.isExact && most == a.most) ||
                    (b.isExact && most == b.most)};
}

namespace {
/// Reads a condition that was built for the step that `counter` is one more
/// than.
class DurationFinder {
public:
  DurationFinder(AffineExpr counter, Emitter &e, Values &compared)
      : counter(counter), e(e), symbols(e.getSymbols()), compared(compared) {}

  Duration of(const Condition &condition) {
    switch (condition.kind) {
    case Condition::Kind::Known:
      compared.push_back(condition.value);
      return {condition.truth ? AffineExpr() : e.number(0)};
    case Condition::Kind::Both:
      return shorterOf(of(condition.parts[0]), of(condition.parts[1]), symbols);
    case Condition::Kind::Either:
      return longerOf(of(condition.parts[0]), of(condition.parts[1]), symbols);
    case Condition::Kind::Other:
      break;
    }
    auto compare = condition.compare();
    return compare ? of(compare, condition.isNegated) : Duration::unknown();
  }

private:
  Duration of(graph::CompareOp compare, bool isNegated) {
    using graph::Predicate;
    Predicate predicate = compare.getPredicate();
    Value less = compare.getLhs(), more = compare.getRhs();
    bool isNot = predicate == Predicate::ne,
         isSame = predicate == Predicate::eq;
    if (isNegated ? isSame : isNot)
      return untilEqual(less, more);
    if (isNot || isSame)
      return Duration::unknown();
    bool isStrict = predicate == Predicate::lt || predicate == Predicate::gt;
    // not (a < b) is b <= a.
    if ((predicate == Predicate::gt || predicate == Predicate::ge) != isNegated)
      std::swap(less, more);
    return whileLess(less, more, isStrict != isNegated, 0);
  }

  Duration whileLess(Value less, Value more, bool isStrict, int depth) {
    constexpr int maxDepth = 8;
    AffineExpr low = sizeOf(less), high = sizeOf(more);
    if (low && high) {
      compared.append({less, more});
      return whilePositive(graph::simplify(high - low + (isStrict ? 0 : 1)));
    }
    if (depth == maxDepth)
      return Duration::unknown();
    // Less than the smaller one is less than both, of which data may say one.
    for (Value side : {more, less}) {
      mlir::Operation *op = side.getDefiningOp();
      bool isMin = llvm::isa_and_present<graph::MinOp>(op);
      if (!isMin && !llvm::isa_and_present<graph::MaxOp>(op))
        continue;
      auto with = [&](Value part) {
        return whileLess(side == less ? part : less, side == more ? part : more,
                         isStrict, depth + 1);
      };
      Duration a = with(op->getOperand(0)), b = with(op->getOperand(1));
      return isMin == (side == more) ? shorterOf(a, b, symbols)
                                     : longerOf(a, b, symbols);
    }
    return Duration::unknown();
  }

  /// While what counts by one is not another size, which it has ahead.
  Duration untilEqual(Value one, Value other) {
    AffineExpr a = sizeOf(one), b = sizeOf(other);
    if (!a || !b)
      return Duration::unknown();
    compared.append({one, other});
    for (AffineExpr left : {graph::simplify(a - b), graph::simplify(b - a)})
      if (graph::simplify(at(left, 0) - at(left, 1)) == 1 &&
          symbols.isAtLeast(at(left, 0), e.number(0))) {
        Duration duration = whilePositive(left);
        duration.isForGood = false;
        return duration;
      }
    return Duration::unknown();
  }

  /// While `left` > 0.
  Duration whilePositive(AffineExpr left) {
    AffineExpr first = at(left, 0);
    auto slope = graph::constantOf(graph::simplify(at(left, 1) - first));
    if (!slope || *slope < -maxDimension ||
        graph::simplify(left - (counter - 1) * *slope - first) != 0)
      return Duration::unknown();
    if (*slope >= 0) {
      if (symbols.isAtLeast(first, e.number(1)))
        return {};
      return symbols.isAtLeast(e.number(0), first)
                 ? Duration{e.number(0), true, *slope == 0}
                 : Duration::unknown();
    }
    AffineExpr steps = largerOf(
        symbols, graph::simplify(first.ceilDiv(-*slope)), e.number(0), true);
    return steps ? Duration{steps} : Duration::unknown();
  }

  /// Null where it is none. Unsigned integers are none, as they wrap at 0.
  AffineExpr sizeOf(Value value) {
    if (elementOf(value).isUnsignedInteger())
      return {};
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
  Values &compared;
};
} // namespace

Duration charonia::frontend::durationOf(Value condition, AffineExpr counter,
                                        Emitter &e, Values &compared) {
  return DurationFinder(counter, e, compared).of(readCondition(condition, e));
}
