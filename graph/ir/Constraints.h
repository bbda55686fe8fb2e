// What a module takes for granted about its sizes.
//
// An importer assumes that sizes agree which the model leaves open: a product
// of [4, m] and [n, 5] sums over one size, so m = n. Each assumption is a
// constraint in the module's attribute `graph.constraints`; it becomes a part
// of the engine's signature and is checked when shapes are bound. So passes may
// take sizes for equal that operators combine (sizesAgree), and never add a
// constraint.
#ifndef CHARONIA_GRAPH_IR_CONSTRAINTS_H
#define CHARONIA_GRAPH_IR_CONSTRAINTS_H

#include "graph/ir/Shape.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

namespace charonia::graph {

/// A relation between two expressions over the module's symbols.
struct Constraint {
  enum class Relation {
    Equal,   ///< left = right
    Divides, ///< right is a multiple of left
    AtLeast, ///< left >= right
    Differs, ///< left != right
  };
  Relation relation = Relation::Equal;
  mlir::AffineExpr left, right;
  /// Who needs it, to end a sentence: "as MatMul 'fc1' multiplies over them".
  std::string reason;
};

/// The module's constraints, in order (attribute `graph.constraints`).
llvm::SmallVector<Constraint> getConstraints(mlir::ModuleOp module);
/// The symbols have to be set before.
void setConstraints(mlir::ModuleOp module, llvm::ArrayRef<Constraint> list);
/// Whether `attribute` can be read by getConstraints.
llvm::LogicalResult verifyConstraints(mlir::Operation *op,
                                      mlir::Attribute attribute);

/// "m = n", "n is a multiple of 4", "n <= 512", "n != 6", with the symbols' names.
std::string toString(const Constraint &constraint,
                     llvm::ArrayRef<Symbol> symbols);
/// Whether the relation holds between two numbers.
bool isSatisfied(Constraint::Relation relation, int64_t left, int64_t right);

/// What is known of sizes: the ranges and divisors of symbols, and constraints.
/// Whatever was known stays known.
class SizeFacts {
public:
  SizeFacts() = default;
  SizeFacts(llvm::ArrayRef<Symbol> symbols,
            llvm::ArrayRef<Constraint> constraints);
  void add(const Constraint &constraint);
  /// The next symbol, or a narrower range of one that is known.
  void set(unsigned position, const Symbol &symbol);

  const Facts &ranges() const { return facts; }
  /// Whether a = b always (true), never (false), or one cannot tell.
  std::optional<bool> areEqual(mlir::AffineExpr a, mlir::AffineExpr b) const;
  /// The same of whether `expr` is a multiple of `divisor` >= 1.
  std::optional<bool> isMultiple(mlir::AffineExpr expr, int64_t divisor) const;
  /// Whether `expr` >= 0 can be proved.
  bool isNonNegative(mlir::AffineExpr expr) const;
  /// Whether the constraint always holds: false says nothing.
  bool isProved(const Constraint &constraint) const;

private:
  struct Multiple {
    mlir::AffineExpr expr;
    int64_t divisor;
  };
  /// Facts of one kind by the symbols that they name, as a question is answered
  /// by one with which it shares a symbol.
  template <typename T>
  using BySymbol = llvm::DenseMap<unsigned, llvm::SmallVector<T>>;

  bool isNonNegativeByRanges(mlir::AffineExpr expr) const;

  Facts facts;
  /// Equation::left and right.
  llvm::DenseSet<std::pair<mlir::AffineExpr, mlir::AffineExpr>> equal;
  BySymbol<Multiple> multiples;
  /// left - right.
  BySymbol<mlir::AffineExpr> nonNegative;
};

/// A division in an equation that is exact if the equation holds.
struct ExactDivision {
  mlir::AffineExpr dividend;
  int64_t divisor;
};
/// The division of which `difference` = 0 says no more than that it leaves no
/// remainder: 4 * n - 8 * (n floordiv 2) = 0 means that 2 divides n.
std::optional<ExactDivision> findExactDivision(mlir::AffineExpr difference);
/// left = right, without common constant factors and negative terms.
struct Equation {
  mlir::AffineExpr left, right;
  bool operator==(const Equation &) const = default;
};
/// What `difference` = 0 says; the same of its negative: 2 * n - 2 * m is n =
/// m.
Equation toEquation(mlir::AffineExpr difference);

/// Answers the question of verifiers and type inference whether two sizes that
/// an operator takes for equal are. While one is installed on the dialect,
/// sizes agree only if it says so; without one, unless they cannot
/// (mayBeEqual).
class SizeRules {
public:
  virtual ~SizeRules() = default;
  /// `why` completes "as <node> ..."; it may be called from several threads if
  /// operators are verified in several.
  virtual bool agree(mlir::AffineExpr a, mlir::AffineExpr b,
                     llvm::StringRef why) = 0;
};

/// Installs rules for a scope. They belong to the context: two imports into one
/// context must not run at the same time.
class ScopedSizeRules {
public:
  ScopedSizeRules(mlir::MLIRContext *context, SizeRules *rules);
  ~ScopedSizeRules();
  ScopedSizeRules(const ScopedSizeRules &) = delete;
  ScopedSizeRules &operator=(const ScopedSizeRules &) = delete;

private:
  mlir::MLIRContext *context;
  SizeRules *outer;
};

/// Whether the sizes agree by the rules in force. Every verifier and type
/// inference that takes two sizes for equal asks here, so that none is accepted
/// without a proof or a constraint.
bool sizesAgree(mlir::AffineExpr a, mlir::AffineExpr b, llvm::StringRef why);

/// Verifies the module under the rule that sizes agree only if its symbols and
/// constraints prove it.
llvm::LogicalResult verifySizes(mlir::ModuleOp module);

} // namespace charonia::graph

#endif
