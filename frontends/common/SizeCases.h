// Sizes that depend on which case others are: an expression where a proof says
// which, else a size that is defined by a program (Symbols::define).
#ifndef CHARONIA_FRONTENDS_COMMON_SIZECASES_H
#define CHARONIA_FRONTENDS_COMMON_SIZECASES_H

#include "frontends/common/Symbols.h"
#include "graph/ir/Dialect.h"

namespace charonia::frontend {

// All give null where a range cannot be told.
/// The larger of two sizes, or the smaller.
mlir::AffineExpr largerOf(Symbols &symbols, mlir::AffineExpr a,
                          mlir::AffineExpr b, bool largest);
/// Whether the relation holds, as 0 or 1.
mlir::AffineExpr truthOf(Symbols &symbols, graph::Predicate predicate,
                         mlir::AffineExpr a, mlir::AffineExpr b);
/// `a` where `condition` is 1, `b` where it is 0.
mlir::AffineExpr choiceOf(Symbols &symbols, mlir::AffineExpr condition,
                          mlir::AffineExpr a, mlir::AffineExpr b);

/// The range of `size` where `condition`, of truthOf, holds; or, `holds` false,
/// where it does not. No narrower than is known without it if that is empty.
graph::Interval rangeWhere(const Symbols &symbols, mlir::AffineExpr condition,
                           bool holds, mlir::AffineExpr size);
/// A program that computes the same where `condition` is as `holds` says, and
/// elsewhere numbers of the ranges that its sizes have there.
graph::SizeProgram programWhere(const Symbols &symbols,
                                mlir::AffineExpr condition, bool holds,
                                llvm::ArrayRef<graph::SizeStep> program);

} // namespace charonia::frontend

#endif
