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
