#include "graph/ir/Constraints.h"
#include "graph/ir/Dialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

using Relation = Constraint::Relation;

// The attribute: [{reason, relation, sizes = affine_map<()[s..] -> (l, r)>}].

static constexpr StringLiteral attributeName = "graph.constraints";
static constexpr StringLiteral relationNames[] = {"equal", "divides",
                                                  "at_least", "differs"};

static std::optional<Relation> relationOf(StringRef name) {
  auto *it = llvm::find(relationNames, name);
  return it == std::end(relationNames)
             ? std::nullopt
             : std::optional(static_cast<Relation>(it - relationNames));
}

SmallVector<Constraint> charonia::graph::getConstraints(ModuleOp module) {
  SmallVector<Constraint> list;
  auto array = module->getAttrOfType<ArrayAttr>(attributeName);
  if (!array)
    return list;
  for (auto fields : array.getAsRange<DictionaryAttr>()) {
    AffineMap sizes = fields.getAs<AffineMapAttr>("sizes").getValue();
    Constraint c;
    c.relation = *relationOf(fields.getAs<StringAttr>("relation"));
    c.left = sizes.getResult(0);
    c.right = sizes.getResult(1);
    c.reason = fields.getAs<StringAttr>("reason").str();
    list.push_back(std::move(c));
  }
  return list;
}

void charonia::graph::setConstraints(ModuleOp module,
                                     ArrayRef<Constraint> list) {
  if (list.empty()) {
    module->removeAttr(attributeName);
    return;
  }
  Builder b(module.getContext());
  unsigned symbols = getSymbols(module).size();
  SmallVector<Attribute> entries;
  for (const Constraint &c : list) {
    AffineMap sizes =
        AffineMap::get(0, symbols, {c.left, c.right}, b.getContext());
    entries.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("reason", b.getStringAttr(c.reason)),
         b.getNamedAttr("relation",
                        b.getStringAttr(relationNames[int(c.relation)])),
         b.getNamedAttr("sizes", AffineMapAttr::get(sizes))}));
  }
  module->setAttr(attributeName, b.getArrayAttr(entries));
}

LogicalResult charonia::graph::verifyConstraints(Operation *op,
                                                 Attribute attribute) {
  auto array = dyn_cast<ArrayAttr>(attribute);
  auto module = dyn_cast<ModuleOp>(op);
  if (!array || !module)
    return op->emitError(attributeName)
           << " must be an array attribute of a module";
  size_t symbols = getSymbols(module).size();
  for (auto [i, entry] : llvm::enumerate(array)) {
    auto fields = dyn_cast<DictionaryAttr>(entry);
    auto error = [&, i = i] {
      return op->emitError(attributeName) << "[" << i << "] ";
    };
    if (!fields || !fields.getAs<StringAttr>("reason"))
      return error() << "must be a dictionary with a reason";
    auto relation = fields.getAs<StringAttr>("relation");
    if (!relation || !relationOf(relation))
      return error() << "needs a relation: equal, divides, at_least or "
                        "differs";
    auto sizes = fields.getAs<AffineMapAttr>("sizes");
    if (!sizes || sizes.getValue().getNumDims() != 0 ||
        sizes.getValue().getNumResults() != 2)
      return error() << "needs two sizes, a map without dims";
    if (sizes.getValue().getNumSymbols() > symbols)
      return error() << "names a symbol that the module does not have";
    auto divisor = constantOf(sizes.getValue().getResult(0));
    if (relationOf(relation) == Relation::Divides && divisor && *divisor < 1)
      return error() << "has the divisor " << *divisor;
  }
  return success();
}

static std::string toString(AffineExpr expr, ArrayRef<Symbol> symbols) {
  Type element = IntegerType::get(expr.getContext(), 64);
  std::string text = shapeToString(makeType({expr}, element), symbols);
  return text.substr(1, text.size() - 2);
}

std::string charonia::graph::toString(const Constraint &c,
                                      ArrayRef<Symbol> symbols) {
  std::string left = ::toString(c.left, symbols),
              right = ::toString(c.right, symbols);
  switch (c.relation) {
  case Relation::Equal:
    return left + " = " + right;
  case Relation::Divides:
    return right + " is a multiple of " + left;
  case Relation::AtLeast:
    return constantOf(c.left) ? right + " <= " + left : left + " >= " + right;
  case Relation::Differs:
    return left + " != " + right;
  }
  llvm_unreachable("no such relation");
}

bool charonia::graph::isSatisfied(Relation relation, int64_t left,
                                  int64_t right) {
  switch (relation) {
  case Relation::Equal:
    return left == right;
  case Relation::Divides:
    return left > 0 && right % left == 0;
  case Relation::AtLeast:
    return left >= right;
  case Relation::Differs:
    return left != right;
  }
  llvm_unreachable("no such relation");
}

// Equations.

Equation charonia::graph::toEquation(AffineExpr difference) {
  constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
  MLIRContext *context = difference.getContext();
  Sum sum(simplify(difference));
  int64_t common = sum.constant == lowest ? 1 : std::abs(sum.constant);
  for (const Sum::Term &term : sum.terms)
    common =
        term.coefficient == lowest ? 1 : std::gcd(common, term.coefficient);
  // The first term is on the left.
  bool swap = !sum.isConstant() && sum.terms.front().coefficient < 0;
  Sum left, right;
  for (Sum::Term term : sum.terms) {
    Sum &side = (term.coefficient < 0) == swap ? left : right;
    term.coefficient /= common;
    if (term.coefficient < 0)
      term.coefficient = -term.coefficient;
    side.terms.push_back(term);
  }
  if (sum.constant)
    ((sum.constant < 0) == swap ? left : right).constant =
        sum.constant < 0 ? -(sum.constant / common) : sum.constant / common;
  return {left.toExpr(context), right.toExpr(context)};
}

std::optional<ExactDivision>
charonia::graph::findExactDivision(AffineExpr difference) {
  difference = simplify(difference);
  SmallVector<AffineExpr> divisions;
  difference.walk([&](AffineExpr e) {
    if (e.getKind() != AffineExprKind::FloorDiv &&
        e.getKind() != AffineExprKind::Mod)
      return;
    if (constantOf(cast<AffineBinaryOpExpr>(e).getRHS()).value_or(0) > 1)
      divisions.push_back(e);
  });
  MLIRContext *context = difference.getContext();
  for (AffineExpr division : divisions) {
    auto binary = cast<AffineBinaryOpExpr>(division);
    int64_t divisor = *constantOf(binary.getRHS());
    // Sizes have no dims, so one may stand for the division.
    AffineExpr quotient = getAffineDimExpr(0, context);
    AffineExpr general = simplify(difference.replace(division, quotient));
    auto with = [&](int64_t value) {
      return simplify(
          general.replace(quotient, getAffineConstantExpr(value, context)));
    };
    // difference = slope * division + rest; with an exact quotient it is zero.
    AffineExpr rest = with(0), slope = simplify(with(1) - rest);
    AffineExpr exact = division.getKind() == AffineExprKind::Mod
                           ? rest
                           : slope * binary.getLHS() + rest * divisor;
    if (slope != 0 && simplify(general - slope * quotient - rest) == 0 &&
        simplify(exact) == 0)
      return ExactDivision{binary.getLHS(), divisor};
  }
  return std::nullopt;
}

// What is known.

SizeFacts::SizeFacts(ArrayRef<Symbol> symbols, ArrayRef<Constraint> constraints)
    : facts(getDeclaredFacts(symbols)) {
  for (const Constraint &c : constraints)
    add(c);
}

void SizeFacts::set(unsigned position, const Symbol &symbol) {
  if (position == facts.symbols.size()) {
    facts.symbols.emplace_back();
    facts.symbolDivisors.emplace_back();
  }
  facts.symbols[position] = {symbol.min, symbol.max};
  facts.symbolDivisors[position] = symbol.divisor;
}

/// Each symbol of `expr` once, as often as it occurs.
template <typename Fn> static void forEachSymbol(AffineExpr expr, Fn fn) {
  SmallVector<unsigned> seen;
  expr.walk([&](AffineExpr e) {
    auto symbol = dyn_cast<AffineSymbolExpr>(e);
    if (symbol && !llvm::is_contained(seen, symbol.getPosition())) {
      seen.push_back(symbol.getPosition());
      fn(symbol.getPosition());
    }
  });
}

/// Whether one of the facts that share a symbol with `expr` passes.
template <typename Map, typename Fn>
static bool anyOf(const Map &bySymbol, AffineExpr expr, Fn passes) {
  bool found = false;
  forEachSymbol(expr, [&](unsigned symbol) {
    if (auto it = bySymbol.find(symbol); !found && it != bySymbol.end())
      found = llvm::any_of(it->second, passes);
  });
  return found;
}

void SizeFacts::add(const Constraint &c) {
  switch (c.relation) {
  case Relation::Equal:
    // As it was said, and as ranges and divisors make it: so it is asked for.
    for (AffineExpr difference :
         {c.left - c.right, simplify(c.left - c.right, facts)}) {
      Equation equation = toEquation(difference);
      equal.insert({equation.left, equation.right});
    }
    break;
  case Relation::Divides:
    if (auto divisor = constantOf(c.left))
      forEachSymbol(c.right, [&](unsigned symbol) {
        multiples[symbol].push_back({c.right, *divisor});
      });
    break;
  case Relation::AtLeast: {
    AffineExpr known = simplify(c.left - c.right);
    bool isSaid = anyOf(nonNegative, known,
                        [&](AffineExpr other) { return other == known; });
    // What ranges say is no fact of its own, as of most.
    if (!isSaid && !isNonNegativeByRanges(known))
      forEachSymbol(known, [&](unsigned symbol) {
        nonNegative[symbol].push_back(known);
      });
    break;
  }
  case Relation::Differs:
    // No proof asks for it.
    break;
  }
}

/// `expr`, times a positive number, with a quotient by a constant replaced by
/// what bounds it from the side that counts: what is not negative then was not
/// before. Null if there is no such quotient.
static AffineExpr withoutQuotient(AffineExpr expr) {
  constexpr int64_t most = int64_t(1) << 24;
  Sum sum(expr);
  auto isSmall = [](int64_t c) { return c >= -most && c <= most; };
  if (!isSmall(sum.constant) || !llvm::all_of(sum.terms, [&](const auto &term) {
        return isSmall(term.coefficient);
      }))
    return {};
  for (auto it = sum.terms.begin(); it != sum.terms.end(); ++it) {
    AffineExpr atom = it->atoms.front();
    if (it->atoms.size() != 1 || atom.getKind() != AffineExprKind::FloorDiv)
      continue;
    auto quotient = cast<AffineBinaryOpExpr>(atom);
    int64_t by = constantOf(quotient.getRHS()).value_or(0);
    if (by < 2 || by > most)
      continue;
    // (x - by + 1) / by <= x floordiv by <= x / by
    int64_t coefficient = it->coefficient;
    AffineExpr bound =
        coefficient < 0 ? quotient.getLHS() : quotient.getLHS() - (by - 1);
    sum.terms.erase(it);
    return simplify(sum.toExpr(expr.getContext()) * by + bound * coefficient);
  }
  return {};
}

/// `expr` with each remainder by a size as large or as small as it can be,
/// whichever makes the sum less: below its divisor, or no more than a dividend
/// that is not negative. Null if there is no such remainder.
static AffineExpr withoutRemainders(AffineExpr expr, const Facts &facts,
                                    bool ofDividend) {
  constexpr int64_t most = int64_t(1) << 24;
  Sum sum(expr);
  AffineExpr bounds = getAffineConstantExpr(0, expr.getContext());
  auto *rest = llvm::remove_if(sum.terms, [&](const Sum::Term &term) {
    AffineExpr atom = term.atoms.front();
    if (term.atoms.size() != 1 || atom.getKind() != AffineExprKind::Mod ||
        term.coefficient < -most || term.coefficient > most)
      return false;
    auto remainder = cast<AffineBinaryOpExpr>(atom);
    AffineExpr by = remainder.getRHS(), bound = by - 1;
    if (constantOf(by) || boundsOf(by, facts).low < 1)
      return false;
    if (ofDividend && boundsOf(remainder.getLHS(), facts).low >= 0)
      bound = remainder.getLHS();
    if (term.coefficient < 0)
      bounds = bounds + bound * term.coefficient;
    return true;
  });
  if (rest == sum.terms.end())
    return {};
  sum.terms.erase(rest, sum.terms.end());
  return simplify(sum.toExpr(expr.getContext()) + bounds, facts);
}

static bool isNonNegativeByQuotients(AffineExpr expr, const Facts &facts) {
  constexpr int maxQuotients = 8;
  for (int i = 0; expr && i <= maxQuotients; ++i) {
    if (boundsOf(expr, facts).low >= 0 ||
        charonia::graph::isNonNegative(expr, facts))
      return true;
    expr = withoutQuotient(simplify(expr, facts));
  }
  return false;
}

bool SizeFacts::isNonNegativeByRanges(AffineExpr expr) const {
  if (isNonNegativeByQuotients(expr, facts))
    return true;
  // Remainders of remainders.
  constexpr int maxDepth = 4;
  for (bool ofDividend : {false, true}) {
    AffineExpr less = simplify(expr, facts);
    for (int i = 0; less && i < maxDepth; ++i) {
      less = withoutRemainders(less, facts, ofDividend);
      if (less && isNonNegativeByQuotients(less, facts))
        return true;
    }
  }
  return false;
}

namespace {
/// Sizes of ranges at which one expression may be less than others: what is
/// negative there is not proved by ranges, which a look at the numbers says
/// sooner than an attempt at a proof. A model may relate a size in hundreds of
/// ways, and each question asks all of them. A size there is in its own range
/// and a multiple of its own divisor; multiples that others of its sums are,
/// and all other facts, are ignored: what is not negative by these alone may
/// count as not proved.
class LowCorner {
public:
  LowCorner(AffineExpr expr, const Facts &facts)
      : facts(facts), sizes(facts.symbols.size()) {
    aim(expr, true);
    value = evaluate(expr, sizes);
  }

  /// Whether `expr` - `known` is less than 0 there.
  bool isBelow(AffineExpr known) {
    size_t before = aimed.size();
    aim(known, false);
    auto most = value ? evaluate(known, sizes) : std::nullopt;
    for (; aimed.size() > before; aimed.pop_back())
      sizes[aimed.back()] = 0;
    return most && *value < *most;
  }

private:
  /// Chooses for symbols that are not chosen yet so that `expr` is little, or
  /// much, as far as that is seen.
  void aim(AffineExpr expr, bool low) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return choose(symbol.getPosition(), low);
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary)
      return;
    bool isNegated = expr.getKind() == AffineExprKind::Mul &&
                     constantOf(binary.getRHS()).value_or(1) < 0;
    aim(binary.getLHS(), low != isNegated);
    aim(binary.getRHS(), low);
  }

  void choose(unsigned symbol, bool low) {
    if (symbol >= sizes.size() || sizes[symbol])
      return;
    constexpr int64_t much = int64_t(1) << 32;
    Interval range = facts.symbols[symbol];
    int64_t divisor = facts.symbolDivisors[symbol];
    if (range.low < 1 || range.low > much || divisor < 1 || divisor > much)
      return;
    int64_t least = llvm::divideCeil(range.low, divisor) * divisor,
            most = std::min(range.high, much) / divisor * divisor;
    if (least > most)
      return;
    sizes[symbol] = low ? least : most;
    aimed.push_back(symbol);
  }

  const Facts &facts;
  /// 0 of symbols that nothing is said of.
  SmallVector<int64_t> sizes;
  SmallVector<unsigned> aimed;
  std::optional<int64_t> value;
};
} // namespace

bool SizeFacts::isNonNegative(AffineExpr expr) const {
  if (isNonNegativeByRanges(expr))
    return true;
  if (nonNegative.empty())
    return false;
  // What is asked is most often what was said.
  AffineExpr simple = simplify(expr);
  if (anyOf(nonNegative, simple, [&](AffineExpr e) { return e == simple; }))
    return true;
  LowCorner corner(expr, facts);
  return anyOf(nonNegative, expr, [&](AffineExpr known) {
    return !corner.isBelow(known) &&
           isNonNegativeByRanges(simplify(expr - known, facts));
  });
}

bool SizeFacts::isProved(const Constraint &c) const {
  switch (c.relation) {
  case Relation::Equal:
    return areEqual(c.left, c.right) == true;
  case Relation::Divides: {
    auto divisor = constantOf(c.left);
    return divisor && isMultiple(c.right, *divisor) == true;
  }
  case Relation::AtLeast:
    return isNonNegative(c.left - c.right);
  case Relation::Differs:
    return areEqual(c.left, c.right) == false;
  }
  llvm_unreachable("no such relation");
}

std::optional<bool> SizeFacts::isMultiple(AffineExpr expr,
                                          int64_t divisor) const {
  auto remainder = constantOf(simplify(expr % divisor, facts));
  if (remainder)
    return *remainder == 0;
  if (divisorOf(expr, facts) % divisor == 0)
    return true;
  bool known = anyOf(multiples, expr, [&](const Multiple &multiple) {
    return multiple.divisor % divisor == 0 &&
           constantOf(simplify((expr - multiple.expr) % divisor, facts)) == 0;
  });
  return known ? std::optional(true) : std::nullopt;
}

std::optional<bool> SizeFacts::areEqual(AffineExpr a, AffineExpr b) const {
  AffineExpr difference = a == b ? getAffineConstantExpr(0, a.getContext())
                                 : simplify(a - b, facts);
  if (difference == 0)
    return true;
  Interval range = boundsOf(difference, facts);
  if (range.low > 0 || range.high < 0 ||
      charonia::graph::isNonNegative(difference - 1, facts) ||
      charonia::graph::isNonNegative(-difference - 1, facts))
    return false;
  if (auto exact = findExactDivision(difference))
    return isMultiple(exact->dividend, exact->divisor);
  Equation equation = toEquation(difference);
  return equal.contains({equation.left, equation.right}) ? std::optional(true)
                                                         : std::nullopt;
}

// Rules.

static GraphDialect *dialectOf(MLIRContext *context) {
  return context->getLoadedDialect<GraphDialect>();
}

ScopedSizeRules::ScopedSizeRules(MLIRContext *context, SizeRules *rules)
    : context(context), outer(dialectOf(context)->sizeRules) {
  dialectOf(context)->sizeRules = rules;
}
ScopedSizeRules::~ScopedSizeRules() { dialectOf(context)->sizeRules = outer; }

bool charonia::graph::sizesAgree(AffineExpr a, AffineExpr b, StringRef why) {
  GraphDialect *dialect = dialectOf(a.getContext());
  SizeRules *rules = dialect ? dialect->sizeRules : nullptr;
  return rules ? rules->agree(a, b, why) : mayBeEqual(a, b);
}

namespace {
class ProvedSizes : public SizeRules {
public:
  explicit ProvedSizes(const SizeFacts &facts) : facts(facts) {}
  bool agree(AffineExpr a, AffineExpr b, StringRef) override {
    return a == b || facts.areEqual(a, b) == true;
  }

private:
  const SizeFacts &facts;
};
} // namespace

LogicalResult charonia::graph::verifySizes(ModuleOp module) {
  SmallVector<Symbol> symbols = getSymbols(module);
  SmallVector<Constraint> constraints = getConstraints(module);
  SizeFacts facts(symbols, constraints);
  ProvedSizes rules(facts);
  ScopedSizeRules scope(module.getContext(), &rules);
  return verify(module);
}
