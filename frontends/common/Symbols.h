// The shape symbols of a module while it is imported, and what is assumed of
// them.
#ifndef CHARONIA_FRONTENDS_COMMON_SYMBOLS_H
#define CHARONIA_FRONTENDS_COMMON_SYMBOLS_H

#include "frontends/common/ShapeOption.h"
#include "graph/ir/Constraints.h"
#include "graph/ir/Definitions.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringMap.h"

namespace charonia::frontend {

constexpr size_t maxDefinitions = 256;

/// Symbols by name, with ranges that the user declared or that are assumed.
///
/// What a node needs of sizes and does not follow from them is assumed, and
/// becomes a constraint of the module: that a table of 512 positions is not
/// left, that two sizes are equal, that one divides another. An assumption
/// narrows ranges that are assumed themselves, never those that were declared,
/// and where it says what a symbol is, the symbol is replaced in the module.
class Symbols {
public:
  explicit Symbols(mlir::ModuleOp module) : module(module) {}

  /// The size called `name`: a symbol, made if there is none, or a constant.
  /// `range` is what the user declared; without one, `assumed` holds. Null and
  /// a message in `error` where two declarations differ.
  mlir::AffineExpr get(llvm::StringRef name, std::optional<DimRange> range,
                       const DimRange &assumed, std::string &error);

  /// A size that `program` computes from others: a symbol, where there is none
  /// that is defined alike, less a number where it may be negative. Null where
  /// its range cannot be told.
  mlir::AffineExpr define(const graph::SizeProgram &program);

  // Counters.
  /// A symbol that is 1 more than the number of a step, and 1 but in the steps.
  /// What is proved or assumed of it has to hold in all steps, and so in the
  /// first and in the last: it is put in terms of other sizes. Null where there
  /// are too many symbols.
  mlir::AffineExpr addCounter();
  /// A counter that nothing names that stays becomes the next one.
  void giveBack(mlir::AffineExpr counter);
  /// How many steps there are, at most; nothing may be proved or assumed
  /// before.
  void setCount(mlir::AffineExpr counter, mlir::AffineExpr count);
  /// That it stays so: its range becomes the counter's.
  void settleCount(mlir::AffineExpr counter);
  /// Whether a size differs from step to step.
  bool namesCounter(mlir::AffineExpr expr) const;
  /// How a symbol that is defined is computed; null for others.
  const graph::SizeProgram *programOf(unsigned symbol) const;
  /// What definitions say: `a` >= `b`.
  void learnAtLeast(mlir::AffineExpr a, mlir::AffineExpr b);

  /// Declares a size by name before it is met.
  std::string declare(llvm::StringRef name, const DimRange &range);

  llvm::ArrayRef<graph::Symbol> list() const { return symbols; }
  graph::Interval bounds(mlir::AffineExpr expr) const;
  /// Whether `expr` >= 0 for all sizes in their ranges.
  bool isNonNegative(mlir::AffineExpr expr) const;
  /// Whether `a` - `b` >= 0 for all sizes in their ranges.
  bool isAtLeast(mlir::AffineExpr a, mlir::AffineExpr b) const;

  /// Whether nothing may be assumed for now, but what is proved. Gives back
  /// what was before.
  bool setTrial(bool value) { return std::exchange(inTrial, value); }

  /// What was assumed while nothing was recorded: how often, and of that for a
  /// branch that may not be taken.
  struct Supposed {
    int64_t all = 0, inBranches = 0;
  };
  /// From now on what would be recorded is but supposed, and counted; null ends
  /// that. Gives back what was before.
  Supposed *setSupposed(Supposed *value) {
    return std::exchange(supposed, value);
  }
  /// Whether later assumptions are made for a branch that may not be taken.
  /// Gives back what it was before.
  bool setInBranch(bool value) { return std::exchange(inBranch, value); }
  bool isInBranch() const { return inBranch; }

  // Assumptions. Each holds already, or is recorded, or gives false: it cannot
  // hold, or not for all of a range that the user declared.
  /// The node that later assumptions are made for: "MatMul 'fc1'".
  void setAsker(std::string name) { asker = std::move(name); }
  /// `a` - `b` >= 0. `why` as in "so that a slice ends inside its tensor".
  bool assumeAtLeast(mlir::AffineExpr a, mlir::AffineExpr b,
                     const std::string &why);
  /// `a` = `b`. `why` as in "multiplies over them", of the asker.
  bool assumeEqual(mlir::AffineExpr a, mlir::AffineExpr b,
                   const std::string &why);
  /// `a` != `b`. `why` as in assumeAtLeast().
  bool assumeDifferent(mlir::AffineExpr a, mlir::AffineExpr b,
                       const std::string &why);
  /// A relation that is checked when shapes are bound, whatever the ranges: not
  /// even sizes that nobody declared are kept to it. False where it never
  /// holds.
  bool check(graph::Constraint::Relation relation, mlir::AffineExpr a,
             mlir::AffineExpr b, const std::string &why);
  /// `a` - `b` >= 0, assumed, or checked where a range that the user declared
  /// has sizes of which it does not hold.
  bool needAtLeast(mlir::AffineExpr a, mlir::AffineExpr b,
                   const std::string &why);
  /// Why the last assumption cannot be made; may be empty.
  const std::string &refusal() const { return refused; }

  // Symbols that turn out to be other sizes.
  /// What replaces symbols put into an expression, a type or an attribute.
  mlir::AffineExpr resolve(mlir::AffineExpr expr) const;
  mlir::Type resolve(mlir::Type type);
  mlir::Attribute resolve(mlir::Attribute attribute);
  /// The map without dims to these values, resolved, over just the symbols that
  /// they name, as encodings are.
  mlir::AffineMap mapTo(llvm::ArrayRef<mlir::AffineExpr> results) const;
  /// How often symbols were replaced so far. What was made before the last time
  /// may name symbols that are gone, until it is resolved.
  int64_t replacements() const { return replaced; }
  /// The value with its type resolved.
  mlir::Value resolve(mlir::Value value);
  /// Resolves the types and attributes of all operators; once, behind the last
  /// one.
  void resolveModule();

  /// Makes the sizes to optimize for satisfy the assumptions, and puts symbols
  /// and constraints on the module. `problem` tells of sizes that satisfy not
  /// all; false where these are no sizes either.
  bool finish(std::string &problem);

  /// "batch in 1..64, seq in 1..512": the ranges of the symbols in `expr`.
  std::string describeRanges(mlir::AffineExpr expr) const;
  /// What was assumed: for each a line break and "  m = n, as MatMul ...".
  std::string listAssumptions() const;
  /// With what is defined written out, as in "min(n, 20) + 1".
  std::string toString(mlir::AffineExpr expr) const;
  /// ", where size0 = min(n, 20)" of the sizes that `text` names and that are
  /// defined; empty where there are none.
  std::string explainNames(llvm::StringRef text) const;
  /// Whether `expr` names a size that is defined, other than a counter.
  bool namesDefined(mlir::AffineExpr expr) const;
  mlir::MLIRContext *getContext() const {
    return mlir::ModuleOp(module).getContext();
  }

private:
  using Relation = graph::Constraint::Relation;

  void makeReplacer();
  bool refuse(std::string why);
  /// Whether what is assumed is not recorded; then it is counted.
  bool suppose();
  struct Counter {
    unsigned symbol;
    /// Null until it is known.
    mlir::AffineExpr count;
    bool isFree = false;
  };
  Counter &counterOf(mlir::AffineExpr expr);
  void dropFreeCounters();
  mlir::AffineExpr lastStep(const Counter &counter) const;
  /// `expr` in the step in which it is least, or less, where a remainder is
  /// taken for the least or the most that it may be: by its divisor, or by its
  /// dividend. Null where that is not one of the ends.
  mlir::AffineExpr leastInSteps(mlir::AffineExpr expr,
                                bool ofDividend = false) const;
  mlir::AffineExpr addDefined(llvm::StringRef stem, int64_t low, int64_t high,
                              graph::Definition definition);
  bool record(Relation relation, mlir::AffineExpr left, mlir::AffineExpr right,
              std::string reason);
  bool assumeMultiple(mlir::AffineExpr expr, int64_t divisor,
                      const std::string &why);
  bool limit(unsigned symbol, int64_t low, int64_t high);
  std::string toString(mlir::AffineExpr expr, unsigned depth) const;
  std::string toString(const graph::SizeProgram &program, unsigned depth) const;
  bool unify(mlir::AffineExpr equation);
  bool setValue(unsigned symbol, int64_t value);
  bool join(unsigned a, unsigned b);
  bool joinRanges(unsigned kept, unsigned replaced);
  void replace(unsigned symbol, mlir::AffineExpr value);

  mlir::ModuleOp module;
  /// Gives the sizes that are defined the values to optimize for that follow.
  void defineOptima();

  llvm::SmallVector<graph::Symbol> symbols;
  llvm::SmallVector<graph::Definition> definitions;
  /// Programs as they were asked for, and the expression of each.
  std::vector<std::pair<graph::SizeProgram, mlir::AffineExpr>> defined;
  llvm::SmallVector<Counter, 1> counters;
  llvm::SmallVector<bool> declared;
  llvm::StringMap<mlir::AffineExpr> byName;
  llvm::StringMap<DimRange> declarations;
  std::string asker, refused;
  bool inTrial = false, inBranch = false;
  Supposed *supposed = nullptr;
  /// As they were assumed, and with replaced symbols resolved.
  llvm::SmallVector<graph::Constraint> constraints, known;
  /// Of `symbols` and `known`.
  graph::SizeFacts facts;
  /// By symbol: what it is replaced by, or itself.
  llvm::SmallVector<mlir::AffineExpr> values;
  int64_t replaced = 0;
  std::unique_ptr<mlir::AttrTypeReplacer> replacer;
};

} // namespace charonia::frontend

#endif
