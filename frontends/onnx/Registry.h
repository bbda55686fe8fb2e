// The table of ONNX operators that become graph operators.
#ifndef CHARONIA_FRONTENDS_ONNX_REGISTRY_H
#define CHARONIA_FRONTENDS_ONNX_REGISTRY_H

#include "frontends/onnx/Node.h"

namespace charonia::frontend::onnx {

/// Builds a node's results and yields them, or fails with a reason.
using ImportFunction = llvm::LogicalResult (*)(Node &node, Emitter &emitter);

/// One operator: `first` to `last` are the versions of its definition ("since"
/// versions) that the function implements. An operator that changes in a later
/// ONNX release is refused until its row says that it follows the change. What
/// holds tensors or graphs has no function: GraphImporter imports it.
struct Row {
  const char *domain, *op;
  int first, last;
  ImportFunction import;
};

// One list a family, in ops/<Family>.cpp.
llvm::ArrayRef<Row> unaryRows();
llvm::ArrayRef<Row> binaryRows();
llvm::ArrayRef<Row> activationRows();
llvm::ArrayRef<Row> contractionRows();
llvm::ArrayRef<Row> convTransposeRows();
llvm::ArrayRef<Row> attentionRows();
llvm::ArrayRef<Row> poolingRows();
llvm::ArrayRef<Row> normalizationRows();
llvm::ArrayRef<Row> reductionRows();
llvm::ArrayRef<Row> viewRows();
llvm::ArrayRef<Row> sliceRows();
llvm::ArrayRef<Row> padRows();
llvm::ArrayRef<Row> gatherRows();
llvm::ArrayRef<Row> selectRows();
llvm::ArrayRef<Row> resizeRows();
llvm::ArrayRef<Row> sourceRows();
llvm::ArrayRef<Row> compositeRows();
llvm::ArrayRef<Row> quantizeRows();
llvm::ArrayRef<Row> sortRows();
llvm::ArrayRef<Row> transformRows();
llvm::ArrayRef<Row> recurrentRows();
llvm::ArrayRef<Row> samplingRows();
llvm::ArrayRef<Row> foldRows();
llvm::ArrayRef<Row> randomRows();
// What ONNX Runtime's optimizers and quantizers write.
llvm::ArrayRef<Row> runtimeNormalizationRows();
llvm::ArrayRef<Row> runtimeAttentionRows();
llvm::ArrayRef<Row> groupQueryRows();
llvm::ArrayRef<Row> runtimeQuantizeRows();

/// All rows, sorted by operator.
llvm::ArrayRef<Row> allRows();
/// The row for a version of an operator's definition; null if there is none.
const Row *findRow(llvm::StringRef domain, llvm::StringRef op,
                   int sinceVersion);

} // namespace charonia::frontend::onnx

#endif
