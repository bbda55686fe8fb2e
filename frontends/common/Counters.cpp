// Sizes that number the steps of a loop: what holds in all steps holds in the
// first and in the last.
#include "frontends/common/Symbols.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::AffineExprKind;

AffineExpr Symbols::addCounter() {
  for (Counter &counter : counters)
    if (std::exchange(counter.isFree, false))
      return mlir::getAffineSymbolExpr(counter.symbol, getContext());
  if (definitions.size() == maxDefinitions)
    return {};
  graph::SizeProgram one{{graph::SizeStep::Op::Size,
                          mlir::getAffineConstantExpr(1, getContext()), 0}};
  auto position = static_cast<unsigned>(symbols.size());
  counters.push_back({position, {}, false});
  // Lists of what is defined have an entry for each.
  defined.push_back({one, mlir::getAffineSymbolExpr(position, getContext())});
  return addDefined("step", 1, maxDimension, {position, one});
}

Symbols::Counter &Symbols::counterOf(AffineExpr expr) {
  auto it = llvm::find_if(counters, [&](const Counter &counter) {
    return expr.isFunctionOfSymbol(counter.symbol);
  });
  assert(it != counters.end() && "no counter");
  return *it;
}

void Symbols::giveBack(AffineExpr expr) {
  Counter &counter = counterOf(expr);
  counter.isFree = true;
  counter.count = {};
}

void Symbols::dropFreeCounters() {
  while (!counters.empty() && counters.back().isFree &&
         counters.back().symbol + 1 == symbols.size()) {
    byName.erase(symbols.back().name);
    symbols.pop_back();
    declared.pop_back();
    values.pop_back();
    definitions.pop_back();
    defined.pop_back();
    counters.pop_back();
  }
}

void Symbols::setCount(AffineExpr expr, AffineExpr count) {
  counterOf(expr).count = count;
}

void Symbols::settleCount(AffineExpr expr) {
  Counter &counter = counterOf(expr);
  graph::Symbol &symbol = symbols[counter.symbol];
  symbol.max = std::clamp<int64_t>(bounds(counter.count).high, 1, symbol.max);
  facts.set(counter.symbol, symbol);
}

bool Symbols::namesCounter(AffineExpr expr) const {
  return llvm::any_of(counters, [&](const Counter &counter) {
    return expr.isFunctionOfSymbol(counter.symbol);
  });
}

namespace {
/// Which way an expression goes from step to step: up, down, neither, or one
/// way here and the other there.
enum class Way { None, Up, Down, Both };

class WayFinder {
public:
  WayFinder(unsigned counter,
            llvm::function_ref<graph::Interval(AffineExpr)> bounds)
      : counter(counter), bounds(bounds) {}

  Way of(AffineExpr expr) {
    if (!expr.isFunctionOfSymbol(counter))
      return Way::None;
    auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(expr);
    if (!binary)
      return Way::Up;
    AffineExpr a = binary.getLHS(), b = binary.getRHS();
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      return sum(of(a), of(b));
    case AffineExprKind::Mul:
      return a.isFunctionOfSymbol(counter) ? scaled(of(a), b)
                                           : scaled(of(b), a);
    case AffineExprKind::FloorDiv:
    case AffineExprKind::CeilDiv: // Divisors are positive.
      return b.isFunctionOfSymbol(counter) ? Way::Both : of(a);
    default:
      return Way::Both;
    }
  }

private:
  static Way sum(Way a, Way b) {
    return a == Way::None ? b : b == Way::None || a == b ? a : Way::Both;
  }
  Way scaled(Way way, AffineExpr by) {
    if (by.isFunctionOfSymbol(counter))
      return Way::Both;
    graph::Interval range = bounds(by);
    if (range.low >= 0 || way == Way::Both)
      return way;
    if (range.high > 0)
      return Way::Both;
    return way == Way::Up ? Way::Down : Way::Up;
  }

  unsigned counter;
  llvm::function_ref<graph::Interval(AffineExpr)> bounds;
};
} // namespace

/// The number of the last step. Of max(a, 0) steps it is a: where that is less
/// there is none.
AffineExpr Symbols::lastStep(const Counter &counter) const {
  using Op = graph::SizeStep::Op;
  AffineExpr count = resolve(counter.count);
  for (const auto &[program, result] : defined)
    if (program.size() == 3 && program[2].op == Op::Max && program[0].size &&
        program[1].size && graph::constantOf(program[1].size) == 0 &&
        graph::simplify(resolve(result)) == count)
      return resolve(program[0].size);
  return count;
}

/// What a remainder is no more than: its dividend, less such multiples of the
/// divisor as it has in all steps, as (i + 3) mod 3 is i mod 3; of one that may
/// be negative the divisor less 1.
static AffineExpr mostOfDividend(AffineExpr dividend, AffineExpr divisor,
                                 const Symbols &symbols) {
  if (!symbols.isNonNegative(dividend))
    return divisor - 1;
  auto by = graph::constantOf(divisor);
  int64_t low = symbols.bounds(dividend).low;
  return by && low > 0 ? dividend - low / *by * *by : dividend;
}

/// With each remainder in which the counter is replaced by what is the least of
/// it, or the most: no more, or no less, than the expression in any step. No
/// remainder is more than the divisor less 1, nor than a dividend that is not
/// negative, of which `ofDividend` takes the second.
static AffineExpr withoutRemainders(AffineExpr expr, unsigned counter,
                                    const Symbols &symbols, bool ofDividend,
                                    bool least) {
  auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(expr);
  if (!binary || !expr.isFunctionOfSymbol(counter))
    return expr;
  AffineExpr a = binary.getLHS(), b = binary.getRHS();
  auto of = [&](AffineExpr part, bool isLeast) {
    return withoutRemainders(part, counter, symbols, ofDividend, isLeast);
  };
  if (expr.getKind() == AffineExprKind::Add)
    return of(a, least) + of(b, least);
  if (b.isFunctionOfSymbol(counter))
    std::swap(a, b);
  if (b.isFunctionOfSymbol(counter))
    return expr;
  graph::Interval range = symbols.bounds(b);
  switch (expr.getKind()) {
  case AffineExprKind::Mul:
    return range.low >= 0    ? of(a, least) * b
           : range.high <= 0 ? of(a, !least) * b
                             : expr;
  case AffineExprKind::Mod:
    if (a != binary.getLHS() || range.low < 1)
      return expr;
    if (least)
      return mlir::getAffineConstantExpr(0, expr.getContext());
    return ofDividend ? mostOfDividend(a, b, symbols) : b - 1;
  default:
    return expr;
  }
}

AffineExpr Symbols::leastInSteps(AffineExpr expr, bool ofDividend) const {
  auto range = [&](AffineExpr e) { return bounds(e); };
  for (const Counter &counter : counters) {
    if (expr.isFunctionOfSymbol(counter.symbol))
      expr = graph::simplify(
          withoutRemainders(expr, counter.symbol, *this, ofDividend, true));
    Way way = WayFinder(counter.symbol, range).of(expr);
    if (way == Way::None)
      continue;
    if (way == Way::Both || !counter.count)
      return {};
    AffineExpr step = way == Way::Up
                          ? mlir::getAffineConstantExpr(1, getContext())
                          : lastStep(counter);
    expr = graph::simplify(expr.replace(
        mlir::getAffineSymbolExpr(counter.symbol, getContext()), step));
  }
  return expr;
}
