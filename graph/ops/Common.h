// What the operator families share; private to graph/ops.
#ifndef CHARONIA_GRAPH_OPS_COMMON_H
#define CHARONIA_GRAPH_OPS_COMMON_H

#include "graph/ir/Dialect.h"
#include "graph/ir/Elements.h"

/// The parameters of an inferReturnTypes.
#define CHARONIA_INFER(OpName)                                                 \
  ::llvm::LogicalResult OpName::inferReturnTypes(                              \
      ::mlir::MLIRContext *context, std::optional<::mlir::Location> location,  \
      ::mlir::ValueRange operands, ::mlir::DictionaryAttr attributes,          \
      ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,        \
      ::llvm::SmallVectorImpl<::mlir::Type> &types)

namespace charonia::graph {

/// Elements of a tensor of static shape `to`: element i is operands' element at
/// map(i), the operand having static shape `from`. Nothing where a coordinate
/// is not constant or lies outside.
SymbolicTensor pick(const SymbolicTensor &operand, mlir::Type from,
                    mlir::Type to, mlir::AffineMap map);
/// The operands of an elementwise operator at the elements of its result.
llvm::SmallVector<SymbolicTensor>
broadcastOperands(GraphOpInterface op, llvm::ArrayRef<SymbolicTensor> operands);
/// Whether every entry is one of 0 ... rank - 1, strictly increasing.
bool areAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);
/// The pads of a window, all lows before all highs, with `padding` around them;
/// nothing where that also pads dimensions other than the window's, the first
/// of which is `first`.
std::optional<llvm::SmallVector<int64_t>>
windowPads(const Padding &padding, llvm::ArrayRef<int64_t> pads,
           unsigned first);

} // namespace charonia::graph

#endif
