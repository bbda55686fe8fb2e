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
  bool isLess = symbols.isAtLeast(b, graph::simplify(a + 1)),
       isMore = symbols.isAtLeast(a, graph::simplify(b + 1));
  bool isOrder = predicate == Predicate::lt;
  if (isLess || (isMore && !isOrder))
    return one;
  if (symbols.isAtLeast(a, b) && (isOrder || symbols.isAtLeast(b, a)))
    return zero;
  graph::SizeProgram program{{StepOp::Size, graph::simplify(b - a), 0},
                             {StepOp::Size, zero, 0},
                             {StepOp::Max, {}, 0}};
  if (!isOrder)
    program.append(
        {{StepOp::Size, graph::simplify(a - b), 0}, {StepOp::Max, {}, 0}});
  program.append({{StepOp::Size, one, 0}, {StepOp::Min, {}, 0}});
  return symbols.define(program);
}

AffineExpr charonia::frontend::choiceOf(Symbols &symbols, AffineExpr condition,
                                        AffineExpr a, AffineExpr b) {
  if (auto value = graph::constantOf(condition))
    return *value ? a : b;
  AffineExpr mixed = graph::simplify(b + condition * (a - b));
  if (a == b || (graph::constantOf(a) && graph::constantOf(b)))
    return mixed;
  // It lies between the two.
  AffineExpr result = symbols.define({{StepOp::Size, mixed, 0},
                                      {StepOp::Size, a, 0},
                                      {StepOp::Size, b, 0},
                                      {StepOp::Max, {}, 0},
                                      {StepOp::Min, {}, 0},
                                      {StepOp::Size, a, 0},
                                      {StepOp::Size, b, 0},
                                      {StepOp::Min, {}, 0},
                                      {StepOp::Max, {}, 0}});
  for (auto [low, high] : {std::pair(a, b), std::pair(b, a)})
    if (symbols.isAtLeast(high, low)) {
      symbols.learnAtLeast(result, low);
      symbols.learnAtLeast(high, result);
    }
  return result;
}
