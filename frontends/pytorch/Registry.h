// The table of PyTorch's operators that become graph operators.
#ifndef CHARONIA_FRONTENDS_PYTORCH_REGISTRY_H
#define CHARONIA_FRONTENDS_PYTORCH_REGISTRY_H

#include "frontends/pytorch/Call.h"

namespace charonia::frontend::pytorch {

/// Builds a node's results and yields them, or fails with a reason.
using ImportFunction = llvm::LogicalResult (*)(Call &call);
/// The value of `self` after the view that the call makes of it was replaced by
/// `view`; null and a failure where that cannot be written.
using WriteFunction = mlir::Value (*)(Call &call, mlir::Value self,
                                      mlir::Value view);

/// Whether a result shares memory with argument `self`.
enum class Alias {
  No,
  View,  ///< Each result does.
  Maybe, ///< Only where strides or types allow it.
  Alone, ///< Perhaps, where its list has one tensor; the file does not say.
};

/// One overload of one operator: "aten.add.Tensor". What it does in place,
/// "aten.add_.Tensor", is the same row and a write to `self`; of views, which
/// only change what a name stands for, "aten.squeeze_.dim" is the row itself.
struct Row {
  const char *op;
  ImportFunction import;
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

/// What an operator is of complex numbers: a form of its own, which reads parts
/// by complexTensor(); null where it has none.
ImportFunction findComplexForm(llvm::StringRef op);
/// Whether it does the same to real and imaginary part.
bool isPartwise(llvm::StringRef op);
/// Real and imaginary part of pairs in the last dimension.
std::pair<mlir::Value, mlir::Value> splitComplex(mlir::Value pairs, Emitter &e);

/// All rows, sorted by operator.
llvm::ArrayRef<Row> allRows();
/// What a target means here; the row is null where there is none.
struct Target {
  const Row *row = nullptr;
  /// It writes its result to `self`.
  bool inPlace = false;
  /// It has no result that anybody computes with: an assertion.
  bool isCheck = false;
};
/// Of "torch.ops.aten.add_.Tensor".
Target findTarget(llvm::StringRef target);

} // namespace charonia::frontend::pytorch

#endif
