#include "frontends/common/Conditions.h"
#include "frontends/common/Steps.h"
#include "mlir/IR/OperationSupport.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::Value;

graph::CompareOp Condition::compare() const {
  return kind == Kind::Other && value ? value.getDefiningOp<graph::CompareOp>()
                                      : graph::CompareOp();
}

/// Whether two values are computed alike.
static bool areAlike(Value a, Value b, int depth = 0) {
  constexpr int maxDepth = 8;
  if (a == b)
    return true;
  mlir::Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  // States that begin alike do not stay so.
  if (llvm::isa_and_present<graph::CarriedOp>(left))
    return false;
  auto operands = [&](Value x, Value y) {
    return llvm::success(areAlike(x, y, depth + 1));
  };
  using mlir::OperationEquivalence;
  return left && right && depth < maxDepth && left->getNumResults() == 1 &&
         OperationEquivalence::isEquivalentTo(
             left, right, operands, /*markEquivalent=*/nullptr,
             OperationEquivalence::IgnoreLocations);
}

namespace {
class ConditionReader {
public:
  explicit ConditionReader(Emitter &e) : e(e) {}

  Condition of(Value value) { return of({value, false}, 0); }

private:
  /// A truth value, or what it is not.
  struct Term {
    Value value;
    bool isNegated = false;
  };

  Condition of(Term term, int depth) {
    constexpr int maxDepth = 16, maxParts = 1024;
    if (!term.value || depth > maxDepth || ++parts > maxParts)
      return leaf(term);
    term = seenThrough(term);
    if (auto known = knownInteger(term.value, e)) {
      Condition condition = leaf(term);
      condition.kind = Condition::Kind::Known;
      condition.truth = (*known != 0) != term.isNegated;
      return condition;
    }
    mlir::Operation *op = term.value.getDefiningOp();
    if (auto select = llvm::dyn_cast_or_null<graph::SelectOp>(op))
      return chosen(select, term.isNegated, depth);
    if (!llvm::isa_and_present<graph::AndOp, graph::OrOp>(op))
      return leaf(term);
    // Not both is that either is not.
    return pair(llvm::isa<graph::AndOp>(op) != term.isNegated,
                of({op->getOperand(0), term.isNegated}, depth + 1),
                of({op->getOperand(1), term.isNegated}, depth + 1));
  }

  static Condition leaf(Term term) {
    Condition condition;
    condition.value = term.value;
    condition.isNegated = term.isNegated;
    return condition;
  }
  static Condition pair(bool isBoth, Condition a, Condition b) {
    Condition condition;
    condition.kind = isBoth ? Condition::Kind::Both : Condition::Kind::Either;
    condition.parts.push_back(std::move(a));
    condition.parts.push_back(std::move(b));
    return condition;
  }

  /// Behind negations and other shapes.
  Term seenThrough(Term term) {
    for (mlir::Operation *op; (op = term.value.getDefiningOp());) {
      std::optional<unsigned> next;
      if (llvm::isa<graph::ReshapeOp, graph::BroadcastOp>(op)) {
        next = 0;
      } else if (llvm::isa<graph::NotOp>(op)) {
        next = 0;
        term.isNegated = !term.isNegated;
      } else if (auto compare = llvm::dyn_cast<graph::CompareOp>(op)) {
        bool isSame = compare.getPredicate() == graph::Predicate::eq;
        if (isSame || compare.getPredicate() == graph::Predicate::ne)
          next = comparedTruth(op, isSame, term.isNegated);
      } else if (llvm::isa<graph::XorOp>(op)) {
        next = comparedTruth(op, false, term.isNegated);
      }
      if (!next)
        break;
      term.value = op->getOperand(*next);
    }
    return term;
  }
  /// The operand that has to be the same as true or false, or another.
  std::optional<unsigned> comparedTruth(mlir::Operation *op, bool isSame,
                                        bool &isNegated) {
    if (!elementOf(op->getOperand(0)).isInteger(1))
      return std::nullopt;
    for (unsigned i : {0, 1})
      if (auto known = knownInteger(op->getOperand(i), e)) {
        isNegated ^= isSame == (*known == 0);
        return 1 - i;
      }
    return std::nullopt;
  }

  /// What a side of a choice is where `test` is `truth`, if that is known: it
  /// may be the test itself.
  std::optional<bool> knownWhere(Value side, Term test, bool truth) {
    if (auto known = knownInteger(side, e))
      return *known != 0;
    Term term = seenThrough({side});
    if (!areAlike(term.value, test.value))
      return std::nullopt;
    return truth == (term.isNegated == test.isNegated);
  }

  Condition chosen(graph::SelectOp select, bool isNegated, int depth) {
    Value test = select->getOperand(0), yes = select->getOperand(1),
          no = select->getOperand(2);
    auto part = [&](Value value, bool isNot) {
      return of({value, isNot}, depth + 1);
    };
    auto where = [&](Value side, bool truth) {
      std::optional<bool> known = knownWhere(side, seenThrough({test}), truth);
      return known ? std::optional(*known != isNegated) : known;
    };
    std::optional<bool> ifYes = where(yes, true), ifNo = where(no, false);
    if (ifNo == false)
      return pair(true, part(test, false), part(yes, isNegated));
    if (ifYes == true)
      return pair(false, part(test, false), part(no, isNegated));
    if (ifYes == false)
      return pair(true, part(test, true), part(no, isNegated));
    if (ifNo == true)
      return pair(false, part(test, true), part(yes, isNegated));
    return pair(false, pair(true, part(test, false), part(yes, isNegated)),
                pair(true, part(test, true), part(no, isNegated)));
  }

  Emitter &e;
  int parts = 0;
};
} // namespace

Condition charonia::frontend::readCondition(Value value, Emitter &e) {
  return ConditionReader(e).of(value);
}

bool charonia::frontend::isOpenBySizes(const Condition &condition, Emitter &e) {
  auto isOpen = [&](Value value) {
    graph::SymbolicTensor known = e.evaluate(value);
    return known.isComplete() && !known.constants();
  };
  if (auto compare = condition.compare())
    return isOpen(compare.getLhs()) || isOpen(compare.getRhs());
  return llvm::any_of(condition.parts, [&](const Condition &part) {
    return isOpenBySizes(part, e);
  });
}
