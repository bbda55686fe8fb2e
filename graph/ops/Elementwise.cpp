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
CHARONIA_INFER(BitcastOp) {
  BitcastOp::Adaptor adaptor(operands, attributes, properties, regions);
  Type from = getElementTypeOrSelf(operands[0]), to = adaptor.getTo();
  if (from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return emitOptionalError(location, "the bits of ", from,
                             " cannot be read as ", to,
                             ", which is of another width");
  return inferBroadcast(location, operands, 0, types, to);
}
CHARONIA_INFER(CompareOp) {
  if (getElementTypeOrSelf(operands[0]) != getElementTypeOrSelf(operands[1]))
    return emitOptionalError(location,
                             "compares operands of one element type, not ",
                             typeToString(operands[0].getType()), " and ",
                             typeToString(operands[1].getType()));
  return inferBroadcast(location, operands, 0, types,
                        IntegerType::get(context, 1));
}
CHARONIA_INFER(SelectOp) {
  if (getElementTypeOrSelf(operands[1]) != getElementTypeOrSelf(operands[2]))
    return emitOptionalError(
        location, "chooses between operands of one element type, not ",
        typeToString(operands[1].getType()), " and ",
        typeToString(operands[2].getType()));
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

// Scalar rules that are more than an expression.

using MaybeScalar = std::optional<Scalar>;

MaybeScalar GeluOp::evaluateScalar(ArrayRef<Scalar> operands) {
  double x = operands[0].real;
  double inner =
      getTanh() ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))
                : std::erf(x / M_SQRT2);
  return scalar::result(0.5 * x * (1 + inner));
}

MaybeScalar CastOp::evaluateScalar(ArrayRef<Scalar> operands) {
  Scalar x = operands[0];
  Type to = getTo();
  bool fromFloat = isa<FloatType>(getElementTypeOrSelf(getInput()));
  if (isa<FloatType>(to))
    return fromFloat ? x : scalar::result(double(x.integer));
  if (to.isInteger(1))
    return scalar::result(fromFloat ? x.real != 0 : x.integer != 0);
  if (!fromFloat)
    return x;
  // What does not fit has no portable value.
  unsigned bits = to.isIndex() ? 64 : to.getIntOrFloatBitWidth();
  double limit = std::ldexp(1.0, bits - !to.isUnsignedInteger());
  double low = to.isUnsignedInteger() ? 0 : -limit;
  double truncated = std::trunc(x.real);
  if (!(truncated >= low && truncated < limit && truncated < 0x1p63))
    return std::nullopt;
  return scalar::result(static_cast<int64_t>(truncated));
}

/// Integers lose their high bits, which another number that wrapped alike has
/// otherwise; what is wider, a float or a truth value tells them apart.
bool CastOp::commutesWithWrapping(unsigned) {
  auto from = dyn_cast<IntegerType>(getElementTypeOrSelf(getInput())),
       to = dyn_cast<IntegerType>(getTo());
  return from && to && to.getWidth() > 1 && to.getWidth() <= from.getWidth();
}

template <typename T> static bool holds(Predicate predicate, T a, T b) {
  switch (predicate) {
  case Predicate::eq:
    return a == b;
  case Predicate::ne:
    return a != b;
  case Predicate::lt:
    return a < b;
  case Predicate::le:
    return a <= b;
  case Predicate::gt:
    return a > b;
  case Predicate::ge:
    return a >= b;
  }
  llvm_unreachable("all predicates are above");
}

MaybeScalar CompareOp::evaluateScalar(ArrayRef<Scalar> x) {
  bool isReal = isa<FloatType>(getElementTypeOrSelf(getLhs()));
  return scalar::result(
      isReal ? holds(getPredicate(), x[0].real, x[1].real)
             : holds(getPredicate(), x[0].integer, x[1].integer));
}

MaybeScalar SelectOp::evaluateScalar(ArrayRef<Scalar> x) {
  return x[x[0].integer ? 1 : 2];
}

std::optional<RealRange> charonia::graph::rangeOfNumbers(Value value,
                                                         RealRange floats) {
  auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(value));
  if (!type)
    return floats;
  unsigned bits = type.getWidth();
  if (bits > 16)
    return std::nullopt;
  double numbers = std::ldexp(1.0, bits);
  return bits == 1 || type.isUnsigned()
             ? RealRange{0, numbers - 1}
             : RealRange{-numbers / 2, numbers / 2 - 1};
}

std::optional<RealRange>
charonia::graph::chosenRange(GraphOpInterface op,
                             ArrayRef<RealRange> operands) {
  if (op.getRole() != OpRole::View && op.getRole() != OpRole::Indexing)
    return std::nullopt;
  std::optional<RealRange> result;
  for (auto [operand, range] : llvm::zip(op->getOperands(), operands))
    if (isa<FloatType>(getElementTypeOrSelf(operand)))
      result = result ? scalar::hull(*result, range) : range;
  return result;
}

// Symbolic contents. Each rule takes known elements and may give null.

static SymbolicTensor evaluateElements(GraphOpInterface op,
                                       ArrayRef<SymbolicTensor> operands) {
  SmallVector<SymbolicTensor> inputs = broadcastOperands(op, operands);
  if (llvm::any_of(inputs, [](const SymbolicTensor &t) { return !t; }))
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  for (size_t i = 0, e = inputs[0].elements->size(); i < e; ++i) {
    SmallVector<AffineExpr, 3> terms;
    for (const SymbolicTensor &input : inputs)
      terms.push_back((*input.elements)[i]);
    bool known = llvm::all_of(terms, [](AffineExpr t) { return (bool)t; });
    AffineExpr value = known ? op.evaluateElement(terms, {}) : AffineExpr();
    result.elements->push_back(value ? simplify(value) : value);
  }
  return result;
}

Exprs charonia::graph::readAt(GraphOpInterface op, unsigned operand,
                              ArrayRef<AffineExpr> coordinates) {
  return applyMap(op.getOperandMap(operand), coordinates);
}

AffineExpr charonia::graph::composeContent(GraphOpInterface op,
                                           ArrayRef<AffineExpr> coordinates,
                                           ArrayRef<AffineExpr> extents,
                                           ContentDemand demand) {
  OpRole role = op.getRole();
  if (role != OpRole::View && role != OpRole::Pointwise)
    return {};
  Exprs elements;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (!op.getOperandMap(i))
      return {};
    AffineExpr element = demand(i, readAt(op, i, coordinates));
    if (!element)
      return {};
    elements.push_back(element);
  }
  return role == OpRole::View ? elements[0]
                              : op.evaluateElement(elements, extents);
}

static AffineExpr boolean(bool value, MLIRContext *context) {
  return getAffineConstantExpr(value, context);
}
static std::optional<bool> isLess(AffineExpr a, AffineExpr b,
                                  ArrayRef<AffineExpr> extents) {
  if (isNonNegative(b - a - 1, extents))
    return true;
  if (isNonNegative(a - b, extents))
    return false;
  return std::nullopt;
}
static std::optional<bool> isEqual(AffineExpr a, AffineExpr b,
                                   ArrayRef<AffineExpr> extents) {
  if (simplify(a - b) == 0)
    return true;
  if (isLess(a, b, extents) == true || isLess(b, a, extents) == true)
    return false;
  return std::nullopt;
}

#define EVALUATE(OpName, EXPRESSION)                                           \
  AffineExpr OpName::evaluateElement(ArrayRef<AffineExpr> x,                   \
                                     ArrayRef<AffineExpr> extents) {           \
    return EXPRESSION;                                                         \
  }                                                                            \
  SymbolicTensor OpName::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) { \
    return evaluateElements(*this, operands);                                  \
  }

EVALUATE(NegOp, -x[0])
EVALUATE(AddOp, x[0] + x[1])
EVALUATE(SubOp, x[0] - x[1])
EVALUATE(MulOp, x[0] * x[1])

/// Integers truncate toward zero.
static AffineExpr truncatedQuotient(AffineExpr a, AffineExpr b,
                                    ArrayRef<AffineExpr> extents) {
  if (simplify(b) == 0)
    return {};
  if (!isNonNegative(b - 1, extents)) {
    if (!isNonNegative(-b - 1, extents))
      return {};
    a = -a;
    b = -b;
  }
  if (isNonNegative(a, extents))
    return a.floorDiv(b);
  if (isNonNegative(-a, extents))
    return -(-a).floorDiv(b);
  return {};
}
EVALUATE(DivOp, truncatedQuotient(x[0], x[1], extents))
EVALUATE(ModOp, isNonNegative(x[1] - 1, extents) ? x[0] % x[1] : AffineExpr())

static AffineExpr choose(std::optional<bool> first, AffineExpr a,
                         AffineExpr b) {
  return !first ? AffineExpr() : *first ? a : b;
}
EVALUATE(MaxOp, choose(isLess(x[0], x[1], extents), x[1], x[0]))
EVALUATE(MinOp, choose(isLess(x[0], x[1], extents), x[0], x[1]))

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

static AffineExpr castElement(AffineExpr x, Type to,
                              ArrayRef<AffineExpr> extents) {
  if (to.isInteger(1)) {
    auto zero = isEqual(x, getAffineConstantExpr(0, x.getContext()), extents);
    return zero ? boolean(!*zero, x.getContext()) : AffineExpr();
  }
  if (!to.isIntOrIndex())
    return {};
  // Sizes fit into 32 bits as the framework that wrote the model takes for
  // granted; what is narrower must be seen to fit.
  if (to.isIndex() || to.getIntOrFloatBitWidth() >= 32)
    return to.isUnsignedInteger() && !isNonNegative(x, extents) ? AffineExpr()
                                                                : x;
  auto value = constantOf(x);
  unsigned bits = to.getIntOrFloatBitWidth();
  bool fits = value && (to.isUnsignedInteger()
                            ? llvm::isUIntN(bits, *value) && *value >= 0
                            : llvm::isIntN(bits, *value));
  return fits ? x : AffineExpr();
}
EVALUATE(CastOp, castElement(x[0], getTo(), extents))

static AffineExpr compareElements(Predicate predicate, AffineExpr a,
                                  AffineExpr b, ArrayRef<AffineExpr> extents) {
  std::optional<bool> answer;
  switch (predicate) {
  case Predicate::eq:
  case Predicate::ne:
    answer = isEqual(a, b, extents);
    break;
  case Predicate::lt:
  case Predicate::ge:
    answer = isLess(a, b, extents);
    break;
  case Predicate::gt:
  case Predicate::le:
    answer = isLess(b, a, extents);
    break;
  }
  if (!answer)
    return {};
  bool negate = predicate == Predicate::ne || predicate == Predicate::ge ||
                predicate == Predicate::le;
  return boolean(*answer != negate, a.getContext());
}
EVALUATE(CompareOp, compareElements(getPredicate(), x[0], x[1], extents))

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

AffineExpr SelectOp::evaluateElement(ArrayRef<AffineExpr> x,
                                     ArrayRef<AffineExpr>) {
  auto condition = constantOf(x[0]);
  return condition ? x[*condition ? 1 : 2] : AffineExpr();
}

// Conditions of masks.

std::optional<Exprs> AndOp::getConditionsAt(ArrayRef<AffineExpr> coordinates,
                                            ContentDemand,
                                            ConditionDemand conditions) {
  auto a = conditions(0, readAt(*this, 0, coordinates));
  auto b = a ? conditions(1, readAt(*this, 1, coordinates)) : std::nullopt;
  if (!b)
    return std::nullopt;
  a->append(*b);
  return a;
}

std::optional<Exprs> NotOp::getConditionsAt(ArrayRef<AffineExpr> coordinates,
                                            ContentDemand,
                                            ConditionDemand conditions) {
  // not (e >= 0) is -e - 1 >= 0.
  auto inner = conditions(0, readAt(*this, 0, coordinates));
  if (!inner || inner->size() != 1)
    return std::nullopt;
  return Exprs{-(*inner)[0] - 1};
}

std::optional<Exprs>
CompareOp::getConditionsAt(ArrayRef<AffineExpr> coordinates,
                           ContentDemand contents, ConditionDemand) {
  AffineExpr a = contents(0, readAt(*this, 0, coordinates)),
             b = contents(1, readAt(*this, 1, coordinates));
  if (!a || !b)
    return std::nullopt;
  switch (getPredicate()) {
  case Predicate::lt:
    return Exprs{b - a - 1};
  case Predicate::le:
    return Exprs{b - a};
  case Predicate::gt:
    return Exprs{a - b - 1};
  case Predicate::ge:
    return Exprs{a - b};
  default:
    return std::nullopt;
  }
}

// Linear dependence.

static Linear shiftedBy(unsigned operand, double factor, double shiftFactor) {
  Linear linear;
  linear.factor = factor;
  linear.shift = operand;
  linear.shiftFactor = shiftFactor;
  return linear;
}

std::optional<Linear> AddOp::getLinear(unsigned operand) {
  return shiftedBy(1 - operand, 1, 1);
}
std::optional<Linear> SubOp::getLinear(unsigned operand) {
  return operand == 0 ? shiftedBy(1, 1, -1) : shiftedBy(0, -1, 1);
}
std::optional<Linear> MulOp::getLinear(unsigned operand) {
  Linear linear;
  linear.scale = 1 - operand;
  return linear;
}
std::optional<Linear> DivOp::getLinear(unsigned operand) {
  if (operand != 0 || !isa<FloatType>(getElementTypeOrSelf(getLhs())))
    return std::nullopt;
  Linear linear;
  linear.divisor = 1;
  return linear;
}
std::optional<Linear> NegOp::getLinear(unsigned) {
  Linear linear;
  linear.factor = -1;
  return linear;
}
std::optional<Linear> CastOp::getLinear(unsigned) {
  if (!isa<FloatType>(getElementTypeOrSelf(getInput())) ||
      !isa<FloatType>(getTo()))
    return std::nullopt;
  return Linear();
}
