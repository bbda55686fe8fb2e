#include "frontends/common/Symbols.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;

static std::string toText(const DimRange &range) {
  if (range.min == range.max)
    return std::to_string(range.min);
  std::string text = std::to_string(range.min) + ".." +
                     std::to_string(range.opt) + ".." +
                     std::to_string(range.max);
  return range.divisor == 1 ? text : text + "%" + std::to_string(range.divisor);
}

std::string Symbols::declare(llvm::StringRef name, const DimRange &range) {
  auto [it, isNew] = declarations.try_emplace(name, range);
  if (isNew || it->second == range)
    return "";
  return "size '" + name.str() + "' is declared as " + toText(it->second) +
         " and as " + toText(range);
}

AffineExpr Symbols::get(llvm::StringRef name, std::optional<DimRange> range,
                        const DimRange &assumed, std::string &error) {
  if (range && !(error = declare(name, *range)).empty())
    return {};
  if (auto it = byName.find(name); it != byName.end())
    return it->second;
  auto it = declarations.find(name);
  bool isDeclared = it != declarations.end();
  const DimRange &chosen = isDeclared ? it->second : assumed;
  AffineExpr expr;
  if (isDeclared && chosen.min == chosen.max) {
    expr = mlir::getAffineConstantExpr(chosen.min, module.getContext());
  } else {
    expr = mlir::getAffineSymbolExpr(symbols.size(), module.getContext());
    symbols.push_back(
        {name.str(), chosen.min, chosen.opt, chosen.max, chosen.divisor});
    declared.push_back(isDeclared);
    values.push_back(expr);
    facts.set(symbols.size() - 1, symbols.back());
  }
  byName[name] = expr;
  return expr;
}

AffineExpr Symbols::define(const graph::SizeProgram &program) {
  constexpr size_t maxDefinitions = 256;
  mlir::MLIRContext *context = mlir::ModuleOp(module).getContext();
  // The ranges that it was defined with are of its day: what has been learned
  // since may narrow them, and its offset with them.
  for (const auto &[asked, result] : defined)
    if (asked == program)
      return graph::simplify(resolve(result));
  auto range =
      graph::rangeOf(program, [&](AffineExpr expr) { return bounds(expr); });
  if (!range || range->high - range->low > double(maxDimension))
    return {};
  auto offset = static_cast<int64_t>(std::min(range->low, 0.0));
  auto high = static_cast<int64_t>(range->high) - offset;
  if (definitions.size() == maxDefinitions)
    return {};
  graph::Definition definition{static_cast<unsigned>(symbols.size()), program};
  if (offset < 0) {
    AffineExpr number = mlir::getAffineConstantExpr(offset, context);
    definition.program.push_back({graph::SizeStep::Op::Size, number, 0});
    definition.program.push_back({graph::SizeStep::Op::Sub, {}, 0});
  }
  std::string name;
  for (size_t i = definitions.size(); name.empty() || byName.count(name); ++i)
    name = "size" + std::to_string(i);
  AffineExpr symbol = mlir::getAffineSymbolExpr(symbols.size(), context);
  auto low = static_cast<int64_t>(std::max(range->low, 0.0));
  symbols.push_back({name, low, low, high, 1});
  declared.push_back(false);
  values.push_back(symbol);
  facts.set(symbols.size() - 1, symbols.back());
  byName[name] = symbol;
  definitions.push_back(std::move(definition));
  defineOptima();
  defined.push_back({program, graph::simplify(symbol + offset)});
  return defined.back().second;
}

void Symbols::learnAtLeast(AffineExpr a, AffineExpr b) {
  if (a && b)
    facts.add({Relation::AtLeast, resolve(a), resolve(b), ""});
}

void Symbols::defineOptima() {
  llvm::SmallVector<int64_t> optima;
  for (const graph::Symbol &symbol : symbols)
    optima.push_back(symbol.opt);
  for (const graph::Definition &d : definitions) {
    graph::Symbol &symbol = symbols[d.symbol];
    int64_t value = graph::evaluate(d.program, optima).value_or(symbol.min);
    symbol.opt = std::clamp(value, symbol.min, symbol.max);
    optima[d.symbol] = symbol.opt;
  }
}

graph::Interval Symbols::bounds(AffineExpr expr) const {
  return graph::boundsOf(expr, facts.ranges());
}

std::string Symbols::describeRanges(AffineExpr expr) const {
  llvm::SmallVector<bool> used(symbols.size());
  expr.walk([&](AffineExpr e) {
    if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e))
      if (symbol.getPosition() < used.size())
        used[symbol.getPosition()] = true;
  });
  std::string text;
  for (auto [symbol, isUsed] : llvm::zip(symbols, used))
    if (isUsed)
      text += (text.empty() ? "" : ", ") + symbol.name + " in " +
              std::to_string(symbol.min) + ".." + std::to_string(symbol.max);
  return text;
}

std::string Symbols::toString(AffineExpr expr) const {
  mlir::Type element = mlir::IntegerType::get(expr.getContext(), 64);
  std::string text =
      graph::shapeToString(graph::makeType({expr}, element), symbols);
  return text.size() > 2 ? text.substr(1, text.size() - 2) : text;
}
