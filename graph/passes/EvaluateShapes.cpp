#include "graph/analysis/IndexContent.h"
#include "graph/ir/Dialect.h"
#include "graph/ir/Exact.h"
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
    if (bits < 64 && !holds(cast<IntegerType>(element), {value, value}))
      return {};
    values.push_back(APInt(bits, value, /*isSigned=*/!isUnsigned));
  }
  return ConstantOp::create(builder, location,
                            DenseElementsAttr::get(type, values));
}

/// Finds values whose contents, told as if integers never wrapped, may be
/// wrong: an operator that they are computed by tells a number that wrapped
/// from one that did not.
class Wrapping {
public:
  Wrapping(SymbolicEvaluator &evaluator, const Facts &facts)
      : evaluator(evaluator), facts(facts) {}

  /// Of an operator whose operands have been asked for, if they are results.
  bool mayShowIn(GraphOpInterface op) {
    bool may = llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
      return shown.contains(operand.get()) ||
             (!op.commutesWithWrapping(operand.getOperandNumber()) &&
              mayWrap(operand.get()));
    });
    if (may)
      shown.insert(op->getResult(0));
    return may;
  }

private:
  bool mayWrap(Value value) {
    auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(value));
    if (!type || type.getWidth() >= 64)
      return false;
    SymbolicTensor contents = evaluator.evaluate(value);
    return contents &&
           llvm::any_of(*contents.elements, [&](AffineExpr element) {
             return element && charonia::graph::mayWrap(element, type, facts);
           });
  }

  SymbolicEvaluator &evaluator;
  const Facts &facts;
  llvm::DenseSet<Value> shown;
};

class EvaluateShapes
    : public charonia::graph::impl::EvaluateShapesBase<EvaluateShapes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    // All are looked at before any is replaced: the evaluator keeps a memo.
    SymbolicEvaluator evaluator;
    Facts facts;
    if (auto module = function->getParentOfType<ModuleOp>())
      facts = getFacts(module);
    Wrapping wrapping(evaluator, facts);
    SmallVector<std::pair<Operation *, SymbolicTensor>> found;
    function.walk([&](GraphOpInterface op) {
      if (op->hasTrait<OpTrait::ConstantLike>() || op->getNumOperands() == 0 ||
          op->use_empty() || wrapping.mayShowIn(op))
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
