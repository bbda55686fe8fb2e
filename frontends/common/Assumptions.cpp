// What Symbols assumes of sizes, and how the module follows.
#include "frontends/common/Symbols.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>

using namespace charonia;
using namespace charonia::frontend;
using graph::Constraint;
using mlir::AffineExpr;

/// Assumptions that a module may make; all are checked whenever a shape is
/// bound.
constexpr size_t maxConstraints = 1024;

/// Replaces symbols in types and attributes; it remembers what it has replaced,
/// and so serves one state of `values`.
void Symbols::makeReplacer() {
  replacer = std::make_unique<mlir::AttrTypeReplacer>();
  replacer->addReplacement(
      [this](mlir::AffineMapAttr attribute) -> std::optional<mlir::Attribute> {
        mlir::AffineMap map = attribute.getValue();
        if (map.getNumDims() != 0)
          return std::nullopt;
        return mlir::AffineMapAttr::get(mapTo(map.getResults()));
      });
  replacer->addReplacement(
      [this](mlir::RankedTensorType type)
          -> std::optional<std::pair<mlir::Type, mlir::WalkResult>> {
        if (!type.getEncoding() || !graph::hasSymbolicShape(type))
          return std::nullopt;
        graph::Exprs dims;
        for (AffineExpr dim : graph::getShape(type))
          dims.push_back(resolve(dim));
        return std::pair<mlir::Type, mlir::WalkResult>(
            graph::makeType(dims, type.getElementType()),
            mlir::WalkResult::skip());
      });
}

// Arithmetic.

/// The difference, or null where it holds numbers beyond all sizes, that
/// further arithmetic might lead out of 64 bits.
static AffineExpr difference(AffineExpr a, AffineExpr b) {
  auto isSmall = [](AffineExpr expr) {
    bool small = true;
    expr.walk([&](AffineExpr e) {
      int64_t c = graph::constantOf(e).value_or(0);
      small &= c >= -4 * maxDimension && c <= 4 * maxDimension;
    });
    return small;
  };
  if (!isSmall(a) || !isSmall(b))
    return {};
  AffineExpr result = graph::simplify(a - b);
  return isSmall(result) ? result : AffineExpr();
}

static llvm::SmallVector<unsigned> symbolsIn(AffineExpr expr) {
  llvm::SmallVector<unsigned> positions;
  expr.walk([&](AffineExpr e) {
    if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e))
      positions.push_back(symbol.getPosition());
  });
  llvm::sort(positions);
  positions.erase(llvm::unique(positions), positions.end());
  return positions;
}

namespace {
/// slope * symbol + rest, where rest does not name the symbol.
struct Linear {
  int64_t slope;
  AffineExpr rest;
};
} // namespace

static std::optional<Linear> linearIn(AffineExpr expr, unsigned position) {
  mlir::MLIRContext *context = expr.getContext();
  AffineExpr symbol = mlir::getAffineSymbolExpr(position, context);
  auto at = [&](int64_t value) {
    return graph::simplify(
        expr.replace(symbol, mlir::getAffineConstantExpr(value, context)));
  };
  AffineExpr rest = at(0);
  auto slope = graph::constantOf(graph::simplify(at(1) - rest));
  if (!slope || *slope == 0 || std::abs(*slope) > maxDimension ||
      graph::simplify(expr - symbol * *slope - rest) != 0)
    return std::nullopt;
  return Linear{*slope, rest};
}

// Proofs.

bool Symbols::isNonNegative(AffineExpr expr) const {
  expr = resolve(expr);
  AffineExpr least = leastInSteps(expr);
  if (facts.isNonNegative(least ? least : expr))
    return true;
  AffineExpr other = leastInSteps(expr, /*ofDividend=*/true);
  return other && other != least && facts.isNonNegative(other);
}

bool Symbols::isAtLeast(AffineExpr a, AffineExpr b) const {
  if (bounds(a).low >= bounds(b).high)
    return true;
  AffineExpr diff = difference(resolve(a), resolve(b));
  return diff && isNonNegative(diff);
}

// Assumptions.

bool Symbols::refuse(std::string why) {
  refused = std::move(why);
  return false;
}

bool Symbols::suppose() {
  if (!supposed)
    return false;
  ++supposed->all;
  supposed->inBranches += inBranch;
  return true;
}

bool Symbols::record(Relation relation, AffineExpr left, AffineExpr right,
                     std::string reason) {
  for (const Constraint &c : known)
    if (c.relation == relation && c.left == left && c.right == right)
      return true;
  if (suppose())
    return true;
  // An upper limit makes wider ones superfluous; who has one asks for no wider.
  if (auto limit = graph::constantOf(left);
      relation == Relation::AtLeast && limit)
    for (size_t i = known.size(); i-- > 0;)
      if (auto wider = graph::constantOf(known[i].left);
          known[i].relation == relation && known[i].right == right && wider) {
        assert(*limit < *wider && "a limit that holds already");
        known.erase(known.begin() + i);
        constraints.erase(constraints.begin() + i);
      }
  if (known.size() == maxConstraints)
    return refuse("the model relates its sizes in over " +
                  std::to_string(maxConstraints) + " ways");
  constraints.push_back({relation, left, right, std::move(reason)});
  known.push_back(constraints.back());
  facts.add(known.back());
  return true;
}

/// Narrows a range that nobody declared.
bool Symbols::limit(unsigned position, int64_t low, int64_t high) {
  graph::Symbol &symbol = symbols[position];
  low = std::max(low, symbol.min);
  high = std::min(high, symbol.max);
  low = llvm::divideCeilSigned(low, symbol.divisor) * symbol.divisor;
  high = llvm::divideFloorSigned(high, symbol.divisor) * symbol.divisor;
  if (low > high)
    return refuse("");
  if (suppose())
    return true;
  symbol.min = low;
  symbol.max = high;
  symbol.opt = std::clamp(llvm::divideCeilSigned(symbol.opt, symbol.divisor) *
                              symbol.divisor,
                          low, high);
  facts.set(position, symbol);
  return true;
}

bool Symbols::assumeAtLeast(AffineExpr a, AffineExpr b,
                            const std::string &why) {
  refused.clear();
  a = resolve(a);
  b = resolve(b);
  if (isAtLeast(a, b))
    return true;
  AffineExpr diff = difference(a, b);
  if (!diff || bounds(diff).high < 0 || facts.isNonNegative(-diff - 1))
    return false;
  // While it is looked for how many steps there are, as a condition says that
  // needs this, nothing can be said of the last one; that is asked again.
  auto isLookedFor = [&](const Counter &counter) {
    return !counter.isFree && !counter.count &&
           diff.isFunctionOfSymbol(counter.symbol);
  };
  if (inTrial)
    return llvm::any_of(counters, isLookedFor) || refuse("");
  if (namesCounter(diff)) {
    AffineExpr least = leastInSteps(diff);
    return least ? assumeAtLeast(
                       least, mlir::getAffineConstantExpr(0, getContext()), why)
                 : refuse("what is least differs from step to step");
  }
  std::string reason = asker.empty() ? why : why + " (" + asker + ")";
  auto named = symbolsIn(diff);
  auto linear =
      named.size() == 1 ? linearIn(diff, named.front()) : std::nullopt;
  bool hasConstants =
      graph::Sum(a).constant != 0 && graph::Sum(b).constant != 0;
  if (!linear && (b == 0 || hasConstants)) {
    // "s >= t", not "s + t * -1 >= 0" or "s - 1 >= t - 1".
    graph::Sum left, right;
    graph::Sum sum(diff);
    for (graph::Sum::Term &term : sum.terms) {
      graph::Sum &side = term.coefficient < 0 ? right : left;
      term.coefficient = std::abs(term.coefficient);
      side.terms.push_back(term);
    }
    (sum.constant < 0 ? right : left).constant = std::abs(sum.constant);
    a = left.toExpr(diff.getContext());
    b = right.toExpr(diff.getContext());
  }
  if (!linear)
    return record(Relation::AtLeast, a, b, reason);
  // The limit of one size is its range.
  unsigned position = named.front();
  if (declared[position])
    return false;
  mlir::MLIRContext *context = diff.getContext();
  AffineExpr symbol = mlir::getAffineSymbolExpr(position, context);
  int64_t slope = linear->slope, offset = *graph::constantOf(linear->rest);
  const graph::Symbol &range = symbols[position];
  if (slope > 0) {
    int64_t low = llvm::divideCeilSigned(-offset, slope);
    return limit(position, low, range.max) &&
           record(Relation::AtLeast, symbol,
                  mlir::getAffineConstantExpr(low, context), reason);
  }
  int64_t high = llvm::divideFloorSigned(offset, -slope);
  return limit(position, range.min, high) &&
         record(Relation::AtLeast, mlir::getAffineConstantExpr(high, context),
                symbol, reason);
}

bool Symbols::assumeMultiple(AffineExpr expr, int64_t divisor,
                             const std::string &why) {
  if (auto known = facts.isMultiple(expr, divisor))
    return *known || refuse(toString(expr) + " is no multiple of " +
                            std::to_string(divisor));
  auto named = symbolsIn(expr);
  mlir::MLIRContext *context = expr.getContext();
  // k * s is a multiple of d if s is one of d / gcd(k, d).
  auto linear =
      named.size() == 1 ? linearIn(expr, named.front()) : std::nullopt;
  if (linear && linear->rest == 0) {
    unsigned position = named.front();
    divisor /= std::gcd(divisor, linear->slope);
    expr = mlir::getAffineSymbolExpr(position, context);
    graph::Symbol &symbol = symbols[position];
    if (!declared[position]) {
      int64_t factor = divisor / std::gcd(divisor, symbol.divisor), both;
      if (llvm::MulOverflow(symbol.divisor, factor, both) || both > symbol.max)
        return refuse("no multiple of " + std::to_string(divisor) + " is in " +
                      describeRanges(expr));
      if (suppose())
        return true;
      symbol.divisor = both;
      if (!limit(position, symbol.min, symbol.max))
        return false;
    }
  }
  return record(Relation::Divides,
                mlir::getAffineConstantExpr(divisor, context), expr, why);
}

bool Symbols::assumeEqual(AffineExpr a, AffineExpr b, const std::string &why) {
  refused.clear();
  a = resolve(a);
  b = resolve(b);
  AffineExpr diff = difference(a, b);
  if (!diff)
    return false;
  if (auto known = facts.areEqual(a, b))
    return *known || refuse("");
  if (inTrial)
    return refuse("");
  if (namesCounter(diff))
    return refuse(toString(diff) + " differs from step to step");
  std::string reason = asker.empty() ? "" : "as " + asker + " " + why;
  if (auto exact = graph::findExactDivision(diff))
    return assumeMultiple(exact->dividend, exact->divisor, reason);
  graph::Equation equation = graph::toEquation(diff);
  return record(Relation::Equal, equation.left, equation.right, reason) &&
         unify(graph::simplify(equation.left - equation.right));
}

bool Symbols::assumeDifferent(AffineExpr a, AffineExpr b,
                              const std::string &why) {
  refused.clear();
  a = resolve(a);
  b = resolve(b);
  AffineExpr diff = difference(a, b);
  if (!diff)
    return false;
  if (auto known = facts.areEqual(a, b))
    return !*known || refuse("");
  if (inTrial || namesCounter(diff))
    return refuse("");
  // Of two that are ordered one is larger: where that leaves one number, that.
  for (AffineExpr distance : {diff, graph::simplify(-diff)}) {
    graph::Interval range = bounds(distance);
    AffineExpr one = mlir::getAffineConstantExpr(1, getContext());
    if (range.low == 0 && range.high == 1)
      return assumeEqual(distance, one, "tells sizes apart");
    if (range.low == 0 || isNonNegative(distance))
      return distance == diff ? assumeAtLeast(a, graph::simplify(b + 1), why)
                              : assumeAtLeast(b, graph::simplify(a + 1), why);
  }
  graph::Equation equation = graph::toEquation(diff);
  return record(Relation::Differs, equation.left, equation.right,
                asker.empty() ? why : why + " (" + asker + ")");
}

bool Symbols::check(Relation relation, AffineExpr a, AffineExpr b,
                    const std::string &why) {
  refused.clear();
  Constraint constraint{relation, resolve(a), resolve(b), why};
  AffineExpr diff = difference(constraint.left, constraint.right);
  if (!diff)
    return false;
  if (facts.isProved(constraint))
    return true;
  // No step is there when shapes are bound.
  if (inTrial || namesCounter(diff))
    return refuse("");
  Constraint opposite = constraint;
  if (relation == Relation::AtLeast)
    opposite = {relation, graph::simplify(constraint.right - 1),
                constraint.left, ""};
  else if (relation != Relation::Divides)
    opposite.relation =
        relation == Relation::Equal ? Relation::Differs : Relation::Equal;
  if (relation != Relation::Divides && facts.isProved(opposite))
    return refuse("");
  return record(relation, constraint.left, constraint.right,
                asker.empty() ? why : why + " (" + asker + ")");
}

bool Symbols::needAtLeast(AffineExpr a, AffineExpr b, const std::string &why) {
  return assumeAtLeast(a, b, why) || check(Relation::AtLeast, a, b, why);
}

// Equations: one symbol in them becomes an expression of the others.

/// Whether a size that is defined is related to one that it is made of: the
/// program decides what it is, and the equation is but checked.
static bool isCircular(AffineExpr equation,
                       llvm::ArrayRef<graph::Definition> definitions) {
  llvm::SmallVector<unsigned> named = symbolsIn(equation);
  for (unsigned position : named) {
    llvm::SmallSetVector<unsigned, 8> parts;
    parts.insert(position);
    for (size_t i = 0; i < parts.size(); ++i)
      for (const graph::Definition &d : definitions)
        for (const graph::SizeStep &step : d.program)
          if (d.symbol == parts[i] && step.size)
            parts.insert_range(symbolsIn(step.size));
    for (unsigned other : named)
      if (other != position && parts.contains(other))
        return true;
  }
  return false;
}

bool Symbols::unify(AffineExpr equation) {
  if (supposed || isCircular(equation, definitions))
    return true;
  // Where each symbol is a term of its own and nothing else.
  graph::Sum sum(equation);
  llvm::MapVector<unsigned, int64_t> slopes;
  bool isLinear = true;
  for (const graph::Sum::Term &term : sum.terms) {
    auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(term.atoms.front());
    bool isPlain = symbol && term.atoms.size() == 1;
    isLinear &= isPlain;
    for (AffineExpr atom : term.atoms)
      for (unsigned position : symbolsIn(atom))
        if (!slopes.try_emplace(position, isPlain ? term.coefficient : 0)
                 .second)
          slopes[position] = 0;
  }
  auto slopesByPosition = slopes.takeVector();
  llvm::sort(slopesByPosition);
  std::optional<std::pair<unsigned, AffineExpr>> best;
  for (auto [position, slope] : llvm::reverse(slopesByPosition)) {
    if (std::abs(slope) != 1)
      continue;
    AffineExpr symbol =
        mlir::getAffineSymbolExpr(position, equation.getContext());
    AffineExpr value = slope > 0 ? symbol - equation : symbol + equation;
    if (slopesByPosition.size() <= 2) {
      value = graph::simplify(value);
      if (auto size = graph::constantOf(value))
        return setValue(position, *size);
      if (auto other = llvm::dyn_cast<mlir::AffineSymbolExpr>(value))
        return join(position, other.getPosition());
    }
    // Of several, the last one whose range nobody declared; a size must not
    // become an expression that may be no size.
    if (best && declared[position])
      continue;
    AffineExpr above = graph::simplify(value - symbols[position].min);
    // Of sums of many sizes their ranges say all.
    constexpr size_t many = 16;
    bool isSize = isLinear && slopesByPosition.size() > many
                      ? bounds(above).low >= 0
                      : facts.isNonNegative(above);
    if (!isSize)
      continue;
    best.emplace(position, graph::simplify(value));
    if (!declared[position])
      break;
  }
  if (!best)
    return true;
  // The symbol keeps its range, by which proofs were made: where the sum leaves
  // it, binding refuses.
  replace(best->first, best->second);
  return true;
}

/// Two sizes that are equal become the first of them.
bool Symbols::join(unsigned a, unsigned b) {
  unsigned kept = std::min(a, b), gone = std::max(a, b);
  if (!joinRanges(kept, gone))
    return false;
  replace(gone, mlir::getAffineSymbolExpr(kept, module.getContext()));
  return true;
}

bool Symbols::setValue(unsigned position, int64_t value) {
  graph::Symbol &symbol = symbols[position];
  if (declared[position])
    return refuse("size '" + symbol.name + "' has to be " +
                  std::to_string(value) + ", but is declared as " +
                  std::to_string(symbol.min) + ".." +
                  std::to_string(symbol.max));
  if (!limit(position, value, value))
    return refuse("size '" + symbol.name + "' has to be " +
                  std::to_string(value));
  replace(position, mlir::getAffineConstantExpr(value, module.getContext()));
  return true;
}

/// Ranges that both symbols have from now on.
bool Symbols::joinRanges(unsigned kept, unsigned gone) {
  graph::Symbol &a = symbols[kept], &b = symbols[gone];
  auto text = [&](unsigned position) {
    const graph::Symbol &s = symbols[position];
    std::string range = std::to_string(s.min) + ".." + std::to_string(s.max);
    if (s.divisor > 1)
      range += "%" + std::to_string(s.divisor);
    return "size '" + s.name + "' " +
           (declared[position] ? "is declared as " : "can only be ") + range;
  };
  auto disagree = [&] {
    return refuse(text(kept) + " and " + text(gone) +
                  ", but they have to be equal");
  };
  auto holds = [](const graph::Symbol &outer, const graph::Symbol &inner) {
    return outer.min <= inner.min && inner.max <= outer.max &&
           inner.divisor % outer.divisor == 0;
  };
  bool fits = declared[kept] && declared[gone] ? holds(a, b) && holds(b, a)
              : declared[kept]                 ? holds(b, a)
              : declared[gone]                 ? holds(a, b)
                                               : true;
  if (!fits)
    return disagree();
  if (declared[gone]) {
    a.min = b.min, a.opt = b.opt, a.max = b.max, a.divisor = b.divisor;
    facts.set(kept, a);
    declared[kept] = true;
  } else if (!declared[kept]) {
    int64_t factor = b.divisor / std::gcd(a.divisor, b.divisor);
    if (llvm::MulOverflow(a.divisor, factor, a.divisor) ||
        !limit(kept, b.min, b.max))
      return disagree();
  }
  return true;
}

void Symbols::replace(unsigned position, AffineExpr value) {
  AffineExpr symbol = mlir::getAffineSymbolExpr(position, value.getContext());
  auto follow = [&](AffineExpr &expr) {
    if (!expr.isFunctionOfSymbol(position))
      return false;
    expr = graph::simplify(expr.replace(symbol, value));
    return true;
  };
  for (AffineExpr &v : values)
    follow(v);
  for (Constraint &c : known)
    if (bool left = follow(c.left), right = follow(c.right); left || right)
      facts.add(c);
  ++replaced;
  makeReplacer();
}

// The module.

AffineExpr Symbols::resolve(AffineExpr expr) const {
  if (!expr || !replaced)
    return expr;
  AffineExpr resolved = expr.replaceSymbols(values);
  return resolved == expr ? expr : graph::simplify(resolved);
}
mlir::Type Symbols::resolve(mlir::Type type) {
  return type && replaced ? replacer->replace(type) : type;
}
mlir::Attribute Symbols::resolve(mlir::Attribute attribute) {
  return replaced ? replacer->replace(attribute) : attribute;
}

mlir::AffineMap Symbols::mapTo(llvm::ArrayRef<AffineExpr> results) const {
  graph::Exprs resolved;
  for (AffineExpr result : results)
    resolved.push_back(resolve(result));
  return graph::mapOf(0, resolved, mlir::ModuleOp(module).getContext());
}

mlir::Value Symbols::resolve(mlir::Value value) {
  if (value && replaced)
    value.setType(resolve(value.getType()));
  return value;
}

void Symbols::resolveModule() {
  if (!replaced)
    return;
  for (mlir::Operation &op : *module.getBody())
    op.walk([&](mlir::Operation *inner) {
      replacer->replaceElementsIn(inner, /*replaceAttrs=*/true,
                                  /*replaceLocs=*/false,
                                  /*replaceTypes=*/true);
    });
}
