// Panels of columns: how weights of contractions lie in memory.
#ifndef CHARONIA_GRAPH_PASSES_PANELS_H
#define CHARONIA_GRAPH_PASSES_PANELS_H

#include "graph/ir/Dialect.h"
#include "mlir/IR/Builders.h"

namespace charonia::graph {

/// Builds a chain of views and pads on one value of static shape.
class ViewChain {
public:
  ViewChain(mlir::OpBuilder &builder, mlir::Value value)
      : builder(builder), value(value) {}

  void reshape(llvm::ArrayRef<int64_t> shape);
  void transpose(llvm::ArrayRef<int64_t> permutation);
  void broadcast(llvm::ArrayRef<int64_t> shape);
  /// Extends dimension `d` to `size` with zeros.
  void pad(unsigned d, int64_t size);
  /// The first `size` elements of dimension `d`.
  void cut(unsigned d, int64_t size);
  /// Of dimension `d` the elements from `start` on, `step` apart.
  void pick(unsigned d, int64_t start, int64_t step, int64_t size);
  /// Dimension `d` becomes two, of which the inner one has `size` elements.
  void split(unsigned d, int64_t size);
  /// Dimension `d` and the next become one.
  void join(unsigned d);
  /// Repeats each element along dimension `d`, `size` in all.
  void repeat(unsigned d, int64_t times, int64_t size);

  llvm::ArrayRef<int64_t> sizes() {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }
  mlir::Value get() { return value; }

private:
  mlir::RankedTensorType typeOf(llvm::ArrayRef<int64_t> shape);

  mlir::OpBuilder &builder;
  mlir::Value value;
};

/// [.., N, ..] -> [N / panel, .., .., panel], N padded to a multiple of the
/// panel.
mlir::Value packPanels(mlir::OpBuilder &builder, mlir::Value value,
                       unsigned columns, int64_t panel);

/// The views that give back [.., N, ..] of `shape`.
mlir::Value unpackPanels(mlir::OpBuilder &builder, mlir::Value panels,
                         unsigned columns, llvm::ArrayRef<int64_t> shape);

} // namespace charonia::graph

#endif
