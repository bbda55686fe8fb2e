#include "frontends/common/SizeCases.h"

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using mlir::AffineExpr;
using StepOp = graph::SizeStep::Op;

static AffineExpr numberLike(AffineExpr expr, int64_t value) {
  return mlir::getAffineConstantExpr(value, expr.getContext());
}

AffineExpr charonia::frontend::largerOf(Symbols &symbols, AffineExpr a,
                                        AffineExpr b, bool largest) {
  if (symbols.isAtLeast(a, b))
    return largest ? a : b;
  if (symbols.isAtLeast(b, a))
    return largest ? b : a;
  AffineExpr result =
      symbols.define({{StepOp::Size, a, 0},
                      {StepOp::Size, b, 0},
                      {largest ? StepOp::Max : StepOp::Min, {}, 0}});
  for (AffineExpr other : {a, b})
    symbols.learnAtLeast(largest ? result : other, largest ? other : result);
  return result;
}

/// 1 where the difference is from 1 on, else 0.
static graph::SizeProgram orderOf(AffineExpr difference) {
  return {{StepOp::Size, difference, 0},
          {StepOp::Size, numberLike(difference, 0), 0},
          {StepOp::Max, {}, 0},
          {StepOp::Size, numberLike(difference, 1), 0},
          {StepOp::Min, {}, 0}};
}

AffineExpr charonia::frontend::truthOf(Symbols &symbols, Predicate predicate,
                                       AffineExpr a, AffineExpr b) {
  AffineExpr zero = numberLike(a, 0), one = numberLike(a, 1);
  auto negated = [&](AffineExpr holds) {
    return holds ? graph::simplify(one - holds) : holds;
  };
  switch (predicate) {
  case Predicate::eq:
    return negated(truthOf(symbols, Predicate::ne, a, b));
  case Predicate::ge:
    return negated(truthOf(symbols, Predicate::lt, a, b));
  case Predicate::le:
    return negated(truthOf(symbols, Predicate::lt, b, a));
  case Predicate::gt:
    return truthOf(symbols, Predicate::lt, b, a);
  case Predicate::lt:
  case Predicate::ne:
    break;
  }
  // Of two that are ordered, different ones are in order.
  if (predicate == Predicate::ne && symbols.isAtLeast(b, a))
    return truthOf(symbols, Predicate::lt, a, b);
  if (predicate == Predicate::ne && symbols.isAtLeast(a, b))
    return truthOf(symbols, Predicate::lt, b, a);
  bool isLess = symbols.isAtLeast(b, graph::simplify(a + 1)),
       isMore = symbols.isAtLeast(a, graph::simplify(b + 1));
  bool isOrder = predicate == Predicate::lt;
  if (isLess || (isMore && !isOrder))
    return one;
  if (symbols.isAtLeast(a, b) && (isOrder || symbols.isAtLeast(b, a)))
    return zero;
  graph::SizeProgram program = orderOf(graph::simplify(b - a));
  if (!isOrder)
    program.insert(
        program.begin() + 3,
        {{StepOp::Size, graph::simplify(a - b), 0}, {StepOp::Max, {}, 0}});
  return symbols.define(program);
}

/// An expression from 1 on where `condition` holds and up to 0 elsewhere; null
/// where it is no order of two sizes. Turns `holds` around for a negation.
static AffineExpr aboveZeroWhere(const Symbols &symbols, AffineExpr condition,
                                 bool &holds) {
  // What may be 0 is a symbol less 1 (Symbols::define).
  auto asSymbol = [](AffineExpr expr) {
    return llvm::dyn_cast<mlir::AffineSymbolExpr>(graph::simplify(expr));
  };
  auto symbol = asSymbol(condition + 1);
  if (!symbol) {
    symbol = asSymbol(2 - condition);
    holds = !holds;
  }
  const graph::SizeProgram *program =
      symbol ? symbols.programOf(symbol.getPosition()) : nullptr;
  AffineExpr difference = program ? program->front().size : AffineExpr();
  if (!difference)
    return {};
  // As truthOf writes it: the least of 1 and the largest of 0 and a difference.
  graph::SizeProgram order = orderOf(difference);
  order.push_back(
      {StepOp::Size, mlir::getAffineConstantExpr(-1, symbols.getContext()), 0});
  order.push_back({StepOp::Sub, {}, 0});
  if (*program != order)
    return {};
  difference = symbols.resolve(difference);
  int64_t divisor = difference.getLargestKnownDivisor();
  return divisor > 1 ? graph::simplify(difference.floorDiv(divisor))
                     : difference;
}

graph::Interval charonia::frontend::rangeWhere(const Symbols &symbols,
                                               AffineExpr condition, bool holds,
                                               AffineExpr size) {
  graph::Interval plain = symbols.bounds(size), range = plain;
  AffineExpr above = aboveZeroWhere(symbols, condition, holds);
  if (!above || !plain.isBounded())
    return plain;
  // The size is itself less a difference, or with it, and what that adds.
  graph::Interval without = symbols.bounds(graph::simplify(size - above)),
                  with = symbols.bounds(graph::simplify(size + above));
  if (!without.isBounded() || !with.isBounded())
    return plain;
  if (holds) {
    range.low = std::max(range.low, without.low + 1);
    range.high = std::min(range.high, with.high - 1);
  } else {
    range.low = std::max(range.low, with.low);
    range.high = std::min(range.high, without.high);
  }
  return range.low <= range.high ? range : plain;
}

/// Brings the integer that the program gives into a range that is narrower.
static void narrow(graph::SizeProgram &program, graph::Interval known,
                   graph::Interval range, mlir::MLIRContext *context) {
  auto step = [&](int64_t bound, StepOp op) {
    program.push_back(
        {StepOp::Size, mlir::getAffineConstantExpr(bound, context), 0});
    program.push_back({op, {}, 0});
  };
  if (range.low > known.low)
    step(range.low, StepOp::Max);
  if (range.high < known.high)
    step(range.high, StepOp::Min);
}

graph::SizeProgram
charonia::frontend::programWhere(const Symbols &symbols, AffineExpr condition,
                                 bool holds,
                                 llvm::ArrayRef<graph::SizeStep> program) {
  graph::SizeProgram result;
  for (const graph::SizeStep &step : program) {
    result.push_back(step);
    if (step.op != StepOp::Size)
      continue;
    AffineExpr size = symbols.resolve(step.size);
    narrow(result, symbols.bounds(size),
           rangeWhere(symbols, condition, holds, size), symbols.getContext());
  }
  return result;
}

AffineExpr charonia::frontend::choiceOf(Symbols &symbols, AffineExpr condition,
                                        AffineExpr a, AffineExpr b) {
  if (auto value = graph::constantOf(condition))
    return *value ? a : b;
  AffineExpr mixed = graph::simplify(b + condition * (a - b));
  if (a == b || (graph::constantOf(a) && graph::constantOf(b)))
    return mixed;
  // It lies between the two, and in the range of either where that is chosen.
  graph::SizeProgram program{
      {StepOp::Size, mixed, 0}, {StepOp::Size, a, 0}, {StepOp::Size, b, 0},
      {StepOp::Max, {}, 0},     {StepOp::Min, {}, 0}, {StepOp::Size, a, 0},
      {StepOp::Size, b, 0},     {StepOp::Min, {}, 0}, {StepOp::Max, {}, 0}};
  auto either = [](graph::Interval x, graph::Interval y) {
    return graph::Interval{std::min(x.low, y.low), std::max(x.high, y.high)};
  };
  narrow(program, either(symbols.bounds(a), symbols.bounds(b)),
         either(rangeWhere(symbols, condition, true, a),
                rangeWhere(symbols, condition, false, b)),
         symbols.getContext());
  AffineExpr result = symbols.define(program);
  for (auto [low, high] : {std::pair(a, b), std::pair(b, a)})
    if (symbols.isAtLeast(high, low)) {
      symbols.learnAtLeast(result, low);
      symbols.learnAtLeast(high, result);
    }
  return result;
}
