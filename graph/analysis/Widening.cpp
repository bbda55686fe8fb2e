#include "graph/analysis/Widening.h"

using namespace mlir;

namespace charonia::graph {

llvm::SetVector<Operation *> wideningOf(OpOperand &use,
                                        WeightsOnly &weightsOnly) {
  // Parts of the operand's bytes, in quarters, and instructions.
  constexpr int64_t mostQuarters = 3, mostCode = 16;
  auto reader = dyn_cast<GraphOpInterface>(use.getOwner());
  std::optional<Columns> columns =
      reader && reader.getRole() == OpRole::Contraction
          ? reader.getScaledColumns()
          : std::nullopt;
  if (!columns || columns->operand != use.getOperandNumber() ||
      !weightsOnly(use.get()))
    return {};
  auto bytes = [](Value value) {
    return byteSize(cast<RankedTensorType>(value.getType()));
  };
  llvm::SetVector<Operation *> below, widening;
  below.insert(use.get().getDefiningOp());
  int64_t read = 0, code = 0;
  constexpr int64_t small = 8;
  for (size_t i = 0; i < below.size(); ++i) {
    auto op = cast<GraphOpInterface>(below[i]);
    if (isWeight(op)) {
      int64_t own = bytes(op->getResult(0));
      if (own * small > bytes(use.get()) &&
          !isa<IntegerType>(getElementTypeOrSelf(op->getResult(0))))
        return {};
      read += own;
    }
    if (op->getNumOperands() == 0)
      continue;
    if (op.isExpensive() ||
        (op.getRole() != OpRole::View && op.getRole() != OpRole::Pointwise))
      return {};
    if (op.getRole() == OpRole::Pointwise) {
      widening.insert(op);
      code += op.getCodeSize();
    }
    for (Value operand : op->getOperands())
      below.insert(operand.getDefiningOp());
  }
  bool pays = read * 4 <= bytes(use.get()) * mostQuarters && code <= mostCode;
  return pays ? widening : llvm::SetVector<Operation *>();
}

bool widensInside(OpOperand &use, ArrayRef<int64_t> optimum, int64_t mostRows) {
  if (mostRows == std::numeric_limits<int64_t>::max())
    return true;
  auto reader = dyn_cast<GraphOpInterface>(use.getOwner());
  std::optional<Columns> columns =
      reader ? reader.getScaledColumns() : std::nullopt;
  if (!columns)
    return false;
  for (unsigned i = 0; i < reader->getNumOperands(); ++i)
    if (reader.getOperandReads(i) != 1)
      return false;
  Exprs result = getShape(reader->getResult(0));
  result.erase(result.begin() + columns->resultDim);
  auto rows = evaluate(numElements(result, use.get().getContext()), optimum);
  return rows && *rows <= mostRows;
}

} // namespace charonia::graph
