// Matrix products and attention.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_MATRIX_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_MATRIX_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// Operands of NumPy's matmul as matrices: a vector is one row on the left and
/// one column on the right, and the result lacks that dimension.
class Matrices {
public:
  Matrices(mlir::Value lhs, mlir::Value rhs, Emitter &e);
  /// Of the product of both, whatever was done to its elements, the result.
  mlir::Value dropFrom(mlir::Value product, Emitter &e) const;

  mlir::Value lhs, rhs;

private:
  bool isRow = false, isColumn = false;
};

/// NumPy's matmul: vectors get a dimension of 1, which is dropped from the
/// result. Both operands have at least one dimension.
mlir::Value buildMatmul(mlir::Value lhs, mlir::Value rhs, Emitter &e);

/// The same in the type of its sums: integers of 16 bits are summed in 32.
mlir::Value buildProduct(mlir::Value lhs, mlir::Value rhs, Emitter &e);

/// The determinants of matrices of up to 6 rows, the last two dimensions.
mlir::Value buildDeterminant(mlir::Value x, Emitter &e);

/// Attention of query [B, H, S, D], key and value [B, Hkv, T, D]; a row that
/// may attend to no key gives 0. `mask` keeps where it is true, or is added
/// where it is of floats; it may be null.
mlir::Value buildAttention(mlir::Value query, mlir::Value key,
                           mlir::Value value, mlir::Value mask, double scale,
                           bool causal, Emitter &e);

} // namespace charonia::frontend

#endif
