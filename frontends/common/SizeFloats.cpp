// Floats among what follows from sizes, and what is both: casts, comparisons
// and choices.
#include "frontends/common/SizeAlgebra.h"
#include "frontends/common/SizeCases.h"
#include "frontends/common/SizeEvaluator.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using graph::SizeProgram;
using graph::SizeStep;
using mlir::AffineExpr;
using mlir::Operation;
using StepOp = SizeStep::Op;

/// Steps of a program; a shape takes few.
constexpr size_t maxSteps = 256;

SizeElement SizeElement::ofSize(AffineExpr size) {
  SizeElement element;
  element.size = size;
  return element;
}

SizeElement SizeElement::ofNumber(double value) {
  SizeElement element;
  element.program.push_back({StepOp::Number, {}, value});
  return element;
}

std::optional<double> SizeElement::constantNumber() const {
  return program.size() == 1 && program[0].op == StepOp::Number
             ? std::optional(program[0].number)
             : std::nullopt;
}

/// Bits of the significand.
static int64_t precisionOf(mlir::Type type) {
  return type.isF64() ? 53 : type.isF32() ? 24 : type.isF16() ? 11 : 8;
}

bool charonia::frontend::isSizeFloat(mlir::Type type) {
  return type.isF64() || type.isF32() || type.isF16() || type.isBF16();
}

void SizeEvaluator::setExact(SizeElement &x, AffineExpr numerator,
                             int64_t shift, mlir::Type type) {
  // All of them are normal numbers in half precision, too.
  constexpr int64_t maxShift = 20, maxHalfShift = 13;
  if (!numerator || shift < 0 ||
      shift > (type.isF16() ? maxHalfShift : maxShift))
    return;
  int64_t most = int64_t(1) << std::min<int64_t>(precisionOf(type), 50);
  graph::Interval range = symbols.bounds(numerator);
  if (!range.isBounded() || range.low < -most || range.high > most)
    return;
  x.numerator = graph::simplify(numerator);
  x.shift = shift;
}

SizeElement SizeEvaluator::rounded(SizeElement x, mlir::Type type) {
  if (x.constantNumber())
    return x;
  if (type.isF32()) {
    x.program.push_back({StepOp::ToSingle, {}, 0});
  } else if (!type.isF64()) {
    if (!x.numerator)
      return {};
    x.program = {{StepOp::Size, x.numerator, 0},
                 {StepOp::ToFloat, {}, 0},
                 {StepOp::Number, {}, std::ldexp(1.0, -int(x.shift))},
                 {StepOp::FloatMul, {}, 0}};
  }
  return x.program.size() > maxSteps ? SizeElement() : x;
}

/// `value` as an integer times 2^-shift, if it is one of few bits.
static std::optional<std::pair<int64_t, int64_t>> dyadic(double value) {
  constexpr double most = 0x1p20;
  for (int64_t shift = 0; shift <= 20; ++shift) {
    double scaled = std::ldexp(value, static_cast<int>(shift));
    if (std::abs(scaled) > most)
      return std::nullopt;
    if (scaled == std::floor(scaled))
      return std::pair(static_cast<int64_t>(scaled), shift);
  }
  return std::nullopt;
}

SizeElement SizeEvaluator::asFraction(const SizeElement &x) {
  SizeElement result = x;
  result.numerator = symbols.resolve(x.numerator);
  auto number = x.constantNumber();
  if (auto exact = number && !x.numerator ? dyadic(*number) : std::nullopt) {
    result.numerator =
        mlir::getAffineConstantExpr(exact->first, symbols.getContext());
    result.shift = exact->second;
  }
  return result;
}

/// The numerators of two fractions over the larger of their denominators.
static std::pair<AffineExpr, AffineExpr>
alignedNumerators(const SizeElement &a, const SizeElement &b) {
  unsigned shift = std::max(a.shift, b.shift);
  return {a.numerator * (int64_t(1) << (shift - a.shift)),
          b.numerator * (int64_t(1) << (shift - b.shift))};
}

SizeElement SizeEvaluator::castTo(mlir::Type from, mlir::Type to,
                                  const SizeElement &x) {
  if (to.isInteger(1))
    return compared(Predicate::ne, x,
                    from.isIntOrIndex()
                        ? SizeElement::ofSize(mlir::getAffineConstantExpr(
                              0, symbols.getContext()))
                        : SizeElement::ofNumber(0),
                    from);
  if (from.isIntOrIndex() && to.isIntOrIndex())
    return fits(x.size, to) ? x : SizeElement();
  SizeElement result;
  if (from.isIntOrIndex() && isSizeFloat(to)) {
    result.program = {{StepOp::Size, x.size, 0}, {StepOp::ToFloat, {}, 0}};
    setExact(result, x.size, 0, to);
    return rounded(std::move(result), to);
  }
  if (isSizeFloat(from) && isSizeFloat(to)) {
    if (precisionOf(to) >= precisionOf(from) && !to.isF16())
      return x;
    result.program = x.program;
    SizeElement exact = asFraction(x);
    setExact(result, exact.numerator, exact.shift, to);
    if (x.constantNumber() && !result.numerator && !to.isF32())
      return {};
    result.program = x.program;
    if (x.constantNumber() && to.isF32())
      result.program[0].number = float(result.program[0].number);
    return rounded(std::move(result), to);
  }
  if (!isSizeFloat(from) ||
      !(to.isIndex() || to.isInteger(64) || to.isInteger(32)) ||
      to.isUnsignedInteger())
    return {};
  SizeElement exact = asFraction(x);
  if (exact.numerator &&
      (exact.shift == 0 || symbols.isNonNegative(exact.numerator)))
    return SizeElement::ofSize(
        graph::simplify(exact.numerator.floorDiv(int64_t(1) << exact.shift)));
  result.program = x.program;
  result.program.push_back({StepOp::Truncate, {}, 0});
  return SizeElement::ofSize(symbols.define(result.program));
}

SizeElement SizeEvaluator::compared(Predicate predicate, const SizeElement &x,
                                    const SizeElement &y, mlir::Type type) {
  if (type.isIntOrIndex())
    return SizeElement::ofSize(truthOf(
        symbols, predicate, symbols.resolve(x.size), symbols.resolve(y.size)));
  if (!isSizeFloat(type))
    return {};
  SizeElement a = asFraction(x), b = asFraction(y);
  if (a.numerator && b.numerator) {
    auto [left, right] = alignedNumerators(a, b);
    return SizeElement::ofSize(truthOf(
        symbols, predicate, graph::simplify(left), graph::simplify(right)));
  }
  // Differences of unequal floats are not 0; what is above becomes 1.
  SizeProgram program;
  auto above = [&](const SizeElement &u, const SizeElement &v) {
    program.append(u.program);
    program.append(v.program);
    program.push_back({StepOp::FloatSub, {}, 0});
  };
  bool swaps = predicate == Predicate::lt || predicate == Predicate::ge;
  bool isEquality = predicate == Predicate::eq || predicate == Predicate::ne;
  above(swaps ? b : a, swaps ? a : b);
  if (isEquality) {
    above(b, a);
    program.push_back({StepOp::FloatMax, {}, 0});
  }
  program.append({{StepOp::Number, {}, 0},
                  {StepOp::FloatMax, {}, 0},
                  {StepOp::Number, {}, 1},
                  {StepOp::FloatMin, {}, 0},
                  {StepOp::Ceil, {}, 0},
                  {StepOp::Truncate, {}, 0}});
  AffineExpr holds =
      program.size() <= maxSteps ? symbols.define(program) : AffineExpr();
  bool negates = predicate == Predicate::eq || predicate == Predicate::ge ||
                 predicate == Predicate::le;
  return SizeElement::ofSize(holds && negates ? graph::simplify(1 - holds)
                                              : holds);
}

/// One of two floats: the sum of it and a product of the other with 0.
static SizeProgram mixOf(const Symbols &symbols, AffineExpr condition,
                         llvm::ArrayRef<SizeStep> a,
                         llvm::ArrayRef<SizeStep> b) {
  // What is not chosen need not be a number, so it is made one.
  SizeProgram first = programWhere(symbols, condition, true, a),
              second = programWhere(symbols, condition, false, b), result;
  auto append = [&](AffineExpr factor, const SizeProgram &value) {
    result.push_back({StepOp::Size, graph::simplify(factor), 0});
    result.push_back({StepOp::ToFloat, {}, 0});
    result.append(value);
    result.push_back({StepOp::FloatMul, {}, 0});
  };
  append(condition, first);
  append(1 - condition, second);
  result.push_back({StepOp::FloatAdd, {}, 0});
  // Nothing lies beyond both.
  auto bounds = [&](AffineExpr size) { return symbols.bounds(size); };
  auto x = graph::rangeOf(first, bounds), y = graph::rangeOf(second, bounds);
  if (x && y)
    result.append({{StepOp::Number, {}, std::min(x->low, y->low)},
                   {StepOp::FloatMax, {}, 0},
                   {StepOp::Number, {}, std::max(x->high, y->high)},
                   {StepOp::FloatMin, {}, 0}});
  return result;
}

SizeElement SizeEvaluator::chosen(llvm::ArrayRef<SizeElement> x,
                                  mlir::Type type) {
  AffineExpr condition = symbols.resolve(x[0].size);
  if (auto value = condition ? graph::constantOf(condition) : std::nullopt)
    return x[*value ? 1 : 2];
  if (!condition || !x[1].isKnown() || !x[2].isKnown())
    return {};
  if (type.isIntOrIndex())
    return SizeElement::ofSize(choiceOf(symbols, condition,
                                        symbols.resolve(x[1].size),
                                        symbols.resolve(x[2].size)));
  if (!isSizeFloat(type))
    return {};
  SizeElement result;
  result.program = mixOf(symbols, condition, x[1].program, x[2].program);
  SizeElement a = asFraction(x[1]), b = asFraction(x[2]);
  if (a.numerator && b.numerator) {
    auto [left, right] = alignedNumerators(a, b);
    setExact(result, choiceOf(symbols, condition, left, right),
             std::max(a.shift, b.shift), type);
  }
  return rounded(std::move(result), type);
}

SizeElement SizeEvaluator::combine(graph::ReduceKind kind,
                                   llvm::ArrayRef<SizeElement> x,
                                   mlir::Type type) {
  if (!x[0].isKnown() || !x[1].isKnown())
    return {};
  using Kind = graph::ReduceKind;
  if (!type.isIntOrIndex())
    return isSizeFloat(type) ? floatStep(kind == Kind::sum    ? StepOp::FloatAdd
                                         : kind == Kind::prod ? StepOp::FloatMul
                                         : kind == Kind::max ? StepOp::FloatMax
                                                             : StepOp::FloatMin,
                                         x, type)
                             : SizeElement();
  AffineExpr a = symbols.resolve(x[0].size), b = symbols.resolve(x[1].size);
  AffineExpr size = kind == Kind::sum ? graph::simplify(a + b)
                    : kind == Kind::prod
                        ? graph::simplify(a * b)
                        : largerOf(symbols, a, b, kind == Kind::max);
  return size && fits(size, type) ? SizeElement::ofSize(size) : SizeElement();
}

/// The step of a float operator; none for those that have no step.
static std::optional<StepOp> stepOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<StepOp>>(op)
      .Case([](graph::AddOp) { return StepOp::FloatAdd; })
      .Case([](graph::SubOp) { return StepOp::FloatSub; })
      .Case([](graph::MulOp) { return StepOp::FloatMul; })
      .Case([](graph::DivOp) { return StepOp::FloatDiv; })
      .Case([](graph::MaxOp) { return StepOp::FloatMax; })
      .Case([](graph::MinOp) { return StepOp::FloatMin; })
      .Case([](graph::FloorOp) { return StepOp::Floor; })
      .Case([](graph::CeilOp) { return StepOp::Ceil; })
      .Case([](graph::RoundOp) { return StepOp::Round; })
      .Case([](graph::SqrtOp) { return StepOp::Sqrt; })
      .Default([](Operation *) { return std::nullopt; });
}

SizeElement SizeEvaluator::floats(Operation *op,
                                  llvm::ArrayRef<SizeElement> x) {
  mlir::Type type = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  if (llvm::isa<graph::NegOp>(op))
    return floatStep(StepOp::FloatMul, {x[0], SizeElement::ofNumber(-1)}, type);
  if (llvm::isa<graph::ReciprocalOp>(op))
    return floatStep(StepOp::FloatDiv, {SizeElement::ofNumber(1), x[0]}, type);
  if (llvm::isa<graph::AbsOp>(op))
    return floatStep(StepOp::FloatMax,
                     {x[0], floatStep(StepOp::FloatMul,
                                      {x[0], SizeElement::ofNumber(-1)}, type)},
                     type);
  if (llvm::isa<graph::FmodOp>(op))
    return floatRemainder(x[0], x[1], type);
  auto step = stepOf(op);
  return step ? floatStep(*step, x, type) : SizeElement();
}

/// With the sign of `a`; of fractions it is one, whatever they are.
SizeElement SizeEvaluator::floatRemainder(const SizeElement &x,
                                          const SizeElement &y,
                                          mlir::Type type) {
  SizeElement a = asFraction(x), b = asFraction(y), result;
  if (!a.numerator || !b.numerator)
    return {};
  auto [left, right] = alignedNumerators(a, b);
  AffineExpr rest = SizeAlgebra(symbols).remainder(graph::simplify(left),
                                                   graph::simplify(right));
  setExact(result, rest, std::max(a.shift, b.shift), type);
  if (!result.numerator)
    return {};
  result.program = {{StepOp::Size, result.numerator, 0},
                    {StepOp::ToFloat, {}, 0},
                    {StepOp::Number, {}, std::ldexp(1.0, -int(result.shift))},
                    {StepOp::FloatMul, {}, 0}};
  return result;
}

SizeElement SizeEvaluator::floatStep(StepOp step, llvm::ArrayRef<SizeElement> x,
                                     mlir::Type type) {
  SizeElement result;
  for (const SizeElement &operand : x) {
    if (!operand.isKnown())
      return {};
    result.program.append(operand.program);
  }
  result.program.push_back({step, {}, 0});
  // What stays exact.
  auto factor = [&](unsigned i) {
    auto number = x[i].constantNumber();
    return number ? dyadic(*number) : std::nullopt;
  };
  SizeElement a = asFraction(x[0]),
              b = x.size() > 1 ? asFraction(x[1]) : SizeElement();
  int64_t one = 1;
  switch (step) {
  case StepOp::FloatAdd:
  case StepOp::FloatSub: {
    if (!a.numerator || !b.numerator)
      break;
    auto [left, right] = alignedNumerators(a, b);
    setExact(result, step == StepOp::FloatAdd ? left + right : left - right,
             std::max(a.shift, b.shift), type);
    break;
  }
  case StepOp::FloatMax:
  case StepOp::FloatMin: {
    if (!a.numerator || !b.numerator)
      break;
    auto [left, right] = alignedNumerators(a, b);
    setExact(result,
             largerOf(symbols, graph::simplify(left), graph::simplify(right),
                      step == StepOp::FloatMax),
             std::max(a.shift, b.shift), type);
    break;
  }
  case StepOp::FloatMul:
    if (a.numerator && factor(1))
      setExact(result, a.numerator * factor(1)->first,
               a.shift + factor(1)->second, type);
    else if (b.numerator && factor(0))
      setExact(result, b.numerator * factor(0)->first,
               b.shift + factor(0)->second, type);
    break;
  case StepOp::FloatDiv:
    // By a power of two.
    if (auto by = factor(1);
        by && a.numerator && by->first > 0 && !(by->first & (by->first - 1))) {
      int64_t shift = a.shift - by->second + llvm::Log2_64(by->first);
      setExact(result,
               shift < 0 ? a.numerator * (one << std::min<int64_t>(-shift, 40))
                         : a.numerator,
               std::max<int64_t>(shift, 0), type);
    }
    break;
  case StepOp::Floor:
  case StepOp::Ceil:
    if (a.numerator)
      setExact(result,
               step == StepOp::Floor ? a.numerator.floorDiv(one << a.shift)
                                     : a.numerator.ceilDiv(one << a.shift),
               0, type);
    break;
  case StepOp::Round:
    if (a.numerator && a.shift == 0)
      setExact(result, a.numerator, 0, type);
    break;
  default:
    break;
  }
  return rounded(std::move(result), type);
}
