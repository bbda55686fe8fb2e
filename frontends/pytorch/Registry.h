// The table of PyTorch's operators that become graph operators.
#ifndef CHARONIA_FRONTENDS_PYTORCH_REGISTRY_H
#define CHARONIA_FRONTENDS_PYTORCH_REGISTRY_H

#include "frontends/pytorch/Call.h"

namespace charonia::frontend::pytorch {

/// Builds a node's results and yields them, or fails with a reason.
using ImportFunction = llvm::LogicalResult (*)(Call &call);
/// How the results of a row are built: of real numbers, and of complex ones,
/// each carried as two tensors.
struct Import {
  Import(ImportFunction real, ImportFunction complex = nullptr)
      : real(real), complex(complex) {}

  ImportFunction real;
  /// Reads parts by complexTensor() and yields them by yieldComplex().
  ImportFunction complex;
  /// `real` does the same to real and imaginary parts.
  bool isPartwise = false;
  /// `real` multiplies these two arguments.
  const char *lhs = nullptr, *rhs = nullptr;
};
inline Import partwise(ImportFunction function) {
  Import import(function);
  import.isPartwise = true;
  return import;
}
inline Import product(ImportFunction function, const char *lhs,
                      const char *rhs) {
  Import import(function);
  import.lhs = lhs;
  import.rhs = rhs;
  return import;
}

/// The value of `self` after the view that the call makes of it was replaced by
/// `view`; null and a failure where that cannot be written.
using WriteFunction = mlir::Value (*)(Call &call, mlir::Value self,
                                      mlir::Value view);
/// Of what is `self` itself.
inline mlir::Value writeSame(Call &, mlir::Value, mlir::Value view) {
  return view;
}

/// Whether a result shares memory with argument `self`.
enum class Alias {
  No,
  View,  ///< Each result does.
  Maybe, ///< Only where strides or types allow it.
  Alone, ///< Perhaps, where its list has one tensor; the file does not say.
  Real,  ///< Of real numbers it is that tensor, of complex ones it is new.
  Sized, ///< It is that tensor where it has dimensions, and stays of its shape
         ///< and type; else it is new.
};

/// One overload of one operator: "aten.add.Tensor". What it does in place,
/// "aten.add_.Tensor", is the same row and a write to `self`; of views, which
/// only change what a name stands for, "aten.squeeze_.dim" is the row itself.
struct Row {
  const char *op;
  Import import;
  Alias alias = Alias::No;
  WriteFunction write = nullptr;
};

// One list a family, in ops/<Family>.cpp.
llvm::ArrayRef<Row> elementwiseRows();
llvm::ArrayRef<Row> activationRows();
llvm::ArrayRef<Row> contractionRows();
llvm::ArrayRef<Row> normalizationRows();
llvm::ArrayRef<Row> poolingRows();
llvm::ArrayRef<Row> reductionRows();
llvm::ArrayRef<Row> viewRows();
llvm::ArrayRef<Row> randomRows();
llvm::ArrayRef<Row> sliceRows();
llvm::ArrayRef<Row> indexRows();
llvm::ArrayRef<Row> scatterRows();
llvm::ArrayRef<Row> resizeRows();
llvm::ArrayRef<Row> sortRows();
llvm::ArrayRef<Row> recurrentRows();
llvm::ArrayRef<Row> foldRows();
llvm::ArrayRef<Row> sourceRows();
llvm::ArrayRef<Row> typeRows();
llvm::ArrayRef<Row> complexRows();
llvm::ArrayRef<Row> specialRows();
llvm::ArrayRef<Row> lossRows();
llvm::ArrayRef<Row> fourierRows();
llvm::ArrayRef<Row> normRows();
llvm::ArrayRef<Row> assembleRows();
llvm::ArrayRef<Row> diagonalRows();
llvm::ArrayRef<Row> gammaRows();
llvm::ArrayRef<Row> groupedRows();
llvm::ArrayRef<Row> samplingRows();
llvm::ArrayRef<Row> unaryRows();
llvm::ArrayRef<Row> convolutionRows();
llvm::ArrayRef<Row> attentionRows();
llvm::ArrayRef<Row> spectrumRows();
llvm::ArrayRef<Row> linearRows();
llvm::ArrayRef<Row> quantizeRows();

/// Builds the results of a call that has complex numbers among its arguments or
/// results, or fails where the row cannot.
llvm::LogicalResult importComplex(const Import &import, Call &call);

/// All rows, sorted by operator.
llvm::ArrayRef<Row> allRows();
/// What a target means here; the row is null where there is none.
struct Target {
  const Row *row = nullptr;
  /// It writes its result to `self`.
  bool inPlace = false;
  /// It writes its results to its last arguments, as many of them: "add.out".
  bool isOut = false;
  /// It has no result that anybody computes with: an assertion.
  bool isCheck = false;
};
/// Of "torch.ops.aten.add_.Tensor".
Target findTarget(llvm::StringRef target);

/// Whether run_decompositions() replaces an operator by others.
bool isDecomposed(llvm::StringRef op);

} // namespace charonia::frontend::pytorch

#endif
