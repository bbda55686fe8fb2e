#include "graph/analysis/Ranges.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/Matchers.h"

namespace charonia::graph {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// What an f32 value of the model is.
enum class Kind {
  /// Weights, constants, views of them.
  Fixed,
  /// Computed from integers (and constants): positions, masks. Inputs of which
  /// every reader wants the full range.
  Index,
  /// A reduction, and what is made of reductions.
  Wide,
  /// An activation: gets the small type.
  Narrow
};

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
    // From here on a number that is added to it is lost in rounding.
    ranges.emplace(std::ldexp(
        1.0, APFloat::semanticsPrecision(target.getFloatSemantics())));
    findFullRange(block);
    for (Value argument : block.getArguments())
      if (isWide(argument)) {
        bool full = fullRange.contains(argument);
        kinds[argument] = full ? Kind::Index : Kind::Narrow;
        if (full)
          ranges->setUnbounded(argument);
      }
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    // Kinds first: they read types that the second walk changes.
    for (Operation *op : ops)
      if (auto graphOp = dyn_cast<GraphOpInterface>(op);
          graphOp && isWide(op->getResult(0)))
        kinds[op->getResult(0)] = kindOf(graphOp);
    for (Operation *op : ops)
      convert(op);
  }

  static bool isWide(Value value) {
    return getElementTypeOrSelf(value).isF32();
  }

  /// Finds the values of which every reader, through views and pointwise
  /// operators, wants the full range: masks, whose lowest numbers a small type
  /// lacks.
  void findFullRange(Block &block) {
    auto wanted = [&](OpOperand &use) {
      auto op = dyn_cast<GraphOpInterface>(use.getOwner());
      if (!op)
        return false;
      OpRole role = op.getRole();
      return op.readsFullRange(use.getOperandNumber()) ||
             ((role == OpRole::View || role == OpRole::Pointwise) &&
              fullRange.contains(op->getResult(0)));
    };
    auto visit = [&](Value value) {
      if (llvm::all_of(value.getUses(), wanted))
        fullRange.insert(value);
    };
    // Readers first.
    for (Operation &op : llvm::reverse(block))
      for (Value result : op.getResults())
        visit(result);
    for (Value argument : block.getArguments())
      visit(argument);
  }

  /// Whether the operator reads numbers that the small type lacks, or next to
  /// which it would lose what is added to them. It then stays in f32, and so
  /// does what reads its results, up to the next contraction.
  bool readsOutside(GraphOpInterface op) {
    return op.getRole() != OpRole::Contraction &&
           llvm::any_of(op->getOperands(), [&](Value operand) {
             return isWide(operand) && ranges->isOutside(operand);
           });
  }

  Kind kindOf(GraphOpInterface op) {
    if (weightsOnly(op->getResult(0)))
      return Kind::Fixed;
    bool fixed = false, index = false, wide = false, narrow = false;
    for (Value operand : op->getOperands())
      if (isWide(operand))
        switch (kinds.lookup(operand)) {
        case Kind::Fixed:
          fixed = true;
          break;
        case Kind::Index:
          index = true;
          break;
        case Kind::Wide:
          wide = true;
          break;
        case Kind::Narrow:
          narrow = true;
          break;
        }
    if (readsOutside(op))
      return narrow || wide || !index ? Kind::Wide : Kind::Index;
    switch (op.getRole()) {
    case OpRole::View:
      return kinds.lookup(op->getOperand(0));
    case OpRole::Reduction:
      return narrow || wide || !index ? Kind::Wide : Kind::Index;
    case OpRole::Source:
    case OpRole::Pointwise:
      return narrow ? Kind::Narrow : wide ? Kind::Wide : Kind::Index;
    case OpRole::Indexing:
      // A table of weights looked up by an input.
      return narrow || (fixed && !index && !wide) ? Kind::Narrow
             : wide                               ? Kind::Wide
                                                  : Kind::Index;
    default:
      return Kind::Narrow;
    }
  }

  void convert(Operation *op) {
    auto graphOp = dyn_cast<GraphOpInterface>(op);
    Value result = op->getNumResults() == 1 ? op->getResult(0) : Value();
    auto it = result ? kinds.find(result) : kinds.end();
    bool narrow = graphOp && it != kinds.end() && it->second == Kind::Narrow;
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands()) {
      auto known = kinds.find(operand.get());
      if (known == kinds.end())
        continue;
      bool free =
          graphOp && graphOp.isOperandTypeFree(operand.getOperandNumber());
      if (narrow && (!free || known->second == Kind::Narrow))
        operand.set(narrowed(operand.get(), builder));
      else if (known->second == Kind::Narrow)
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

  /// A value in the small type.
  Value narrowed(Value value, OpBuilder &builder) {
    if (!isWide(value))
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
               kinds.lookup(value) == Kind::Fixed) {
      // What is fixed is cast where it is smallest.
      IRMapping mapping;
      mapping.map(view->getOperand(0), narrowed(view->getOperand(0), builder));
      Operation *copy = builder.clone(*view, mapping);
      copy->getResult(0).setType(withElement(value.getType(), target));
      result = copy->getResult(0);
    }
    if (!result) {
      Term term(value, builder, location);
      if (kinds.lookup(value) != Kind::Fixed)
        term = clamped(term);
      result = CastOp::create(builder, location, term.get(), target);
    }
    return narrow[value] = result;
  }

  /// An activation back in f32.
  Value widened(Value value, OpBuilder &builder) {
    if (isWide(value))
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
    bool outside = ranges->isOutside(term.get());
    if (!outside && kinds.lookup(term.get()) != Kind::Index)
      return term;
    double largest = largestFinite();
    Term inside = min(max(term, -largest), largest);
    if (!outside)
      return inside;
    Term infinite = term.make<IsInfOp>(term.get(), true, true);
    return term.make<SelectOp>(infinite.get(), term.get(), inside.get());
  }

  double largestFinite() {
    return llvm::APFloat::getLargest(target.getFloatSemantics())
        .convertToDouble();
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
  WeightsOnly weightsOnly;
  std::optional<Ranges> ranges;
  llvm::DenseSet<Value> fullRange;
  llvm::DenseMap<Value, Kind> kinds;
  llvm::DenseMap<Value, Value> narrow, wide;
};

} // namespace
