// Sizes to optimize for that satisfy what the model needs.
#include "frontends/common/Symbols.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::frontend;
using graph::Constraint;
using llvm::SmallVector;
using mlir::AffineExpr;

using Relation = Constraint::Relation;

namespace {
/// Moves sizes to optimize for, of those that nobody declared, one constraint
/// after the other. A search, bounded, since sizes may be related in any way:
/// five halvings and a window of 7 need n floordiv 32 >= 7.
class OptimumSearch {
public:
  OptimumSearch(SmallVector<graph::Symbol> &symbols,
                llvm::ArrayRef<bool> declared, llvm::ArrayRef<bool> replaced)
      : symbols(symbols), declared(declared), replaced(replaced) {
    for (const graph::Symbol &symbol : symbols)
      optima.push_back(symbol.opt);
  }

  /// Whether all hold in the end.
  bool run(llvm::ArrayRef<Constraint> constraints) {
    // What one constraint moves another may move again.
    constexpr int maxRounds = 16;
    bool settled = false;
    for (int round = 0; round < maxRounds && !settled; ++round) {
      settled = true;
      for (const Constraint &c : constraints)
        settled &= holds(c) || moveOne(c) || moveAll(c);
    }
    for (auto [symbol, opt] : llvm::zip_equal(symbols, optima))
      symbol.opt = opt;
    return settled;
  }

private:
  std::optional<int64_t> valueOf(AffineExpr expr) {
    --evaluationsLeft;
    return graph::evaluate(expr, optima);
  }

  bool holds(const Constraint &c) {
    auto left = valueOf(c.left), right = valueOf(c.right);
    return left && right && graph::isSatisfied(c.relation, *left, *right);
  }

  /// The nearest multiple of the symbol's divisor in its range.
  int64_t inRange(unsigned position, int64_t value) const {
    const graph::Symbol &s = symbols[position];
    value = llvm::divideFloorSigned(value, s.divisor) * s.divisor;
    return value < s.min ? llvm::divideCeilSigned(s.min, s.divisor) * s.divisor
           : value > s.max ? s.max / s.divisor * s.divisor
                           : value;
  }

  /// Symbols that may move, those first that others determine.
  SmallVector<unsigned> movable(const Constraint &c) const {
    SmallVector<unsigned> list;
    for (unsigned i = 0; i < symbols.size(); ++i)
      if (!declared[i] &&
          (c.left.isFunctionOfSymbol(i) || c.right.isFunctionOfSymbol(i)))
        list.push_back(i);
    llvm::stable_sort(list, [&](unsigned a, unsigned b) {
      return replaced[a] > replaced[b];
    });
    return list;
  }

  /// Changes one size, as little as it goes.
  bool moveOne(const Constraint &c) {
    constexpr int64_t steps = 2048;
    for (unsigned position : movable(c)) {
      int64_t before = optima[position], divisor = symbols[position].divisor;
      auto fits = [&](int64_t value) {
        optima[position] = value;
        return value == inRange(position, value) && holds(c);
      };
      if (auto exact = solve(c, position); exact && fits(*exact))
        return true;
      for (int64_t k = 1; k <= steps && evaluationsLeft > 0; ++k)
        if (fits(before + k * divisor) || fits(before - k * divisor))
          return true;
      for (int64_t value = before + steps * divisor;
           value <= symbols[position].max && evaluationsLeft > 0; value *= 2)
        if (fits(inRange(position, value)))
          return true;
      optima[position] = before;
    }
    return false;
  }

  /// left - right if the size grows by one, less than now.
  int64_t slope(const Constraint &c, unsigned position) {
    AffineExpr difference = c.left - c.right;
    auto now = valueOf(difference);
    ++optima[position];
    auto then = valueOf(difference);
    --optima[position];
    return now && then ? *then - *now : 0;
  }

  /// The size at which both sides are equal, if their difference is linear.
  std::optional<int64_t> solve(const Constraint &c, unsigned position) {
    int64_t by = slope(c, position);
    auto now = valueOf(c.left - c.right);
    if (c.relation == Relation::Divides || by == 0 || !now)
      return std::nullopt;
    int64_t to =
        optima[position] - (by > 0 ? llvm::divideFloorSigned(*now, by)
                                   : -llvm::divideFloorSigned(*now, -by));
    return inRange(position, to);
  }

  /// Changes all sizes of an equation, each by its share of what is missing:
  /// past + seq = 64 from 128 and 128.
  bool moveAll(const Constraint &c) {
    SmallVector<unsigned> list = movable(c);
    SmallVector<int64_t> before = optima;
    if (c.relation != Relation::Equal)
      return false;
    for (auto [i, position] : llvm::enumerate(list)) {
      int64_t by = slope(c, position), left = list.size() - i;
      auto now = valueOf(c.left - c.right);
      if (by != 0 && now)
        optima[position] =
            inRange(position, optima[position] - *now / (by * left));
    }
    if (holds(c))
      return true;
    optima = before;
    return false;
  }

  SmallVector<graph::Symbol> &symbols;
  llvm::ArrayRef<bool> declared, replaced;
  SmallVector<int64_t> optima;
  int64_t evaluationsLeft = 1 << 20;
};
} // namespace

std::string Symbols::finish() {
  SmallVector<bool> isReplaced;
  for (auto [i, value] : llvm::enumerate(values)) {
    isReplaced.push_back(value !=
                         mlir::getAffineSymbolExpr(i, value.getContext()));
    if (auto other = llvm::dyn_cast<mlir::AffineSymbolExpr>(value)) {
      std::string name = symbols[i].name;
      symbols[i] = symbols[other.getPosition()];
      symbols[i].name = name;
    }
  }
  // As they were assumed: what replaced a declared size has to meet that too.
  bool settled = OptimumSearch(symbols, declared, isReplaced).run(constraints);
  graph::setSymbols(module, symbols);
  // An equation that replaced a symbol says nothing once that is done, and
  // others may have come to hold of all sizes.
  graph::SizeFacts always;
  for (auto [i, symbol] : llvm::enumerate(symbols))
    always.set(i, declared[i] ? symbol : graph::Symbol{"", 1, 1, maxDimension});
  SmallVector<Constraint> needed;
  for (auto [asAssumed, resolved] : llvm::zip_equal(constraints, known))
    if (resolved.left == resolved.right)
      needed.push_back(asAssumed);
    else if (!always.isProved(resolved))
      needed.push_back(resolved);
  constraints = std::move(needed);
  graph::setConstraints(module, constraints);
  if (settled)
    return "";
  std::string tried;
  for (const graph::Symbol &symbol : symbols)
    tried += (tried.empty() ? "" : ", ") + symbol.name + " = " +
             std::to_string(symbol.opt);
  return "no sizes to optimize for were found that satisfy what the model "
         "needs; the last were " +
         tried + ":" + listAssumptions();
}

std::string Symbols::listAssumptions() const {
  constexpr size_t most = 32;
  std::string text;
  for (const Constraint &c : llvm::ArrayRef(constraints).take_front(most))
    text += "\n  " + graph::toString(c, symbols) +
            (c.reason.empty() ? "" : ", " + c.reason);
  if (constraints.size() > most)
    text += "\n  and " + std::to_string(constraints.size() - most) + " more";
  return text;
}
