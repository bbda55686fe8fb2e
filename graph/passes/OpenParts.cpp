#include "graph/passes/OpenParts.h"

using namespace mlir;

namespace charonia::graph {

/// Of each dimension the open sizes by which coordinates divide it.
using Divisors = SmallVector<SmallVector<AffineExpr, 2>>;

/// Notes by what `coordinate` divides a dimension.
static void findDivisors(AffineExpr coordinate, Divisors &divisors) {
  coordinate.walk([&](AffineExpr expr) {
    auto part = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!part || (part.getKind() != AffineExprKind::FloorDiv &&
                  part.getKind() != AffineExprKind::Mod))
      return;
    auto dim = dyn_cast<AffineDimExpr>(part.getLHS());
    AffineExpr by = part.getRHS();
    if (!dim || constantOf(by) || !by.isSymbolicOrConstant())
      return;
    SmallVector<AffineExpr, 2> &known = divisors[dim.getPosition()];
    if (!llvm::is_contained(known, by))
      known.push_back(by);
  });
}

/// The factors of `extent`, from the slowest on, that end where multiples of
/// the divisors do; just the extent where one of them ends within another.
static Exprs factorsOf(AffineExpr extent, SmallVector<AffineExpr, 2> divisors) {
  Exprs factors;
  AffineExpr rest = extent;
  while (!divisors.empty()) {
    // The next one is a multiple of all others.
    AffineExpr factor;
    for (AffineExpr &divisor : divisors) {
      bool isLargest = llvm::all_of(divisors, [&](AffineExpr other) {
        return simplify(simplify(divisor.floorDiv(other)) * other - divisor) ==
               0;
      });
      if (!isLargest)
        continue;
      factor = simplify(rest.floorDiv(divisor));
      if (simplify(factor * divisor - rest) != 0)
        return {extent};
      rest = divisor;
      divisors.erase(&divisor);
      break;
    }
    if (!factor)
      return {extent};
    if (constantOf(factor) != 1)
      factors.push_back(factor);
  }
  factors.push_back(rest);
  return factors;
}

Exprs shapeInOpenParts(Value value, const Facts &facts) {
  // Shorter rows are joined with their neighbours again.
  constexpr int64_t shortest = 8;
  Exprs shape = getShape(value);
  Divisors divisors(shape.size());
  llvm::MapVector<Value, AffineMap> reached;
  reached[value] =
      AffineMap::getMultiDimIdentityMap(shape.size(), value.getContext());
  for (size_t n = 0; n < reached.size(); ++n) {
    auto [from, map] = *(reached.begin() + n);
    auto op = from.getDefiningOp<GraphOpInterface>();
    if (!op) {
      for (AffineExpr coordinate : map.getResults())
        findDivisors(coordinate, divisors);
      continue;
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (AffineMap step = op.getOperandMap(i))
        reached.insert({op->getOperand(i), composeMaps(step, map, shape)});
  }
  Exprs parts;
  for (auto [extent, by] : llvm::zip_equal(shape, divisors)) {
    llvm::erase_if(by, [&](AffineExpr divisor) {
      return boundsOf(divisor, facts).high < shortest;
    });
    parts.append(factorsOf(extent, by));
  }
  return parts;
}

} // namespace charonia::graph
