#include "codegen/tile/analysis/Values.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using graph::Interval;

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

static Interval rangeOf(Value value, unsigned left);

/// The counter of a loop: from its lower bound in steps that stay below the
/// upper one.
static Interval counterRange(scf::ForOp loop, unsigned left) {
  Interval from = rangeOf(loop.getLowerBound(), left - 1),
           to = rangeOf(loop.getUpperBound(), left - 1);
  Interval range{from.low, Interval::noHigh};
  APInt step;
  if (to.high == Interval::noHigh || to.high <= from.low)
    return range;
  range.high = to.high - 1;
  if (from.low == from.high && from.low >= 0 &&
      matchPattern(loop.getStep(), m_ConstantInt(&step)) &&
      step.isStrictlyPositive())
    range.high -= (range.high - from.low) % step.getSExtValue();
  return range;
}

static Interval programRange(Operation *op) {
  auto grid = op->getParentOfType<func::FuncOp>()->getAttrOfType<AffineMapAttr>(
      tile::kGridAttr);
  if (!grid || !grid.getValue().isSingleConstant() ||
      grid.getValue().getSingleConstantResult() < 1)
    return {0, Interval::noHigh};
  return {0, grid.getValue().getSingleConstantResult() - 1};
}

static Interval rangeOf(Value value, unsigned left) {
  // Narrow integers wrap; indices do not.
  Type type = getElementTypeOrSelf(value);
  if (!(type.isIndex() || type.isInteger(64)) || left == 0)
    return {};
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return {constant.getSExtValue(), constant.getSExtValue()};
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return argument == loop.getInductionVar() ? counterRange(loop, left)
                                                : Interval{};
    // A kernel's integers are sizes.
    return isa<func::FuncOp>(parent) ? Interval{0, Interval::noHigh}
                                     : Interval{};
  }
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned i) {
    return rangeOf(op->getOperand(i), left - 1);
  };
  // Unsigned operations see large numbers in place of negative ones.
  auto bothSizes = [&] { return operand(0).low >= 0 && operand(1).low >= 0; };
  using namespace mlir::arith;
  return TypeSwitch<Operation *, Interval>(op)
      .Case<tile::ProgramIdOp>([&](auto) { return programRange(op); })
      .Case<AddIOp>([&](auto) { return operand(0) + operand(1); })
      .Case<SubIOp>(
          [&](auto) { return operand(0) + operand(1) * Interval{-1, -1}; })
      .Case<MulIOp>([&](auto) { return operand(0) * operand(1); })
      .Case<FloorDivSIOp>(
          [&](auto) { return graph::floorDivide(operand(0), operand(1)); })
      .Case<CeilDivSIOp>(
          [&](auto) { return graph::ceilDivide(operand(0), operand(1)); })
      .Case<DivUIOp, DivSIOp>([&](auto) {
        return bothSizes() ? graph::floorDivide(operand(0), operand(1))
                           : Interval{};
      })
      .Case<CeilDivUIOp>([&](auto) {
        return bothSizes() ? graph::ceilDivide(operand(0), operand(1))
                           : Interval{};
      })
      .Case<RemUIOp>([&](auto) {
        Interval by = operand(1);
        if (by.low < 0)
          return Interval{};
        return graph::modulo(operand(0), by);
      })
      .Case<RemSIOp>([&](auto) {
        return bothSizes() ? graph::modulo(operand(0), operand(1)) : Interval{};
      })
      .Case<MinSIOp>([&](auto) -> Interval {
        Interval a = operand(0), b = operand(1);
        return {std::min(a.low, b.low), std::min(a.high, b.high)};
      })
      .Case<MaxSIOp>([&](auto) -> Interval {
        Interval a = operand(0), b = operand(1);
        return {std::max(a.low, b.low), std::max(a.high, b.high)};
      })
      .Case<MinUIOp, MaxUIOp>([&](auto) -> Interval {
        Interval a = operand(0), b = operand(1);
        if (a.low < 0 || b.low < 0)
          return {};
        return isa<MinUIOp>(op)
                   ? Interval{std::min(a.low, b.low), std::min(a.high, b.high)}
                   : Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
      })
      .Case<SelectOp>([&](auto) -> Interval {
        Interval a = operand(1), b = operand(2);
        return {std::min(a.low, b.low), std::max(a.high, b.high)};
      })
      .Case<tile::SplatOp, tile::BroadcastOp, tile::TransposeOp>(
          [&](auto) { return operand(0); })
      .Case<tile::IndexOp>([&](tile::IndexOp index) {
        graph::Facts facts;
        for (int64_t extent : index.getType().getShape())
          facts.dims.push_back({0, extent - 1});
        for (Value symbol : index.getSymbols())
          facts.symbols.push_back(rangeOf(symbol, left - 1));
        return graph::boundsOf(index.getMap().getResult(0), facts);
      })
      .Default([](Operation *) { return Interval{}; });
}

Interval charonia::tile::rangeOf(Value value, unsigned most) {
  return ::rangeOf(value, most);
}

//===----------------------------------------------------------------------===//
// Divisors
//===----------------------------------------------------------------------===//

static int64_t divisorOf(Value value, unsigned left) {
  // Narrow integers wrap; indices do not.
  Type type = getElementTypeOrSelf(value);
  if (!(type.isIndex() || type.isInteger(64)))
    return 1;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isMinSignedValue() ? 1 : std::abs(constant.getSExtValue());
  if (left == 0)
    return 1;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent);
        loop && argument == loop.getInductionVar())
      return std::gcd(divisorOf(loop.getLowerBound(), left - 1),
                      divisorOf(loop.getStep(), left - 1));
    if (auto function = dyn_cast<func::FuncOp>(parent))
      if (auto divisor = function.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), tile::kDivisorAttr))
        return std::max<int64_t>(divisor.getInt(), 1);
    return 1;
  }
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned i) {
    return divisorOf(op->getOperand(i), left - 1);
  };
  using namespace mlir::arith;
  return TypeSwitch<Operation *, int64_t>(op)
      .Case<MulIOp>([&](auto) {
        int64_t a = operand(0), b = operand(1), product;
        return llvm::MulOverflow(a, b, product) ? a : product;
      })
      .Case<AddIOp, SubIOp, MinSIOp, MaxSIOp, MinUIOp, MaxUIOp, RemSIOp>(
          [&](auto) { return std::gcd(operand(0), operand(1)); })
      .Case<RemUIOp>([&](auto) {
        return rangeOf(op->getOperand(0), left - 1).low >= 0
                   ? std::gcd(operand(0), operand(1))
                   : 1;
      })
      .Case<SelectOp>([&](auto) { return std::gcd(operand(1), operand(2)); })
      .Case<DivSIOp, DivUIOp, FloorDivSIOp, CeilDivSIOp, CeilDivUIOp>(
          [&](auto) -> int64_t {
            // Unsigned, a negative number is 2^64 more: another multiple.
            if (isa<DivUIOp, CeilDivUIOp>(op) &&
                rangeOf(op->getOperand(0), left - 1).low < 0)
              return 1;
            APInt by;
            if (matchPattern(op->getOperand(1), m_ConstantInt(&by)) &&
                by.isStrictlyPositive())
              if (int64_t all = operand(0); all % by.getSExtValue() == 0)
                return all / by.getSExtValue();
            return 1;
          })
      .Case<tile::SplatOp, tile::BroadcastOp, tile::TransposeOp>(
          [&](auto) { return operand(0); })
      .Case<tile::IndexOp>([&](tile::IndexOp index) {
        graph::Facts facts;
        for (Value symbol : index.getSymbols())
          facts.symbolDivisors.push_back(divisorOf(symbol, left - 1));
        return graph::divisorOf(index.getMap().getResult(0), facts);
      })
      .Default([](Operation *) { return int64_t(1); });
}

int64_t charonia::tile::divisorOf(Value value) {
  return ::divisorOf(value, kUsualDepth);
}

graph::Facts charonia::tile::factsOf(ArrayRef<int64_t> extents,
                                     ValueRange symbols) {
  graph::Facts facts;
  for (int64_t extent : extents)
    facts.dims.push_back({0, extent - 1});
  for (Value symbol : symbols) {
    facts.symbols.push_back(rangeOf(symbol));
    facts.symbolDivisors.push_back(divisorOf(symbol));
  }
  return facts;
}
