#include "frontends/common/Symbols.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

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
    publish();
  }
  byName[name] = expr;
  return expr;
}

void Symbols::publish() { graph::setSymbols(module, symbols); }

graph::Interval Symbols::bounds(AffineExpr expr) const {
  return graph::boundsOf(expr, graph::getFacts(symbols));
}
bool Symbols::isNonNegative(AffineExpr expr) const {
  return bounds(expr).low >= 0 ||
         graph::isNonNegative(expr, graph::getFacts(symbols));
}

/// The difference, or null where it leaves 64 bits.
static AffineExpr difference(AffineExpr a, AffineExpr b) {
  auto ca = graph::constantOf(a), cb = graph::constantOf(b);
  int64_t value;
  if (ca && cb)
    return llvm::SubOverflow(*ca, *cb, value)
               ? AffineExpr()
               : mlir::getAffineConstantExpr(value, a.getContext());
  auto large = [](std::optional<int64_t> c) {
    return c && (*c > 4 * maxDimension || *c < -4 * maxDimension);
  };
  return large(ca) || large(cb) ? AffineExpr() : graph::simplify(a - b);
}

bool Symbols::isAtLeast(AffineExpr a, AffineExpr b) const {
  if (bounds(a).low >= bounds(b).high)
    return true;
  AffineExpr diff = difference(a, b);
  return diff && isNonNegative(diff);
}

bool Symbols::assumeAtLeast(AffineExpr a, AffineExpr b,
                            const std::string &why) {
  if (isAtLeast(a, b))
    return true;
  AffineExpr diff = difference(a, b);
  if (!diff)
    return false;
  // Linear in one symbol: diff = slope * s + offset.
  std::optional<unsigned> only;
  bool linear = true;
  diff.walk([&](AffineExpr e) {
    if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e)) {
      linear &= !only || *only == symbol.getPosition();
      only = symbol.getPosition();
    }
    linear &= e.getKind() != mlir::AffineExprKind::Mod &&
              e.getKind() != mlir::AffineExprKind::FloorDiv &&
              e.getKind() != mlir::AffineExprKind::CeilDiv && e.isPureAffine();
  });
  if (!linear || !only || declared[*only])
    return false;
  llvm::SmallVector<int64_t> values(symbols.size(), 0);
  auto at0 = graph::evaluate(diff, values);
  values[*only] = 1;
  auto at1 = graph::evaluate(diff, values);
  if (!at0 || !at1 || *at0 == *at1)
    return false;
  int64_t slope = *at1 - *at0, offset = *at0;
  graph::Symbol &symbol = symbols[*only];
  int64_t low = symbol.min, high = symbol.max;
  if (slope > 0)
    low = std::max(low, llvm::divideCeilSigned(-offset, slope));
  else
    high = std::min(high, llvm::divideFloorSigned(offset, -slope));
  if (low > high)
    return false;
  symbol.min = low;
  symbol.max = high;
  symbol.opt = std::clamp(symbol.opt, low, high);
  publish();
  notes.push_back("size '" + symbol.name + "' is " +
                  (slope > 0 ? "at least " + std::to_string(low)
                             : "at most " + std::to_string(high)) +
                  " " + why);
  return true;
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

std::pair<std::string, bool>
Symbols::nameSymbols(llvm::StringRef message) const {
  std::string text;
  bool found = false;
  for (size_t i = 0; i < message.size();) {
    size_t end = i;
    while (end < message.size() &&
           (llvm::isAlnum(message[end]) || message[end] == '_'))
      ++end;
    llvm::StringRef word = message.slice(i, std::max(end, i + 1)),
                    number = word;
    size_t position;
    if (number.consume_front("s") && !number.getAsInteger(10, position) &&
        position < symbols.size()) {
      text += symbols[position].name;
      found = true;
    } else {
      text += word;
    }
    i += word.size();
  }
  return {text, found};
}
