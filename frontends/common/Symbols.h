// The shape symbols of a module while it is imported.
#ifndef CHARONIA_FRONTENDS_COMMON_SYMBOLS_H
#define CHARONIA_FRONTENDS_COMMON_SYMBOLS_H

#include "frontends/common/ShapeOption.h"
#include "graph/ir/Shape.h"
#include "llvm/ADT/StringMap.h"

namespace charonia::frontend {

/// Symbols by name, with ranges that the user declared or that are assumed. An
/// assumed range may shrink while the model is read: a table of 512 positions
/// that is cut to the sequence's length limits that length to 512.
class Symbols {
public:
  explicit Symbols(mlir::ModuleOp module) : module(module) {}

  /// The size called `name`: a symbol, made if there is none, or a constant.
  /// `range` is what the user declared; without one, `assumed` holds. Null and
  /// a message in `error` where two declarations differ.
  mlir::AffineExpr get(llvm::StringRef name, std::optional<DimRange> range,
                       const DimRange &assumed, std::string &error);

  /// Declares a size by name before it is met.
  std::string declare(llvm::StringRef name, const DimRange &range);

  llvm::ArrayRef<graph::Symbol> list() const { return symbols; }
  graph::Interval bounds(mlir::AffineExpr expr) const;
  /// Whether `expr` >= 0 for all sizes in their ranges.
  bool isNonNegative(mlir::AffineExpr expr) const;
  /// Whether `a` - `b` >= 0 for all sizes in their ranges.
  bool isAtLeast(mlir::AffineExpr a, mlir::AffineExpr b) const;
  /// Makes `a` - `b` >= 0 hold by shrinking the assumed range of the one symbol
  /// in it, where that can be done. `why` completes "... is limited to 512 ".
  bool assumeAtLeast(mlir::AffineExpr a, mlir::AffineExpr b,
                     const std::string &why);

  /// "batch in 1..64, seq in 1..512": the ranges of the symbols in `expr`.
  std::string describeRanges(mlir::AffineExpr expr) const;
  /// What was assumed beyond the declared ranges, in sentences.
  llvm::ArrayRef<std::string> assumptions() const { return notes; }
  std::string toString(mlir::AffineExpr expr) const;
  /// A message of the compiler with the names of symbols instead of s0, s1,
  /// ..., and whether there were any.
  std::pair<std::string, bool> nameSymbols(llvm::StringRef message) const;

private:
  void publish();

  mlir::ModuleOp module;
  llvm::SmallVector<graph::Symbol> symbols;
  llvm::SmallVector<bool> declared;
  llvm::StringMap<mlir::AffineExpr> byName;
  llvm::StringMap<DimRange> declarations;
  std::vector<std::string> notes;
};

} // namespace charonia::frontend

#endif
