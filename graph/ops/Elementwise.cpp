#include "graph/ops/Common.h"

using namespace mlir;
using namespace charonia::graph;

CHARONIA_INFER(GeluOp) {
  types.push_back(operands[0].getType());
  return success();
}
CHARONIA_INFER(IsNanOp) {
  return inferBroadcast(location, operands, 0, types,
                        IntegerType::get(context, 1));
}
CHARONIA_INFER(IsInfOp) {
  return inferBroadcast(location, operands, 0, types,
                        IntegerType::get(context, 1));
}
CHARONIA_INFER(CastOp) {
  CastOp::Adaptor adaptor(operands, attributes, properties, regions);
  return inferBroadcast(location, operands, 0, types, adaptor.getTo());
}
CHARONIA_INFER(CompareOp) {
  if (getElementTypeOrSelf(operands[0]) != getElementTypeOrSelf(operands[1]))
    return emitOptionalError(
        location, "compares operands of one element type, not ",
        operands[0].getType(), " and ", operands[1].getType());
  return inferBroadcast(location, operands, 0, types,
                        IntegerType::get(context, 1));
}
CHARONIA_INFER(SelectOp) {
  if (getElementTypeOrSelf(operands[1]) != getElementTypeOrSelf(operands[2]))
    return emitOptionalError(
        location, "chooses between operands of one element type, not ",
        operands[1].getType(), " and ", operands[2].getType());
  return inferBroadcast(location, operands, 1, types);
}

/// Whether every value of `from` is one of `to` as well.
static bool keepsValues(Type from, Type to) {
  if (auto real = dyn_cast<FloatType>(to)) {
    const llvm::fltSemantics &target = real.getFloatSemantics();
    unsigned digits = llvm::APFloat::semanticsPrecision(target);
    if (auto integer = dyn_cast<IntegerType>(from))
      return integer.getWidth() < 32 && integer.getWidth() <= digits &&
             integer.getWidth() <=
                 unsigned(llvm::APFloat::semanticsMaxExponent(target));
    auto source = dyn_cast<FloatType>(from);
    return source &&
           llvm::APFloat::isRepresentableBy(source.getFloatSemantics(), target);
  }
  auto source = dyn_cast<IntegerType>(from), target = dyn_cast<IntegerType>(to);
  if (!source || !target)
    return false;
  // i1 counts as unsigned.
  bool sourceUnsigned = source.isUnsigned() || source.getWidth() == 1;
  bool targetUnsigned = target.isUnsigned() || target.getWidth() == 1;
  if (sourceUnsigned == targetUnsigned)
    return source.getWidth() <= target.getWidth();
  return sourceUnsigned && source.getWidth() < target.getWidth();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  // cast(cast(x)) = cast(x) where the inner one keeps all values.
  if (auto inner = getInput().getDefiningOp<CastOp>())
    if (keepsValues(getElementTypeOrSelf(inner.getInput()), inner.getTo())) {
      getInputMutable().assign(inner.getInput());
      return getResult();
    }
  return {};
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  auto chosen = [&](bool condition) -> OpFoldResult {
    Value value = condition ? getLhs() : getRhs();
    return value.getType() == getType() ? OpFoldResult(value) : OpFoldResult();
  };
  if (getLhs() == getRhs())
    return chosen(true);
  auto condition = dyn_cast_or_null<DenseElementsAttr>(adaptor.getCondition());
  if (condition && condition.isSplat())
    return chosen(condition.getSplatValue<bool>());
  return {};
}

// Symbolic contents. Each rule takes known elements and may give null.

using Rule = llvm::function_ref<AffineExpr(ArrayRef<AffineExpr>)>;

static SymbolicTensor evaluateElements(GraphOpInterface op,
                                       ArrayRef<SymbolicTensor> operands,
                                       Rule rule) {
  SmallVector<SymbolicTensor> inputs = broadcastOperands(op, operands);
  if (llvm::any_of(inputs, [](const SymbolicTensor &t) { return !t; }))
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  for (size_t i = 0, e = inputs[0].elements->size(); i < e; ++i) {
    SmallVector<AffineExpr, 3> terms;
    for (const SymbolicTensor &input : inputs)
      terms.push_back((*input.elements)[i]);
    AffineExpr value = llvm::all_of(terms, [](AffineExpr t) { return (bool)t; })
                           ? rule(terms)
                           : AffineExpr();
    result.elements->push_back(value ? simplify(value) : value);
  }
  return result;
}

static AffineExpr boolean(bool value, MLIRContext *context) {
  return getAffineConstantExpr(value, context);
}
static std::optional<bool> isLess(AffineExpr a, AffineExpr b) {
  if (isNonNegative(b - a - 1))
    return true;
  if (isNonNegative(a - b))
    return false;
  return std::nullopt;
}
static std::optional<bool> isEqual(AffineExpr a, AffineExpr b) {
  if (simplify(a - b) == 0)
    return true;
  if (!mayBeEqual(a, b))
    return false;
  return std::nullopt;
}

#define EVALUATE(OpName, EXPRESSION)                                           \
  SymbolicTensor OpName::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) { \
    return evaluateElements(                                                   \
        *this, operands,                                                       \
        [&](ArrayRef<AffineExpr> x) -> AffineExpr { return EXPRESSION; });     \
  }

EVALUATE(NegOp, -x[0])
EVALUATE(AddOp, x[0] + x[1])
EVALUATE(SubOp, x[0] - x[1])
EVALUATE(MulOp, x[0] * x[1])

/// Integers truncate toward zero.
static AffineExpr truncatedQuotient(AffineExpr a, AffineExpr b) {
  if (simplify(b) == 0)
    return {};
  if (!isNonNegative(b - 1)) {
    if (!isNonNegative(-b - 1))
      return {};
    a = -a;
    b = -b;
  }
  if (isNonNegative(a))
    return a.floorDiv(b);
  if (isNonNegative(-a))
    return -(-a).floorDiv(b);
  return {};
}
EVALUATE(DivOp, truncatedQuotient(x[0], x[1]))
EVALUATE(ModOp, isNonNegative(x[1] - 1) ? x[0] % x[1] : AffineExpr())

static AffineExpr choose(std::optional<bool> first, AffineExpr a,
                         AffineExpr b) {
  return !first ? AffineExpr() : *first ? a : b;
}
EVALUATE(MaxOp, choose(isLess(x[0], x[1]), x[1], x[0]))
EVALUATE(MinOp, choose(isLess(x[0], x[1]), x[0], x[1]))

/// Bitwise operators on constants; on i1 they are the logical ones.
static AffineExpr bitwise(ArrayRef<AffineExpr> x,
                          llvm::function_ref<int64_t(int64_t, int64_t)> f) {
  auto a = constantOf(x[0]), b = constantOf(x[1]);
  return a && b ? getAffineConstantExpr(f(*a, *b), x[0].getContext())
                : AffineExpr();
}
EVALUATE(AndOp, bitwise(x, [](int64_t a, int64_t b) { return a & b; }))
EVALUATE(OrOp, bitwise(x, [](int64_t a, int64_t b) { return a | b; }))
EVALUATE(XorOp, bitwise(x, [](int64_t a, int64_t b) { return a ^ b; }))
EVALUATE(NotOp, getElementTypeOrSelf(getInput().getType()).isInteger(1)
                    ? 1 - x[0]
                : getElementTypeOrSelf(getInput().getType()).isSignlessInteger()
                    ? -x[0] - 1
                    : AffineExpr())

static AffineExpr castElement(AffineExpr x, Type to) {
  if (to.isInteger(1)) {
    auto zero = isEqual(x, getAffineConstantExpr(0, x.getContext()));
    return zero ? boolean(!*zero, x.getContext()) : AffineExpr();
  }
  if (!to.isIntOrIndex())
    return {};
  // Sizes fit into 32 bits as the framework that wrote the model takes for
  // granted; what is narrower must be seen to fit.
  if (to.isIndex() || to.getIntOrFloatBitWidth() >= 32)
    return to.isUnsignedInteger() && !isNonNegative(x) ? AffineExpr() : x;
  auto value = constantOf(x);
  unsigned bits = to.getIntOrFloatBitWidth();
  bool fits = value && (to.isUnsignedInteger()
                            ? llvm::isUIntN(bits, *value) && *value >= 0
                            : llvm::isIntN(bits, *value));
  return fits ? x : AffineExpr();
}
EVALUATE(CastOp, castElement(x[0], getTo()))

static AffineExpr compareElements(Predicate predicate, AffineExpr a,
                                  AffineExpr b) {
  std::optional<bool> answer;
  switch (predicate) {
  case Predicate::eq:
  case Predicate::ne:
    answer = isEqual(a, b);
    break;
  case Predicate::lt:
  case Predicate::ge:
    answer = isLess(a, b);
    break;
  case Predicate::gt:
  case Predicate::le:
    answer = isLess(b, a);
    break;
  }
  if (!answer)
    return {};
  bool negate = predicate == Predicate::ne || predicate == Predicate::ge ||
                predicate == Predicate::le;
  return boolean(*answer != negate, a.getContext());
}
EVALUATE(CompareOp, compareElements(getPredicate(), x[0], x[1]))

SymbolicTensor SelectOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  // An operand that is not chosen need not be known.
  SmallVector<SymbolicTensor> inputs = broadcastOperands(*this, operands);
  if (!inputs[0])
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  for (auto [i, condition] : llvm::enumerate(*inputs[0].elements)) {
    auto value = condition ? constantOf(condition) : std::nullopt;
    const SymbolicTensor &chosen = inputs[value == 0 ? 2 : 1];
    result.elements->push_back(value && chosen ? (*chosen.elements)[i]
                                               : AffineExpr());
  }
  return result;
}
