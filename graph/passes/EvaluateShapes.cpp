#include "graph/ir/Dialect.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/Builders.h"

namespace charonia::graph {
#define GEN_PASS_DEF_EVALUATESHAPES
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// Sizes that are written as code, each for itself; what has more is no shape.
constexpr size_t mostSizes = 64;

/// The contents as an operator; null where a constant does not fit the type, or
/// there are too many sizes.
Value materialize(OpBuilder &builder, Location location, RankedTensorType type,
                  const SymbolicTensor &contents) {
  auto constants = contents.constants();
  if (!constants && contents.elements->size() > mostSizes)
    return {};
  if (!constants) {
    unsigned symbols = 0;
    for (AffineExpr e : *contents.elements)
      e.walk([&](AffineExpr sub) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(sub))
          symbols = std::max(symbols, symbol.getPosition() + 1);
      });
    return DimsOp::create(
        builder, location, type,
        AffineMapAttr::get(AffineMap::get(0, symbols, *contents.elements,
                                          builder.getContext())));
  }
  Type element = type.getElementType();
  unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  bool isUnsigned = element.isInteger(1) || element.isUnsignedInteger();
  SmallVector<APInt> values;
  for (int64_t value : *constants) {
    if (bits < 64 &&
        !(isUnsigned ? llvm::isUIntN(bits, value) : llvm::isIntN(bits, value)))
      return {};
    values.push_back(APInt(bits, value, /*isSigned=*/!isUnsigned));
  }
  return ConstantOp::create(builder, location,
                            DenseElementsAttr::get(type, values));
}

class EvaluateShapes
    : public charonia::graph::impl::EvaluateShapesBase<EvaluateShapes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    // All are looked at before any is replaced: the evaluator keeps a memo.
    SymbolicEvaluator evaluator;
    SmallVector<std::pair<Operation *, SymbolicTensor>> found;
    function.walk([&](GraphOpInterface op) {
      if (op->hasTrait<OpTrait::ConstantLike>() || op->getNumOperands() == 0 ||
          op->use_empty())
        return;
      SymbolicTensor contents = evaluator.evaluate(op->getResult(0));
      if (contents.isComplete())
        found.push_back({op, std::move(contents)});
    });
    OpBuilder builder(&getContext());
    for (auto &[op, contents] : found) {
      builder.setInsertionPoint(op);
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      if (Value value = materialize(builder, op->getLoc(), type, contents))
        op->getResult(0).replaceAllUsesWith(value);
    }
    eraseDead(function);
  }
};

} // namespace
