#include "graph/ir/StoredWeight.h"
#include "graph/ops/Common.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace charonia::graph;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// An element of a constant as an expression; null beyond 63 bits.
static AffineExpr toExpr(const APInt &value, Type element) {
  bool isUnsigned = element.isInteger(1) || element.isUnsignedInteger();
  if (isUnsigned ? value.getActiveBits() > 63 : value.getSignificantBits() > 64)
    return {};
  return getAffineConstantExpr(isUnsigned ? int64_t(value.getZExtValue())
                                          : value.getSExtValue(),
                               element.getContext());
}

std::optional<RealRange> ConstantOp::getRange(ArrayRef<RealRange>) {
  auto values = dyn_cast<DenseFPElementsAttr>(getValue());
  if (!values)
    return std::nullopt;
  std::optional<RealRange> range;
  auto include = [&](APFloat value) {
    bool inexact;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &inexact);
    double v = value.convertToDouble();
    if (!std::isnan(v))
      range = range ? scalar::hull(*range, {v, v}) : RealRange{v, v};
  };
  if (values.isSplat())
    include(values.getSplatValue<APFloat>());
  else
    for (APFloat value : values)
      include(value);
  return range;
}

SymbolicTensor ConstantOp::evaluateSymbolic(ArrayRef<SymbolicTensor>) {
  auto values = dyn_cast<DenseIntElementsAttr>(getValue());
  if (!values)
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  for (const APInt &value : values)
    result.elements->push_back(toExpr(value, values.getElementType()));
  return result;
}

LogicalResult WeightOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError("a weight has a static shape, not ") << type;
  if (const Weight *weight = storedWeight(*this);
      weight && weight->type != type)
    return emitOpError("weight \"")
           << getName() << "\" is a " << weight->type << ", not a " << type;
  return success();
}

/// What steps are told of how many they are and where their outputs go.
static LogicalResult verifySteps(Operation *op, AffineMap counter,
                                 AffineMap count, AffineMap places,
                                 TypeRange outputs, TypeRange results) {
  for (AffineMap map : {counter, count, places})
    if (map.getNumDims() != 0)
      return op->emitOpError("tells of its steps by maps without dims");
  if (counter.getNumResults() != 1 ||
      !isa<AffineSymbolExpr>(counter.getResult(0)) ||
      count.getNumResults() != 1 || places.getNumResults() != outputs.size() ||
      results.size() != outputs.size())
    return op->emitOpError("needs one symbol that counts, one number of steps, "
                           "and a place and a result for each output");
  for (auto [output, result] : llvm::zip(outputs, results)) {
    Exprs shape = getShape(cast<RankedTensorType>(output));
    shape.insert(shape.begin(), count.getResult(0));
    if (getElementTypeOrSelf(output) != getElementTypeOrSelf(result) ||
        getShape(cast<RankedTensorType>(result)) != shape)
      return op->emitOpError("stacks ")
             << output << " to a " << result << ", which is no element of each";
  }
  return success();
}

LogicalResult IterateOp::verify() {
  if (TypeRange(getCarried()) != TypeRange(getNext()) ||
      getNumResults() < getCarried().size() ||
      TypeRange(getResults()).take_front(getCarried().size()) !=
          TypeRange(getCarried()))
    return emitOpError("carries values whose types change");
  return verifySteps(*this, getCounter(), getCount(), getPlaces(),
                     TypeRange(getOutputs()),
                     TypeRange(getResults()).drop_front(getCarried().size()));
}

LogicalResult RepeatOp::verify() {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      *this, getCalleeAttr());
  uint64_t carried = getCarried();
  if (!callee || callee.isExternal())
    return emitOpError("names no function");
  TypeRange results = callee.getResultTypes();
  if (TypeRange(callee.getArgumentTypes()) != TypeRange(getOperands()) ||
      carried > getNumOperands() || carried > results.size() ||
      results.size() != getNumResults() ||
      results.take_front(carried) !=
          TypeRange(getOperands()).take_front(carried) ||
      results.take_front(carried) !=
          TypeRange(getResults()).take_front(carried))
    return emitOpError("does not fit the function ") << getCallee();
  return verifySteps(*this, getCounter(), getCount(), getPlaces(),
                     results.drop_front(carried),
                     TypeRange(getResults()).drop_front(carried));
}

LogicalResult DimsOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape() || getValues().getNumDims() != 0 ||
      (int64_t)getValues().getNumResults() != type.getNumElements())
    return emitOpError("needs a static result with one expression without dims "
                       "for each element");
  return success();
}

SymbolicTensor DimsOp::evaluateSymbolic(ArrayRef<SymbolicTensor>) {
  return {SmallVector<AffineExpr>(getValues().getResults())};
}

CHARONIA_INFER(ShapeOfOp) {
  auto input = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!input)
    return emitOptionalError(location, "needs a ranked tensor");
  types.push_back(
      RankedTensorType::get({input.getRank()}, IntegerType::get(context, 64)));
  return success();
}

SymbolicTensor ShapeOfOp::evaluateSymbolic(ArrayRef<SymbolicTensor>) {
  return {SmallVector<AffineExpr>(getShape(getInput()))};
}

LogicalResult KernelOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("block arguments must have the types of the inputs");
  if (body.empty() || !isa<YieldOp>(body.back()))
    return emitOpError("must end in graph.yield");
  if (body.back().getOperandTypes() != getResultTypes())
    return emitOpError("graph.yield must have the types of the results");
  return success();
}

/// The element at coordinates that are constants.
static AffineExpr elementAt(Type type, const SymbolicTensor &contents,
                            ArrayRef<AffineExpr> coordinates) {
  SmallVector<int64_t> at;
  for (AffineExpr e : coordinates) {
    auto constant = constantOf(simplify(e));
    if (!constant)
      return {};
    at.push_back(*constant);
  }
  auto position = linearize(at, cast<RankedTensorType>(type).getShape());
  return contents && position ? (*contents.elements)[*position] : AffineExpr();
}

AffineExpr ConstantOp::getContentAt(ArrayRef<AffineExpr> coordinates,
                                    ArrayRef<AffineExpr>, ContentDemand) {
  auto values = dyn_cast<DenseIntElementsAttr>(getValue());
  if (!values || values.empty())
    return {};
  if (values.isSplat())
    return toExpr(values.getSplatValue<APInt>(), values.getElementType());
  if (values.getNumElements() > 1024)
    return {};
  return elementAt(getType(), evaluateSymbolic({}), coordinates);
}

AffineExpr DimsOp::getContentAt(ArrayRef<AffineExpr> coordinates,
                                ArrayRef<AffineExpr>, ContentDemand) {
  return elementAt(getType(), evaluateSymbolic({}), coordinates);
}

std::optional<SmallVector<int64_t>> WeightOp::getStoredIntegers() {
  const Weight *weight = storedWeight(*this);
  if (!weight || !weight->type.getElementType().isSignlessInteger())
    return std::nullopt;
  unsigned bits = weight->type.getElementType().getIntOrFloatBitWidth();
  size_t count = weight->type.getNumElements();
  if ((bits != 32 && bits != 64) || weight->bytes.size() != count * bits / 8)
    return std::nullopt;
  SmallVector<int64_t> integers(count);
  for (size_t i = 0; i < count; ++i) {
    const char *at = weight->bytes.data() + i * (bits / 8);
    integers[i] = bits == 64 ? (int64_t)llvm::support::endian::read64le(at)
                             : (int32_t)llvm::support::endian::read32le(at);
  }
  return integers;
}

/// The least and the greatest of numbers, NaN aside; nothing where all are.
template <typename T>
static std::optional<RealRange> rangeOfElements(ArrayRef<char> bytes) {
  // Several at a time: all weights of the model are looked at.
  constexpr size_t lanes = 16;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  T low[lanes], high[lanes];
  std::fill_n(low, lanes, infinity);
  std::fill_n(high, lanes, -infinity);
  size_t count = bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; i += lanes) {
    T values[lanes] = {};
    size_t n = std::min(lanes, count - i);
    std::memcpy(values, bytes.data() + i * sizeof(T), n * sizeof(T));
    std::fill(values + n, values + lanes, values[0]);
    for (size_t lane = 0; lane < lanes; ++lane) {
      // NaN is neither.
      T v = values[lane];
      low[lane] = v < low[lane] ? v : low[lane];
      high[lane] = v > high[lane] ? v : high[lane];
    }
  }
  RealRange range{*std::min_element(low, low + lanes),
                  *std::max_element(high, high + lanes)};
  return range.low <= range.high ? std::optional(range) : std::nullopt;
}

/// The same of floats of 16 bits, which are ordered as integers are once signs
/// are taken off.
static std::optional<RealRange> rangeOfShort(ArrayRef<char> bytes,
                                             const llvm::fltSemantics &kind) {
  auto bitsOf = [](const APFloat &number) {
    return (int)number.bitcastToAPInt().getZExtValue();
  };
  int infinity = bitsOf(APFloat::getInf(kind)), low = infinity + 1,
      high = -infinity - 1;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    unsigned bits = llvm::support::endian::read16le(bytes.data() + i);
    int size = bits & 0x7fff, value = bits & 0x8000 ? -size : size;
    if (size > infinity)
      continue; // NaN
    low = std::min(low, value);
    high = std::max(high, value);
  }
  auto number = [&](int value) {
    APFloat size(kind, llvm::APInt(16, std::abs(value)));
    return std::copysign(size.convertToDouble(), value);
  };
  return low <= high ? std::optional(RealRange{number(low), number(high)})
                     : std::nullopt;
}

/// Of types that have room for what is made of weights.
std::optional<RealRange> WeightOp::getRange(ArrayRef<RealRange>) {
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(getType()));
  const Weight *weight = storedWeight(*this);
  if (!type || !weight || weight->bytes.empty())
    return std::nullopt;
  if (type.isF32())
    return rangeOfElements<float>(weight->bytes);
  if (type.isF64())
    return rangeOfElements<double>(weight->bytes);
  if (type.isF16() || type.isBF16())
    return rangeOfShort(weight->bytes, type.getFloatSemantics());
  return std::nullopt;
}
