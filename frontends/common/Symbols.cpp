#include "frontends/common/Symbols.h"
#include "llvm/Support/FormatVariadic.h"
#include <array>
#include <cmath>

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
  mlir::MLIRContext *context = getContext();
  if (program.size() == 1 && program.front().size)
    return program.front().size;
  // The ranges that it was defined with are of its day: what has been learned
  // since may narrow them, and its offset with them.
  for (const auto &[asked, result] : defined)
    if (asked == program)
      return graph::simplify(resolve(result));
  // It would have to be computed again in each step.
  for (const graph::SizeStep &step : program)
    if (step.size && namesCounter(step.size))
      return {};
  auto range =
      graph::rangeOf(program, [&](AffineExpr expr) { return bounds(expr); });
  // Where it may be larger than any size that is refused when shapes are bound,
  // as all that leaves a symbol's range.
  constexpr double most = maxDimension;
  if (!range || range->low < -most / 2 || range->low > most)
    return {};
  if (range->low == range->high && range->low == std::floor(range->low))
    return mlir::getAffineConstantExpr(static_cast<int64_t>(range->low),
                                       context);
  // A symbol is at least 1, whatever the size is.
  auto offset = static_cast<int64_t>(std::min(range->low - 1, 0.0));
  auto high = static_cast<int64_t>(std::min(range->high - offset, most));
  if (definitions.size() == maxDefinitions)
    return {};
  graph::Definition definition{static_cast<unsigned>(symbols.size()), program};
  if (offset < 0) {
    AffineExpr number = mlir::getAffineConstantExpr(offset, context);
    definition.program.push_back({graph::SizeStep::Op::Size, number, 0});
    definition.program.push_back({graph::SizeStep::Op::Sub, {}, 0});
  }
  auto low = static_cast<int64_t>(range->low) - offset;
  AffineExpr symbol = addDefined("size", low, high, std::move(definition));
  defined.push_back({program, graph::simplify(symbol + offset)});
  return defined.back().second;
}

AffineExpr Symbols::addDefined(llvm::StringRef stem, int64_t low, int64_t high,
                               graph::Definition definition) {
  std::string name;
  for (size_t i = definitions.size(); name.empty() || byName.count(name); ++i)
    name = (stem + llvm::Twine(i)).str();
  AffineExpr symbol = mlir::getAffineSymbolExpr(symbols.size(), getContext());
  symbols.push_back({name, low, low, high, 1});
  declared.push_back(false);
  values.push_back(symbol);
  facts.set(symbols.size() - 1, symbols.back());
  byName[name] = symbol;
  definitions.push_back(std::move(definition));
  defineOptima();
  return symbol;
}

const graph::SizeProgram *Symbols::programOf(unsigned symbol) const {
  for (const graph::Definition &definition : definitions)
    if (definition.symbol == symbol)
      return &definition.program;
  return nullptr;
}

void Symbols::learnAtLeast(AffineExpr a, AffineExpr b) {
  if (a && b)
    facts.add({Relation::AtLeast, resolve(a), resolve(b), ""});
}

void Symbols::defineOptima() {
  llvm::SmallVector<int64_t> optima = graph::getOptimum(symbols);
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
  auto use = [&](AffineExpr part) {
    part.walk([&](AffineExpr e) {
      if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e))
        if (symbol.getPosition() < used.size())
          used[symbol.getPosition()] = true;
    });
  };
  use(expr);
  // Who wants to narrow a step's number narrows the number of steps.
  for (const Counter &counter : counters)
    if (counter.count && std::exchange(used[counter.symbol], false))
      use(resolve(counter.count));
  std::string text;
  for (auto [symbol, isUsed] : llvm::zip(symbols, used))
    if (isUsed)
      text += (text.empty() ? "" : ", ") + symbol.name + " in " +
              std::to_string(symbol.min) + ".." + std::to_string(symbol.max);
  return text;
}

/// How a step is written around its operands.
static std::array<llvm::StringRef, 3> spellingOf(graph::SizeStep::Op op) {
  using Op = graph::SizeStep::Op;
  switch (op) {
  case Op::Size:
  case Op::Number:
    break;
  case Op::Sub:
  case Op::FloatSub:
    return {"(", " - ", ")"};
  case Op::FloatAdd:
    return {"(", " + ", ")"};
  case Op::FloatMul:
    return {"(", " * ", ")"};
  case Op::FloatDiv:
    return {"(", " / ", ")"};
  case Op::Mod:
    return {"(", " % ", ")"};
  case Op::TruncDiv:
    return {"truncdiv(", ", ", ")"};
  case Op::Max:
  case Op::FloatMax:
    return {"max(", ", ", ")"};
  case Op::Min:
  case Op::FloatMin:
    return {"min(", ", ", ")"};
  case Op::ToFloat:
    return {"float(", "", ")"};
  case Op::ToSingle:
    return {"single(", "", ")"};
  case Op::Truncate:
    return {"int(", "", ")"};
  case Op::Floor:
    return {"floor(", "", ")"};
  case Op::Ceil:
    return {"ceil(", "", ")"};
  case Op::Round:
    return {"round(", "", ")"};
  case Op::Sqrt:
    return {"sqrt(", "", ")"};
  }
  return {};
}

/// Programs inside of one another that are written out, and a text's length.
constexpr unsigned maxDepth = 4;
constexpr size_t maxText = 160;

std::string Symbols::toString(const graph::SizeProgram &program,
                              unsigned depth) const {
  llvm::SmallVector<std::string> stack;
  for (const graph::SizeStep &step : program) {
    auto [before, between, after] = spellingOf(step.op);
    if (step.op == graph::SizeStep::Op::Size) {
      stack.push_back(toString(resolve(step.size), depth));
    } else if (step.op == graph::SizeStep::Op::Number) {
      stack.push_back(llvm::formatv("{0:f6}", step.number).str());
      llvm::StringRef number(stack.back());
      number = number.rtrim('0').rtrim('.');
      stack.back() = number.str();
    } else {
      std::string last = stack.pop_back_val();
      std::string text = before.str();
      if (!between.empty())
        text += stack.pop_back_val() + between.str();
      stack.push_back(text + last + after.str());
    }
    if (stack.back().size() > maxText)
      return "";
  }
  return stack.back();
}

/// What has to be added to the symbol to get what was asked for.
static int64_t offsetOf(const graph::Definition &definition,
                        const graph::SizeProgram &asked) {
  return definition.program.size() > asked.size()
             ? *graph::constantOf(definition.program[asked.size()].size)
             : 0;
}

std::string Symbols::toString(AffineExpr expr, unsigned depth) const {
  llvm::SmallVector<graph::Symbol> named(symbols);
  for (auto [definition, asked] : llvm::zip_equal(definitions, defined)) {
    AffineExpr symbol =
        mlir::getAffineSymbolExpr(definition.symbol, getContext());
    if (depth == 0 || !expr.isFunctionOfSymbol(definition.symbol) ||
        namesCounter(symbol))
      continue;
    std::string text = toString(asked.first, depth - 1);
    if (text.empty())
      continue;
    // The program, without the number by which its symbol is larger.
    int64_t offset = offsetOf(definition, asked.first);
    named[definition.symbol].name = text;
    expr = graph::simplify(expr.replace(symbol, symbol - offset));
  }
  mlir::Type element = mlir::IntegerType::get(getContext(), 64);
  std::string text =
      graph::shapeToString(graph::makeType({expr}, element), named);
  return text.size() > 2 ? text.substr(1, text.size() - 2) : text;
}

std::string Symbols::toString(AffineExpr expr) const {
  return toString(expr, maxDepth);
}

bool Symbols::namesDefined(AffineExpr expr) const {
  return llvm::any_of(definitions, [&](const graph::Definition &definition) {
    return expr.isFunctionOfSymbol(definition.symbol) &&
           !namesCounter(
               mlir::getAffineSymbolExpr(definition.symbol, getContext()));
  });
}

/// Whether a text has the name as a word.
static bool isNamed(llvm::StringRef text, llvm::StringRef name) {
  auto continues = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = text.find(name); at != llvm::StringRef::npos;
       at = text.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || !continues(text[at - 1])) &&
        (end == text.size() || !continues(text[end])))
      return true;
  }
  return false;
}

std::string Symbols::explainNames(llvm::StringRef text) const {
  std::string list;
  for (const graph::Definition &definition : definitions) {
    const std::string &name = symbols[definition.symbol].name;
    bool isCounter = namesCounter(
        mlir::getAffineSymbolExpr(definition.symbol, getContext()));
    std::string program =
        !isNamed(text, name) ? std::string()
        : isCounter ? "1 in the first step of a loop and one more in each other"
                    : toString(definition.program, maxDepth);
    if (!program.empty())
      list += (list.empty() ? ", where " : ", ") + name + " = " + program;
  }
  return list;
}

/// What is added to an expression, apart from it.
static std::pair<AffineExpr, int64_t> splitNumber(AffineExpr expr) {
  if (auto number = graph::constantOf(expr))
    return {mlir::getAffineConstantExpr(0, expr.getContext()), *number};
  auto sum = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(expr);
  auto number = sum && sum.getKind() == mlir::AffineExprKind::Add
                    ? graph::constantOf(sum.getRHS())
                    : std::nullopt;
  return number ? std::pair(sum.getLHS(), *number)
                : std::pair(expr, int64_t(0));
}

std::string Symbols::listAssumptions() const {
  constexpr size_t most = 32;
  std::string text, names;
  for (graph::Constraint c : llvm::ArrayRef(constraints).take_front(most)) {
    // Sizes that are defined as they were asked for, without the numbers by
    // which their symbols are larger.
    bool isShifted = false;
    for (auto [definition, asked] : llvm::zip_equal(definitions, defined)) {
      int64_t offset = offsetOf(definition, asked.first);
      AffineExpr symbol =
          mlir::getAffineSymbolExpr(definition.symbol, getContext());
      for (AffineExpr *side : {&c.left, &c.right})
        if (offset && side->isFunctionOfSymbol(definition.symbol)) {
          *side = graph::simplify(side->replace(symbol, symbol - offset));
          isShifted = true;
        }
    }
    if (isShifted && c.relation != Relation::Divides) {
      auto [left, more] = splitNumber(c.left);
      auto [right, less] = splitNumber(c.right);
      c.left = graph::simplify(left + std::max<int64_t>(more - less, 0));
      c.right = graph::simplify(right + std::max<int64_t>(less - more, 0));
    }
    text += "\n  " + graph::toString(c, symbols) +
            (c.reason.empty() ? "" : ", " + c.reason);
  }
  if (constraints.size() > most)
    text += "\n  and " + std::to_string(constraints.size() - most) + " more";
  for (auto [definition, asked] : llvm::zip_equal(definitions, defined)) {
    const std::string &name = symbols[definition.symbol].name;
    std::string program =
        isNamed(text, name) ? toString(asked.first, maxDepth) : std::string();
    if (!program.empty())
      names += (names.empty() ? "where " : ", ") + name + " = " + program;
  }
  return names.empty() ? text : text + "\n  " + names;
}
