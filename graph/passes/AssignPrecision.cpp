#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/PrecisionKinds.h"
#include "mlir/IR/Matchers.h"

namespace charonia::graph {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

class AssignPrecision
    : public charonia::graph::impl::AssignPrecisionBase<AssignPrecision> {
public:
  using AssignPrecisionBase::AssignPrecisionBase;

private:
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    MLIRContext *context = &getContext();
    if (precision == "fp32" || precision == "tf32")
      return;
    if (precision == "fp16") {
      target = Float16Type::get(context);
    } else if (precision == "bf16") {
      target = BFloat16Type::get(context);
    } else {
      function.emitError("precision must be fp32, tf32, fp16 or bf16, not ")
          << precision;
      return signalPassFailure();
    }

    Block &block = function.getBody().front();
    kinds.emplace(block, target);
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    for (Operation *op : ops)
      convert(op);
  }

  void convert(Operation *op) {
    auto graphOp = dyn_cast<GraphOpInterface>(op);
    Value result = op->getNumResults() == 1 ? op->getResult(0) : Value();
    bool narrow =
        graphOp && result && kinds->of(result) == PrecisionKind::Narrow;
    OpBuilder builder(op);
    if (narrow && kinds->computesInFull(graphOp))
      return computeInFull(op, builder);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!kinds->contains(operand.get()))
        continue;
      PrecisionKind kind = kinds->of(operand);
      bool free =
          graphOp && graphOp.isOperandTypeFree(operand.getOperandNumber());
      if (narrow && (!free || kind == PrecisionKind::Narrow))
        operand.set(narrowed(operand.get(), builder));
      else if (kind == PrecisionKind::Narrow)
        operand.set(widened(operand.get(), builder));
    }
    if (!narrow)
      return;
    result.setType(withElement(result.getType(), target));
    for (NamedAttribute attribute : op->getAttrs())
      if (auto type = dyn_cast<TypeAttr>(attribute.getValue());
          type && type.getValue().isF32())
        op->setAttr(attribute.getName(), TypeAttr::get(target));
  }

  /// The operator in f32, its result in the small type: kernels compute in f32
  /// anyway.
  void computeInFull(Operation *op, OpBuilder &builder) {
    for (OpOperand &operand : op->getOpOperands())
      if (kinds->contains(operand.get()) &&
          kinds->of(operand) == PrecisionKind::Narrow)
        operand.set(widened(operand.get(), builder));
    Value result = op->getResult(0);
    builder.setInsertionPointAfter(op);
    Value small = CastOp::create(builder, op->getLoc(), result, target);
    result.replaceAllUsesExcept(small, small.getDefiningOp());
    kinds->addActivation(small);
  }

  /// A value in the small type.
  Value narrowed(Value value, OpBuilder &builder) {
    if (!isFull(value))
      return value;
    if (auto it = narrow.find(value); it != narrow.end())
      return it->second;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(value);
    Location location = value.getLoc();
    Value result;
    auto view = value.getDefiningOp<GraphOpInterface>();
    DenseElementsAttr constant;
    if (matchPattern(value, m_Constant(&constant))) {
      if (ElementsAttr converted = convertConstant(constant))
        result = ConstantOp::create(builder, location, converted);
    } else if (view && view.getRole() == OpRole::View &&
               kinds->of(value) == PrecisionKind::Fixed) {
      // What is fixed is cast where it is smallest.
      IRMapping mapping;
      mapping.map(view->getOperand(0), narrowed(view->getOperand(0), builder));
      Operation *copy = builder.clone(*view, mapping);
      copy->getResult(0).setType(withElement(value.getType(), target));
      result = copy->getResult(0);
    }
    if (!result) {
      Term term = clamped(Term(value, builder, location));
      result = CastOp::create(builder, location, term.get(), target);
    }
    return narrow[value] = result;
  }

  /// An activation back in f32.
  Value widened(Value value, OpBuilder &builder) {
    if (isFull(value))
      return value;
    Value &result = wide[value];
    if (!result) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfterValue(value);
      result = CastOp::create(builder, value.getLoc(), value,
                              Float32Type::get(&getContext()));
    }
    return result;
  }

  /// What is no activation, its finite numbers in the small type's range.
  Term clamped(Term term) {
    if (!kinds->isOutside(term.get()) &&
        kinds->of(term.get()) != PrecisionKind::Index)
      return term;
    double largest = kinds->largestFinite();
    Term inside = min(max(term, -largest), largest);
    Term infinite = term.make<IsInfOp>(term.get(), true, true);
    return term.make<SelectOp>(infinite.get(), term.get(), inside.get());
  }

  /// Rounded, finite values clamped to the finite range.
  ElementsAttr convertConstant(ElementsAttr attribute) {
    auto dense = dyn_cast<DenseFPElementsAttr>(attribute);
    if (!dense)
      return {};
    const llvm::fltSemantics &semantics = target.getFloatSemantics();
    return cast<DenseElementsAttr>(
        dense.mapValues(target, [&](const APFloat &value) {
          APFloat rounded = value;
          bool inexact;
          rounded.convert(semantics, APFloat::rmNearestTiesToEven, &inexact);
          if (rounded.isInfinity() && !value.isInfinity())
            rounded = APFloat::getLargest(semantics, value.isNegative());
          return rounded.bitcastToAPInt();
        }));
  }

  FloatType target;
  /// None where the types stay.
  std::optional<PrecisionKinds> kinds;
  llvm::DenseMap<Value, Value> narrow, wide;
};

} // namespace
