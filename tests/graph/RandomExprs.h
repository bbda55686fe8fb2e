// Random integer expressions with what is known of their variables, values that
// agree with it, and evaluation in 128 bits to judge by.
#ifndef CHARONIA_TESTS_GRAPH_RANDOMEXPRS_H
#define CHARONIA_TESTS_GRAPH_RANDOMEXPRS_H

#include "graph/ir/Algebra.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MathExtras.h"
#include <random>

namespace charonia::graph {

__extension__ typedef __int128 Wide;

/// Nothing where 128 bits overflow (`overflows` is set) or a divisor is
/// below 1. `fits` becomes false if any part leaves 64 bits.
inline std::optional<Wide> evaluateWide(mlir::AffineExpr expr,
                                        llvm::ArrayRef<int64_t> dims,
                                        llvm::ArrayRef<int64_t> symbols,
                                        bool *fits = nullptr,
                                        bool *overflows = nullptr) {
  using Kind = mlir::AffineExprKind;
  if (auto c = llvm::dyn_cast<mlir::AffineConstantExpr>(expr))
    return c.getValue();
  if (auto d = llvm::dyn_cast<mlir::AffineDimExpr>(expr))
    return dims[d.getPosition()];
  if (auto s = llvm::dyn_cast<mlir::AffineSymbolExpr>(expr))
    return symbols[s.getPosition()];
  auto binary = llvm::cast<mlir::AffineBinaryOpExpr>(expr);
  auto a = evaluateWide(binary.getLHS(), dims, symbols, fits, overflows),
       b = evaluateWide(binary.getRHS(), dims, symbols, fits, overflows);
  if (!a || !b)
    return std::nullopt;
  Wide result;
  if (expr.getKind() == Kind::Add || expr.getKind() == Kind::Mul) {
    if (expr.getKind() == Kind::Add ? __builtin_add_overflow(*a, *b, &result)
                                    : __builtin_mul_overflow(*a, *b, &result)) {
      if (overflows)
        *overflows = true;
      return std::nullopt;
    }
  } else {
    if (*b < 1)
      return std::nullopt;
    Wide rest = *a % *b, floor = *a / *b;
    if (rest < 0) {
      rest += *b;
      --floor;
    }
    result = expr.getKind() == Kind::Mod        ? rest
             : expr.getKind() == Kind::FloorDiv ? floor
                                                : floor + (rest != 0);
  }
  if (fits && Wide(int64_t(result)) != result)
    *fits = false;
  return result;
}

class RandomExprs {
public:
  RandomExprs(mlir::MLIRContext &context, uint64_t seed)
      : context(context), rng(seed) {}

  static constexpr unsigned numDims = 2, numSymbols = 3;

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  }

  /// Ranges and divisors of two dims and three symbols. Symbol 2 is at least 1.
  /// With `large`, some reach 2^62.
  Facts facts(bool large) {
    Facts facts;
    auto draw = [&](Interval &range, int64_t &divisor, bool positive) {
      divisor = pick(0, 2) ? 1 : int64_t(1) << pick(0, 5);
      if (pick(0, 5) == 0)
        divisor *= 3;
      int64_t most = large && pick(0, 2) == 0
                         ? ((int64_t(1) << 62) + pick(-3, 3)) / divisor
                         : pick(1, 40);
      int64_t low = positive     ? pick(1, std::min<int64_t>(most, 5))
                    : pick(0, 2) ? 0
                                 : pick(-most, most);
      range = {low * divisor, pick(low, std::max(low, most)) * divisor};
    };
    facts.dims.resize(numDims);
    facts.dimDivisors.resize(numDims);
    facts.symbols.resize(numSymbols);
    facts.symbolDivisors.resize(numSymbols);
    for (unsigned i = 0; i < numDims; ++i)
      draw(facts.dims[i], facts.dimDivisors[i], false);
    for (unsigned i = 0; i < numSymbols; ++i)
      draw(facts.symbols[i], facts.symbolDivisors[i], i == 2);
    return facts;
  }
  /// A value that the facts allow, often at an end.
  int64_t value(Interval range, int64_t divisor) {
    int64_t low = range.low / divisor, high = range.high / divisor;
    switch (pick(0, 5)) {
    case 0:
      return range.low;
    case 1:
      return range.high;
    default:
      return pick(low, high) * divisor;
    }
  }
  llvm::SmallVector<int64_t> dims(const Facts &facts) {
    llvm::SmallVector<int64_t> values;
    for (unsigned i = 0; i < numDims; ++i)
      values.push_back(value(facts.dims[i], facts.dimDivisors[i]));
    return values;
  }
  llvm::SmallVector<int64_t> symbols(const Facts &facts) {
    llvm::SmallVector<int64_t> values;
    for (unsigned i = 0; i < numSymbols; ++i)
      values.push_back(value(facts.symbols[i], facts.symbolDivisors[i]));
    return values;
  }

  mlir::AffineExpr number(int64_t c) {
    return mlir::getAffineConstantExpr(c, &context);
  }
  /// Never below 1.
  mlir::AffineExpr divisor(bool symbolic) {
    mlir::AffineExpr size = mlir::getAffineSymbolExpr(2, &context);
    switch (symbolic ? pick(0, 7) : pick(3, 7)) {
    case 0:
      return size;
    case 1:
      return size * pick(1, 12);
    case 2:
      return size + pick(0, 3);
    case 3:
    case 4:
      return number(int64_t(1) << pick(0, 6));
    default:
      return number(pick(1, 50));
    }
  }
  struct Kind {
    bool dims = true, symbolicDivisors = true, large = false;
  };
  mlir::AffineExpr leaf(Kind kind) {
    switch (pick(0, 4)) {
    case 0:
      return number(kind.large && pick(0, 2) == 0
                        ? (pick(0, 1) ? 1 : -1) *
                              ((int64_t(1) << pick(60, 62)) + pick(-2, 2))
                        : pick(-20, 40));
    case 1:
    case 2:
      if (kind.dims)
        return mlir::getAffineDimExpr(pick(0, numDims - 1), &context);
      [[fallthrough]];
    default:
      return mlir::getAffineSymbolExpr(pick(0, numSymbols - 1), &context);
    }
  }
  mlir::AffineExpr expression(int depth, Kind kind) {
    if (depth == 0 || pick(0, 8) == 0)
      return leaf(kind);
    mlir::AffineExpr a = expression(depth - 1, kind);
    switch (pick(0, 9)) {
    case 0:
    case 1:
      return a + expression(depth - 1, kind);
    case 2:
      return a + expression(depth - 1, kind) * number(pick(-33, 33));
    case 3:
      return a * number(int64_t(1) << pick(0, 5));
    case 4:
      return a * number(pick(-12, 12));
    case 5:
      return a * mlir::getAffineSymbolExpr(pick(0, numSymbols - 1), &context);
    case 6:
      return a.ceilDiv(divisor(kind.symbolicDivisors));
    case 7:
      return a.floorDiv(divisor(kind.symbolicDivisors));
    default:
      return a % divisor(kind.symbolicDivisors);
    }
  }

private:
  mlir::MLIRContext &context;
  std::mt19937_64 rng;
};

} // namespace charonia::graph

#endif
