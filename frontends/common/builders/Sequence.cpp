#include "frontends/common/builders/Sequence.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// Elements of a range of floats; null with a problem.
static AffineExpr countFloats(Operands &n, bool countsInType, Emitter &e) {
  using Op = graph::SizeStep::Op;
  mlir::Type element = elementOf(n.input(0));
  SmallVector<SizeElement> parts;
  for (unsigned i : {0, 1, 2})
    if (SizeElements part = e.evaluateNumbers(n.input(i)); part.size() == 1)
      parts.push_back(part.front());
  auto isConstant = [](const SizeElement &x) { return x.constantNumber(); };
  if (parts.size() == 3 && !llvm::all_of(parts, isConstant)) {
    graph::SizeProgram program(parts[1].program);
    program.append(parts[0].program);
    program.push_back({Op::FloatSub, {}, 0});
    if (countsInType && !element.isF64())
      program.push_back({Op::ToSingle, {}, 0});
    program.append(parts[2].program);
    program.push_back({Op::FloatDiv, {}, 0});
    if (countsInType && !element.isF64())
      program.push_back({Op::ToSingle, {}, 0});
    program.append({{Op::Ceil, {}, 0},
                    {Op::Number, {}, 0},
                    {Op::FloatMax, {}, 0},
                    {Op::Truncate, {}, 0}});
    if (AffineExpr count = e.getSymbols().define(program))
      return count;
    return e.fail("cannot tell how long the range may be",
                  "narrow the ranges of sizes with --shape");
  }
  auto from = n.constantNumber(0), to = n.constantNumber(1),
       by = n.constantNumber(2);
  if (failed(from) || failed(to) || failed(by))
    return {};
  double steps = std::ceil((*to - *from) / *by);
  if (countsInType && !element.isF64())
    steps = std::ceil((static_cast<float>(*to) - static_cast<float>(*from)) /
                      static_cast<float>(*by));
  if (!(steps < double(maxDimension)))
    return e.fail("the range is absurdly long, or its step is 0");
  return e.number(static_cast<int64_t>(std::max(steps, 0.0)));
}

Value charonia::frontend::buildRange(Operands &n, bool countsInType,
                                     Emitter &e) {
  mlir::Type element = elementOf(n.input(0));
  for (unsigned i : {0, 1, 2})
    if (failed(n.needsRank(i, 0, 1)))
      return {};
  Value start = e.reshape(n.input(0), {}), delta = e.reshape(n.input(2), {});
  AffineExpr count;
  if (llvm::isa<mlir::FloatType>(element)) {
    count = countFloats(n, countsInType, e);
    if (!count)
      return {};
  } else {
    auto from = n.known(0), to = n.known(1);
    auto by = n.constantInteger(2);
    if (failed(from) || failed(to) || failed(by))
      return {};
    if (from->size() != 1 || to->size() != 1 || *by == 0 ||
        std::abs(*by) > maxDimension)
      return e.fail(
          "start, limit and delta have to be scalars, and delta not 0");
    for (AffineExpr bound : {from->front(), to->front()})
      if (auto known = graph::constantOf(bound);
          known && std::abs(*known) > maxDimension)
        return e.fail("a bound of " + Twine(*known) + " is absurdly large");
    AffineExpr span = graph::simplify(*by > 0 ? to->front() - from->front()
                                              : from->front() - to->front());
    Symbols &symbols = e.getSymbols();
    if (symbols.isAtLeast(e.number(0), span))
      count = e.number(0);
    else if (symbols.assumeAtLeast(span, e.number(0),
                                   "so that a range does not run backwards"))
      count = graph::simplify(span.ceilDiv(std::abs(*by)));
    else
      return e.fail("cannot tell whether the range is empty for " +
                        symbols.describeRanges(span),
                    "narrow the ranges with --shape");
  }
  // Half types count in float, as the definition's default has it.
  mlir::Type wide = elementOf(e.widen(start));
  Value steps = e.cast(e.iota({count}, 0, e.getBuilder().getI64Type()), wide);
  // Ranges mostly count from 0 by 1.
  auto is = [&](unsigned i, int64_t value) {
    auto known = e.evaluate(n.input(i)).constants();
    return known && known->front() == value;
  };
  if (!is(2, 1))
    steps = e.mul(steps, e.cast(delta, wide));
  if (!is(0, 0))
    steps = e.add(e.cast(start, wide), steps);
  return e.cast(steps, element);
}

/// The element of a tensor of integers at `coordinates`, by the place in a
/// vector of `count` elements that dim 0 is; null where it cannot be told.
static AffineExpr elementAt(Value value, llvm::ArrayRef<AffineExpr> coordinates,
                            AffineExpr count, Emitter &e, int depth = 0) {
  constexpr int maxDepth = 16;
  constexpr unsigned leastBits = 32;
  // There are fewer elements than integers of 32 bits count.
  if (depth > maxDepth || !elementOf(value).isIntOrIndex() ||
      elementOf(value).getIntOrFloatBitWidth() < leastBits)
    return {};
  if (auto known = e.evaluate(value); known && known.elements->size() == 1)
    return known.elements->front();
  auto op = value.getDefiningOp<graph::GraphOpInterface>();
  if (!op)
    return {};
  return op.getContentAt(
      coordinates, count,
      [&](unsigned operand, llvm::ArrayRef<AffineExpr> inner) {
        // What wrapped in between is the same again in the end.
        return op.commutesWithWrapping(operand)
                   ? elementAt(op->getOperand(operand), inner, count, e,
                               depth + 1)
                   : AffineExpr();
      });
}

bool charonia::frontend::countsFromZero(Value value, Emitter &e) {
  if (rankOf(value) != 1 || !elementOf(value).isIntOrIndex())
    return false;
  if (auto known = e.evaluate(value).constants()) {
    for (auto [i, number] : llvm::enumerate(*known))
      if (number != static_cast<int64_t>(i))
        return false;
    return true;
  }
  AffineExpr count = graph::getShape(value)[0],
             place = mlir::getAffineDimExpr(0, e.getContext());
  AffineExpr element = elementAt(value, place, count, e);
  return element && graph::simplify(element - place) == 0;
}

Value charonia::frontend::buildCumulative(Value x, graph::ReduceKind kind,
                                          int64_t axis, bool exclusive,
                                          bool reverse, Emitter &e) {
  Value terms = e.widen(x);
  if (!terms)
    return {};
  // Elements move on by one, and the neutral one comes first.
  if (exclusive) {
    SmallVector<int64_t> lows(rankOf(x), 0);
    lows[axis] = reverse ? -1 : 1;
    terms = e.pad(
        graph::PadMode::constant, terms,
        e.scalar(int64_t(kind == graph::ReduceKind::prod), elementOf(terms)),
        e.numbers(lows), graph::getShape(x));
  }
  SmallVector<mlir::NamedAttribute> attributes = {
      e.attr("kind", graph::ReduceKindAttr::get(e.getContext(), kind)),
      e.attr("axis", axis)};
  if (reverse)
    attributes.push_back(e.unit("reverse"));
  return e.cast(e.op<graph::ScanOp>({terms}, attributes), elementOf(x));
}
