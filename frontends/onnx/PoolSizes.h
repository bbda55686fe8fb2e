// Sizes behind pools that round up, as files have them.
#ifndef CHARONIA_FRONTENDS_ONNX_POOLSIZES_H
#define CHARONIA_FRONTENDS_ONNX_POOLSIZES_H

#include "graph/ir/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace charonia::frontend::onnx {

/// The types that onnx.shape_inference finds up to opset 21 for the values of a
/// block: it counts a last window of a pool that would begin outside. Values
/// are here whose type differs by that, or may; of these the type is null.
class PoolSizes {
public:
  /// Some pools give further results of the same shape, made of other
  /// operators: `alike` has the results of each node.
  PoolSizes(mlir::Block &block,
            llvm::ArrayRef<llvm::SmallVector<mlir::Value, 2>> alike);

  /// The value's type; its own where no such pool is in front of it.
  mlir::Type typeOf(mlir::Value value) const {
    auto it = types.find(value);
    return it == types.end() ? value.getType() : it->second;
  }

private:
  void set(mlir::Value value, mlir::Type type);
  mlir::Type ofPool(graph::PoolOp pool) const;
  void follow(mlir::Operation &op);

  llvm::DenseMap<mlir::Value, mlir::Type> types;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> alike;
};

} // namespace charonia::frontend::onnx

#endif
