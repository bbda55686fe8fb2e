// Tensors of model files as constants and weights.
#ifndef CHARONIA_FRONTENDS_COMMON_TENSORS_H
#define CHARONIA_FRONTENDS_COMMON_TENSORS_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// A tensor's contents: dense, row-major, little-endian, one byte a bool.
struct TensorData {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<const void> owner;
};

/// Contents that `bytes` are moved into.
TensorData ownedTensor(mlir::RankedTensorType type, std::vector<char> bytes);

/// The type of dense contents, and its size in `elements` and `bytes`; null and
/// a problem where it is absurd.
mlir::RankedTensorType denseType(mlir::Type element,
                                 llvm::ArrayRef<int64_t> dims,
                                 int64_t &elements, int64_t &bytes,
                                 Problem &problem);

/// Bools as 0 and 1, which kernels rely on; other types as they are.
TensorData normalizeBools(TensorData data);

/// `graph.constant` for what is small or could be a shape, else `graph.weight`
/// with the contents in the weight store under a name like `name`.
mlir::Value materialize(const TensorData &data, llvm::StringRef name,
                        Emitter &emitter);

} // namespace charonia::frontend

#endif
