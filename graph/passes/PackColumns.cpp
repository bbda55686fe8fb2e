#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Panels.h"
#include "graph/passes/Passes.h"
#include <numeric>

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_PACKCOLUMNS
#include "graph/passes/Passes.h.inc"

namespace {

struct PackColumns : impl::PackColumnsBase<PackColumns> {
  using PackColumnsBase::PackColumnsBase;

  void runOnOperation() override {
    optimum = getOptimum(getOperation());
    llvm::DenseMap<std::pair<Value, unsigned>, Value> packed;
    for (auto op : llvm::make_early_inc_range(
             getOperation().getBody().front().getOps<GraphOpInterface>())) {
      std::optional<Columns> columns =
          op.getRole() == OpRole::Contraction ? op.getColumns() : std::nullopt;
      if (!columns || columns->groups > 1 || !wants(op, *columns))
        continue;
      OpOperand &operand = op->getOpOperand(columns->operand);
      Value &view = packed[{operand.get(), columns->operandDim}];
      if (!view)
        view = pack(operand.get(), columns->operandDim);
      operand.set(view);
    }
  }

  /// Whether many tiles of rows read columns out of rows so far apart, and so
  /// evenly, that a core's cache has no place for them all.
  bool wants(GraphOpInterface op, const Columns &columns) {
    Value value = op->getOperand(columns.operand);
    auto type = cast<RankedTensorType>(value.getType());
    if (!type.hasStaticShape() || type.getRank() < 2 ||
        columns.operandDim + 1 != type.getRank() ||
        type.getElementTypeBitWidth() < 16 || !isComputed(value))
      return false;
    int64_t elements = type.getNumElements(), width = type.getShape().back(),
            terms = type.getDimSize(type.getRank() - 2),
            bytes = width * type.getElementTypeBitWidth() / 8;
    std::optional<int64_t> results = evaluate(
        numElements(getShape(op->getResult(0)), &getContext()), optimum);
    if (!results || elements == 0 || bytes % line != 0 || width <= panel)
      return false;
    int64_t rows = *results / (elements / terms);
    return rows >= fewestRows &&
           terms > sets / std::gcd(bytes / line, sets.getValue()) * ways;
  }

  /// Weights are packed already, and what is repeated is smaller where it is.
  static bool isComputed(Value value) {
    int64_t elements = cast<RankedTensorType>(value.getType()).getNumElements();
    while (Operation *op = value.getDefiningOp()) {
      if (isWeight(op) || op->getNumOperands() == 0)
        return false;
      if (cast<GraphOpInterface>(op).getRole() != OpRole::View)
        break;
      value = op->getOperand(0);
      auto type = cast<RankedTensorType>(value.getType());
      if (!type.hasStaticShape() || type.getNumElements() < elements)
        return false;
    }
    return true;
  }

  Value pack(Value value, unsigned columns) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    Value panels = packPanels(builder, value, columns, panel);
    setStored(panels.getDefiningOp());
    return unpackPanels(builder, panels, columns,
                        cast<RankedTensorType>(value.getType()).getShape());
  }

  static constexpr int64_t line = 64;
  SmallVector<int64_t> optimum;
};

} // namespace
} // namespace charonia::graph
