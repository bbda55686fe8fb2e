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
/// A constraint as the search sees it.
struct Goal {
  const Constraint *constraint = nullptr;
  /// left - right, and what computing it takes.
  AffineExpr difference;
  int64_t cost = 1;
  /// Symbols that may move, those first that others determine.
  SmallVector<unsigned> movable;
  /// By movable symbol, where the difference is a sum of multiples of symbols.
  SmallVector<int64_t> coefficients;
  bool isLinear = true;
  /// Whether it names sizes that are defined.
  bool isDerived = false;
};

/// Moves sizes to optimize for, of those that nobody declared, one constraint
/// after the other. A search, bounded, since sizes may be related in any way:
/// five halvings and a window of 7 need n floordiv 32 >= 7.
class OptimumSearch {
public:
  OptimumSearch(SmallVector<graph::Symbol> &symbols,
                llvm::ArrayRef<bool> declared, llvm::ArrayRef<bool> replaced,
                llvm::ArrayRef<graph::Definition> definitions)
      : symbols(symbols), declared(declared), replaced(replaced),
        definitions(definitions), definitionOf(symbols.size()),
        optima(graph::getOptimum(symbols)) {
    for (const graph::Definition &d : definitions)
      definitionOf[d.symbol] = &d;
  }

  /// Whether all hold in the end.
  bool run(llvm::ArrayRef<Constraint> constraints) {
    std::vector<Goal> goals;
    for (const Constraint &c : constraints)
      goals.push_back(makeGoal(c));
    // What one constraint moves another may move again.
    constexpr int maxRounds = 16;
    bool settled = false;
    for (int round = 0; round < maxRounds && !settled; ++round) {
      settled = true;
      followDefinitions();
      for (const Goal &goal : goals)
        if (!holds(goal)) {
          settled &= move(goal);
          followDefinitions();
        }
      // What followed may have undone another.
      if (settled && !definitions.empty())
        settled = llvm::all_of(goals, [&](const Goal &g) { return holds(g); });
    }
    for (auto [i, symbol] : llvm::enumerate(symbols))
      symbol.opt = definitionOf[i]
                       ? std::clamp(optima[i], symbol.min, symbol.max)
                       : optima[i];
    return settled;
  }

private:
  Goal makeGoal(const Constraint &c) {
    Goal goal;
    goal.constraint = &c;
    goal.difference = graph::simplify(c.left - c.right);
    llvm::SmallDenseMap<unsigned, int64_t> found;
    // What is defined follows from other sizes, and is moved by them.
    SmallVector<AffineExpr> sides{c.left, c.right};
    llvm::SmallDenseSet<unsigned> seen;
    for (size_t i = 0; i < sides.size(); ++i)
      sides[i].walk([&](AffineExpr e) {
        ++goal.cost;
        auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e);
        if (!symbol || !seen.insert(symbol.getPosition()).second)
          return;
        if (const graph::Definition *d = definitionOf[symbol.getPosition()]) {
          goal.isDerived = true;
          for (const graph::SizeStep &step : d->program)
            if (step.size)
              sides.push_back(step.size);
        } else if (!declared[symbol.getPosition()]) {
          found.try_emplace(symbol.getPosition(), 0);
          goal.movable.push_back(symbol.getPosition());
        }
      });
    llvm::sort(goal.movable, [&](unsigned a, unsigned b) {
      return std::pair(!replaced[a], a) < std::pair(!replaced[b], b);
    });
    goal.isLinear = !goal.isDerived && addTerms(c.left, 1, found) &&
                    addTerms(c.right, -1, found);
    for (unsigned position : goal.movable)
      goal.coefficients.push_back(found[position]);
    return goal;
  }

  /// Adds the coefficients of a sum of multiples of symbols, of any length;
  /// false if it is none.
  static bool addTerms(AffineExpr expr, int64_t factor,
                       llvm::SmallDenseMap<unsigned, int64_t> &coefficients) {
    if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(expr)) {
      coefficients[symbol.getPosition()] += factor;
      return true;
    }
    auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(expr);
    if (!binary)
      return true; // A constant.
    if (expr.getKind() == mlir::AffineExprKind::Add)
      return addTerms(binary.getLHS(), factor, coefficients) &&
             addTerms(binary.getRHS(), factor, coefficients);
    auto by = graph::constantOf(binary.getRHS());
    return expr.getKind() == mlir::AffineExprKind::Mul && by &&
           std::abs(*by) <= maxDimension && std::abs(factor) == 1 &&
           addTerms(binary.getLHS(), factor * *by, coefficients);
  }

  std::optional<int64_t> valueOf(const Goal &goal) {
    costLeft -= goal.cost;
    return graph::evaluate(goal.difference, optima);
  }

  bool holds(const Goal &goal) {
    const Constraint &c = *goal.constraint;
    costLeft -= goal.cost;
    auto left = graph::evaluate(c.left, optima),
         right = graph::evaluate(c.right, optima);
    return left && right && graph::isSatisfied(c.relation, *left, *right);
  }

  /// Gives the sizes that are defined the values that follow, also where these
  /// leave the range that constraints have left of them: then it shows that the
  /// constraints do not hold.
  void followDefinitions() {
    for (const graph::Definition &d : definitions) {
      costLeft -= d.program.size();
      optima[d.symbol] =
          graph::evaluate(d.program, optima).value_or(symbols[d.symbol].min);
    }
  }

  /// The nearest multiple of the symbol's divisor in its range.
  int64_t inRange(unsigned position, int64_t value) const {
    const graph::Symbol &s = symbols[position];
    value = llvm::divideFloorSigned(value, s.divisor) * s.divisor;
    return value < s.min ? llvm::divideCeilSigned(s.min, s.divisor) * s.divisor
           : value > s.max ? s.max / s.divisor * s.divisor
                           : value;
  }

  bool move(const Goal &goal) {
    if (costLeft <= 0)
      return false;
    if (goal.constraint->relation == Relation::Divides ||
        goal.constraint->relation == Relation::Differs || !goal.isLinear)
      return moveOne(goal);
    if (solveOne(goal))
      return true;
    SmallVector<int64_t> before = optima;
    if (goal.constraint->relation == Relation::Equal) {
      share(goal);
      if (holds(goal) || solveOne(goal))
        return true;
    }
    std::swap(optima, before);
    if (solveTwo(goal))
      return true;
    std::swap(optima, before);
    if (solveTwo(goal))
      return true;
    optima = before;
    return false;
  }

  /// Changes one size, of a relation of any kind, as little as it goes.
  bool moveOne(const Goal &goal) {
    constexpr int64_t steps = 2048;
    for (unsigned position : goal.movable) {
      int64_t before = optima[position], divisor = symbols[position].divisor;
      auto fits = [&](int64_t value) {
        optima[position] = value;
        if (value != inRange(position, value))
          return false;
        if (goal.isDerived)
          followDefinitions();
        return holds(goal);
      };
      for (int64_t k = 1; k <= steps && costLeft > 0; ++k)
        if (fits(before + k * divisor) || fits(before - k * divisor))
          return true;
      for (int64_t value = before + steps * divisor;
           value <= symbols[position].max && costLeft > 0; value *= 2)
        if (fits(inRange(position, value)))
          return true;
      optima[position] = before;
    }
    return false;
  }

  // A linear relation: sum of coefficient * size + constant = 0 or >= 0.

  /// Gives the size the change by which a sum that is `missing` becomes 0, or
  /// not negative; false where it cannot have it.
  bool change(const Goal &goal, unsigned i, int64_t missing) {
    unsigned position = goal.movable[i];
    int64_t coefficient = goal.coefficients[i];
    if (coefficient == 0)
      return false;
    bool exact = goal.constraint->relation == Relation::Equal;
    if (exact && missing % coefficient != 0)
      return false;
    int64_t by = coefficient > 0
                     ? llvm::divideCeilSigned(-missing, coefficient)
                     : -llvm::divideCeilSigned(-missing, -coefficient);
    int64_t to = optima[position] + by, divisor = symbols[position].divisor;
    if (!exact && coefficient > 0)
      to = llvm::divideCeilSigned(to, divisor) * divisor;
    else if (!exact)
      to = llvm::divideFloorSigned(to, divisor) * divisor;
    if (to != inRange(position, to))
      return false;
    optima[position] = to;
    return true;
  }

  bool solveOne(const Goal &goal) {
    auto missing = valueOf(goal);
    for (unsigned i = 0; missing && i < goal.movable.size(); ++i)
      if (change(goal, i, *missing))
        return true;
    return false;
  }

  /// Changes two sizes, the first as little as it goes: 2 n = 3 m from 1 and 1.
  bool solveTwo(const Goal &goal) {
    constexpr int64_t steps = 1024;
    auto missing = valueOf(goal);
    // Two of each coefficient: what more of them can do, these can.
    SmallVector<unsigned, 16> chosen;
    llvm::SmallDenseMap<int64_t, unsigned> ofCoefficient;
    for (unsigned i = 0; i < goal.movable.size() && chosen.size() < 16; ++i)
      if (++ofCoefficient[goal.coefficients[i]] <= 2)
        chosen.push_back(i);
    if (!missing)
      return false;
    for (unsigned i : chosen)
      for (unsigned j : chosen) {
        if (costLeft <= 0)
          return false;
        if (i == j || goal.coefficients[j] == 0)
          continue;
        unsigned position = goal.movable[i];
        int64_t before = optima[position], divisor = symbols[position].divisor;
        for (int64_t k = 1; k <= steps; ++k)
          for (int64_t by : {k * divisor, -k * divisor}) {
            int64_t rest;
            if (before + by != inRange(position, before + by) ||
                llvm::MulOverflow(goal.coefficients[i], by, rest) ||
                llvm::AddOverflow(rest, *missing, rest))
              continue;
            if (change(goal, j, rest)) {
              optima[position] = before + by;
              return true;
            }
          }
        costLeft -= 16;
      }
    return false;
  }

  /// Changes all sizes of an equation, each by its share of what is missing:
  /// past + seq = 64 from 128 and 128.
  void share(const Goal &goal) {
    auto missing = valueOf(goal);
    int64_t left = goal.movable.size();
    for (auto [i, position] : llvm::enumerate(goal.movable)) {
      int64_t coefficient = goal.coefficients[i], change;
      if (coefficient != 0 && missing) {
        int64_t before = optima[position];
        optima[position] =
            inRange(position, before - *missing / (coefficient * left));
        if (llvm::MulOverflow(coefficient, optima[position] - before, change) ||
            llvm::AddOverflow(*missing, change, *missing))
          return;
      }
      --left;
    }
  }

  SmallVector<graph::Symbol> &symbols;
  llvm::ArrayRef<bool> declared, replaced;
  llvm::ArrayRef<graph::Definition> definitions;
  /// By symbol; null for those that are no such.
  SmallVector<const graph::Definition *> definitionOf;
  SmallVector<int64_t> optima;
  /// Terms of expressions that may still be evaluated.
  int64_t costLeft = 1 << 22;
};
} // namespace

/// "n = 4, m = 7": the sizes to optimize for, but for those that follow.
static std::string listOptima(llvm::ArrayRef<graph::Symbol> symbols,
                              llvm::ArrayRef<graph::Definition> definitions) {
  std::string text;
  for (auto [i, symbol] : llvm::enumerate(symbols)) {
    auto definesIt = [i = i](const graph::Definition &d) {
      return d.symbol == i;
    };
    if (llvm::none_of(definitions, definesIt))
      text += (text.empty() ? "" : ", ") + symbol.name + " = " +
              std::to_string(symbol.opt);
  }
  return text;
}

/// Whether sizes to optimize for are sizes, if not ones that can be bound.
static bool areSizes(llvm::ArrayRef<graph::Symbol> symbols,
                     llvm::ArrayRef<Constraint> constraints) {
  SmallVector<int64_t> optima = graph::getOptimum(symbols);
  return llvm::all_of(constraints, [&](const Constraint &c) {
    auto left = graph::evaluate(c.left, optima),
         right = graph::evaluate(c.right, optima);
    return c.relation != Relation::AtLeast ||
           (left && right && *left >= *right);
  });
}

/// Moves the sizes to optimize for. `search` satisfies all constraints, of the
/// sizes that are not fixed, or fails; `needed` are those that are left of them
/// once symbols are replaced. As Symbols::finish().
static bool
moveOptima(SmallVector<graph::Symbol> &symbols, llvm::ArrayRef<bool> declared,
           llvm::ArrayRef<graph::Definition> definitions,
           llvm::ArrayRef<Constraint> needed,
           llvm::function_ref<bool(llvm::ArrayRef<bool> fixed)> search,
           std::string &problem) {
  if (search(declared))
    return true;
  std::string tried = listOptima(symbols, definitions);
  problem = "no sizes to optimize for were found that satisfy what the model "
            "needs; the last were " +
            tried;
  // What is tuned for sizes that can't be bound is no wronger, but it has to be
  // sizes: else even those move that the user named.
  if (areSizes(symbols, needed))
    return true;
  SmallVector<graph::Symbol> before = symbols;
  if (!search(SmallVector<bool>(symbols.size(), false))) {
    symbols = std::move(before);
    return false;
  }
  problem = "the model does not take the sizes to optimize for that are "
            "declared (" +
            tried + "), but does take " + listOptima(symbols, definitions);
  return true;
}

bool Symbols::finish(std::string &problem) {
  dropFreeCounters();
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
  // As they were assumed: what replaced a declared size has to meet that too.
  auto search = [&](llvm::ArrayRef<bool> fixed) {
    return OptimumSearch(symbols, fixed, isReplaced, definitions)
        .run(constraints);
  };
  bool found =
      moveOptima(symbols, declared, definitions, needed, search, problem);
  constraints = std::move(needed);
  graph::setSymbols(module, symbols);
  graph::setDefinitions(module, definitions);
  graph::setConstraints(module, constraints);
  return found;
}
