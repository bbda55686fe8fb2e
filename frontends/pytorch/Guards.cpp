// What an exported program takes for granted of its inputs' sizes beside their
// ranges: conditions under which its branches are those of the model.
#include "frontends/pytorch/GuardSources.h"
#include "frontends/pytorch/ProgramImporter.h"
#include "llvm/ADT/StringSwitch.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using mlir::AffineExpr;
using Relation = graph::Constraint::Relation;
using llvm::StringRef;

/// The comparison that holds where the other does not; empty for other heads.
static StringRef oppositeOf(StringRef head) {
  return llvm::StringSwitch<StringRef>(head)
      .Case("Equality", "Unequality")
      .Case("Unequality", "Equality")
      .Case("GreaterThan", "StrictLessThan")
      .Case("StrictLessThan", "GreaterThan")
      .Case("LessThan", "StrictGreaterThan")
      .Case("StrictGreaterThan", "LessThan")
      .Default("");
}

/// What Python computes of a divisor of 0 is an error: a guard with one does
/// not hold.
bool ProgramImporter::assumeDivisors(const ExpressionPtr &guard,
                                     const std::string &text) {
  if (!divisors.insert(guard.get()).second)
    return true;
  for (const ExpressionPtr &operand : guard->operands)
    if (!assumeDivisors(operand, text))
      return false;
  // Of those that nodes assert the file has its own words.
  bool divides = llvm::is_contained(
      {"FloorDiv", "PythonMod", "IntTrueDiv", "Mod", "CleanDiv", "CeilDiv"},
      StringRef(guard->head));
  if (!divides || guard->operands.size() != 2 ||
      Sizes::isFloat(*guard->operands[1]))
    return true;
  AffineExpr divisor = sizes.convert(guard->operands[1]);
  if (!divisor)
    return true; // It is told with the guard.
  AffineExpr one = mlir::getAffineConstantExpr(1, builder.getContext());
  Symbols &symbols = builder.getSymbols();
  return symbols.assumeAtLeast(divisor, one, text) ||
         symbols.check(Relation::AtLeast, divisor, one, text);
}

/// a >= b without a division: n floordiv 4 >= 3 where n >= 12.
static void dropDivision(AffineExpr &a, AffineExpr &b) {
  auto quotient = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(a);
  auto least = graph::constantOf(b);
  if (!quotient || !least || a.getKind() != mlir::AffineExprKind::FloorDiv)
    return;
  auto divisor = graph::constantOf(quotient.getRHS());
  int64_t product;
  if (!divisor || *divisor < 1 || llvm::MulOverflow(*least, *divisor, product))
    return;
  a = quotient.getLHS();
  b = mlir::getAffineConstantExpr(product, b.getContext());
}

/// -a >= b as a <= -b, so that a quotient that is rounded up, -(-n floordiv 4),
/// is one. Gives the head of the comparison that results.
static StringRef dropSign(StringRef head, AffineExpr &a, AffineExpr &b) {
  auto product = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(a);
  if (!product || a.getKind() != mlir::AffineExprKind::Mul ||
      graph::constantOf(product.getRHS()) != -1 || !graph::constantOf(b))
    return head;
  a = product.getLHS();
  b = graph::simplify(-b);
  return llvm::StringSwitch<StringRef>(head)
      .Case("GreaterThan", "LessThan")
      .Case("LessThan", "GreaterThan")
      .Case("StrictGreaterThan", "StrictLessThan")
      .Case("StrictLessThan", "StrictGreaterThan")
      .Default(head);
}

/// A comparison of two sizes.
bool ProgramImporter::assumeComparison(const ExpressionPtr &guard,
                                       const std::string &text) {
  Symbols &symbols = builder.getSymbols();
  AffineExpr a = sizes.convert(guard->operands[0]),
             b = sizes.convert(guard->operands[1]);
  auto atLeast = [&](AffineExpr x, AffineExpr y) {
    dropDivision(x, y);
    // A range that is declared stays as it is: what guards leave of it is
    // looked at when shapes are bound.
    return symbols.assumeAtLeast(x, y, text) ||
           symbols.check(Relation::AtLeast, x, y, text);
  };
  auto atMost = [&](AffineExpr x, AffineExpr y) {
    // x floordiv 4 <= 2 where not x floordiv 4 >= 3
    AffineExpr more = graph::simplify(y + 1), dividend = x;
    dropDivision(dividend, more);
    return dividend == x ? atLeast(y, x)
                         : atLeast(graph::simplify(more - 1), dividend);
  };
  StringRef head = dropSign(guard->head, a, b);
  if (head == "GreaterThan")
    return graph::constantOf(a) ? atMost(b, a) : atLeast(a, b);
  if (head == "LessThan")
    return graph::constantOf(a) ? atLeast(b, a) : atMost(a, b);
  if (head == "StrictGreaterThan")
    return graph::constantOf(a) ? atMost(b, graph::simplify(a - 1))
                                : atLeast(a, graph::simplify(b + 1));
  if (head == "StrictLessThan")
    return graph::constantOf(a) ? atLeast(b, graph::simplify(a + 1))
                                : atMost(a, graph::simplify(b - 1));
  if (head == "Unequality")
    return symbols.assumeDifferent(a, b, text) ||
           symbols.check(Relation::Differs, a, b, text);
  // A quotient that is one number lies between two.
  AffineExpr dividend = a, least = b;
  dropDivision(dividend, least);
  return dividend == a ? symbols.assumeEqual(a, b, "says") ||
                             symbols.check(Relation::Equal, a, b, text)
                       : atLeast(a, b) && atMost(a, b);
}

bool ProgramImporter::assumeGuard(const ExpressionPtr &guard,
                                  const std::string &text) {
  StringRef head = guard->head;
  const auto &operands = guard->operands;
  if (head == "And")
    return llvm::all_of(operands, [&](const ExpressionPtr &operand) {
      return assumeGuard(operand, text);
    });
  if (!assumeDivisors(guard, text))
    return false;
  if (auto holds = sizes.decide(guard))
    return *holds;
  if (head == "Not" && operands.size() == 1)
    if (StringRef opposite = oppositeOf(operands[0]->head); !opposite.empty()) {
      auto other = std::make_shared<Expression>(*operands[0]);
      other->head = opposite.str();
      kept.push_back(other);
      return assumeGuard(other, text);
    }
  bool isOfSizes =
      !oppositeOf(head).empty() &&
      llvm::all_of(operands, [&](const ExpressionPtr &operand) {
        return !Sizes::isFloat(*operand) && bool(sizes.convert(operand));
      });
  if (isOfSizes)
    return assumeComparison(guard, text);
  AffineExpr holds = sizes.truth(guard);
  AffineExpr one = mlir::getAffineConstantExpr(1, builder.getContext());
  return holds && builder.getSymbols().assumeAtLeast(holds, one, text);
}

/// Why a condition that the program states cannot be assumed; none where it is,
/// or holds already.
std::optional<std::string>
ProgramImporter::assumeCondition(const ExpressionPtr &condition,
                                 const std::string &name) {
  Symbols &symbols = builder.getSymbols();
  symbols.setAsker(name + " of the program");
  bool good = assumeGuard(condition, "as the program was exported");
  std::string why = symbols.refusal();
  symbols.setAsker("");
  if (good)
    return std::nullopt;
  if (sizes.decide(condition) == false)
    return "holds for none of the sizes";
  return why.empty() ? "cannot be computed from sizes"
                     : "does not hold: " + why;
}

void ProgramImporter::readGuards() {
  SourceReader reader(program);
  GuardParser parser(
      [&](const GuardSource &source) { return reader.read(source); });
  for (const std::string &guard : program.guards) {
    reader.namesMemory = false;
    reader.ambiguous.clear();
    std::string problem, text = guardToString(guard);
    ExpressionPtr condition = parser.parse(guard, problem);
    if (!condition) {
      builder.fail("the program's guard '" + text + "' cannot be read: it " +
                       problem,
                   "export the program again");
      return;
    }
    guards.push_back({text, condition, reader.namesMemory, reader.ambiguous});
    llvm::StringSet<> names;
    collectSymbols(condition, names);
    if (names.size() == 1 && !reader.namesMemory)
      guardsOf[names.begin()->first()].push_back(condition);
  }
}

/// Whether it is a guard that says how large a symbol may be at most: its range
/// is then what the exporter made of that, not what was declared.
bool ProgramImporter::isLimited(const std::string &symbol, int64_t most) {
  auto it = guardsOf.find(symbol);
  if (it == guardsOf.end() || most == INT64_MAX)
    return false;
  auto holdsAt = [&](const ExpressionPtr &guard, int64_t size) {
    Sizes trial(builder.getSymbols(), builder.getContext());
    trial.bind(symbol, mlir::getAffineConstantExpr(size, builder.getContext()));
    return trial.decide(guard);
  };
  return llvm::any_of(it->second, [&](const ExpressionPtr &guard) {
    return holdsAt(guard, most) == true && holdsAt(guard, most + 1) == false;
  });
}

void ProgramImporter::assumeGuards() {
  std::string ofMemory;
  for (const Guard &guard : guards) {
    if (guard.isOfMemory) {
      ofMemory = ofMemory.empty() ? guard.text : ofMemory;
      continue;
    }
    auto refused =
        assumeCondition(guard.condition, "guard '" + guard.text + "'");
    if (!refused)
      continue;
    builder.fail("the program's guard '" + guard.text + "' " +
                     (guard.ambiguous.empty()
                          ? *refused
                          : "may be of input " + guard.ambiguous),
                 conditionRemedy);
    return;
  }
  if (!ofMemory.empty())
    builder.add(Diagnostic::Severity::Note,
                "the program has guards on how its example inputs lie in "
                "memory, which are not checked: an engine's are in row-major "
                "order ('" +
                    ofMemory + "')");
}
