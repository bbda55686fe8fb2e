// Arithmetic on integers that follow from sizes: an expression where a proof
// says which case holds, else a size that is defined by a program.
#ifndef CHARONIA_FRONTENDS_COMMON_SIZEALGEBRA_H
#define CHARONIA_FRONTENDS_COMMON_SIZEALGEBRA_H

#include "frontends/common/Symbols.h"
#include "graph/ir/Symbolic.h"

namespace charonia::frontend {

class SizeAlgebra : public graph::IntegerAlgebra {
public:
  explicit SizeAlgebra(Symbols &symbols) : symbols(symbols) {}

  /// A symbol that is `size`.
  mlir::AffineExpr named(mlir::AffineExpr size);
  mlir::AffineExpr larger(mlir::AffineExpr a, mlir::AffineExpr b) override;
  mlir::AffineExpr smaller(mlir::AffineExpr a, mlir::AffineExpr b) override;
  mlir::AffineExpr magnitude(mlir::AffineExpr a) override;
  mlir::AffineExpr sign(mlir::AffineExpr a) override;
  mlir::AffineExpr quotient(mlir::AffineExpr a, mlir::AffineExpr b) override;
  /// Of b >= 1.
  mlir::AffineExpr modulo(mlir::AffineExpr a, mlir::AffineExpr b) override;
  mlir::AffineExpr remainder(mlir::AffineExpr a, mlir::AffineExpr b) override;
  /// Of a size and a constant, or of two truth values.
  mlir::AffineExpr bitAnd(mlir::AffineExpr a, mlir::AffineExpr b,
                          mlir::Type type) override;
  mlir::AffineExpr bitOr(mlir::AffineExpr a, mlir::AffineExpr b,
                         mlir::Type type) override;
  mlir::AffineExpr bitXor(mlir::AffineExpr a, mlir::AffineExpr b,
                          mlir::Type type) override;
  // By constants.
  mlir::AffineExpr shiftLeft(mlir::AffineExpr a, mlir::AffineExpr by) override;
  mlir::AffineExpr shiftRight(mlir::AffineExpr a, mlir::AffineExpr by) override;

private:
  mlir::AffineExpr define(mlir::AffineExpr a, mlir::AffineExpr b,
                          graph::SizeStep::Op op);

  Symbols &symbols;
};

} // namespace charonia::frontend

#endif
