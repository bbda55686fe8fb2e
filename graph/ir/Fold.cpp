#include "graph/ir/Fold.h"
#include "graph/ir/Dialect.h"
#include "graph/ir/Elements.h"

using namespace mlir;
using namespace charonia::graph;

static constexpr int64_t maxElements = 1024;

/// Elements of a constant, one for a splat; nothing for types without a rule.
static std::optional<SmallVector<Scalar>> read(DenseElementsAttr attribute) {
  SmallVector<Scalar> values;
  Type element = attribute.getElementType();
  int64_t count = attribute.isSplat() ? 1 : attribute.getNumElements();
  if (isa<FloatType>(element)) {
    for (APFloat value :
         llvm::make_range(attribute.value_begin<APFloat>(),
                          attribute.value_begin<APFloat>() + count)) {
      bool inexact;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &inexact);
      values.push_back({value.convertToDouble(), 0});
    }
    return values;
  }
  if (!element.isIntOrIndex())
    return std::nullopt;
  bool isUnsigned = element.isInteger(1) || element.isUnsignedInteger();
  for (APInt value : llvm::make_range(attribute.value_begin<APInt>(),
                                      attribute.value_begin<APInt>() + count)) {
    if (isUnsigned && value.getActiveBits() > 63)
      return std::nullopt;
    values.push_back(
        {0, isUnsigned ? int64_t(value.getZExtValue()) : value.getSExtValue()});
  }
  return values;
}

static Attribute write(RankedTensorType type, ArrayRef<Scalar> values) {
  Type element = type.getElementType();
  SmallVector<Attribute> attributes;
  for (const Scalar &value : values) {
    if (auto real = dyn_cast<FloatType>(element)) {
      APFloat number(value.real);
      bool inexact;
      number.convert(real.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                     &inexact);
      attributes.push_back(FloatAttr::get(real, number));
    } else {
      unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
      attributes.push_back(IntegerAttr::get(
          element, APInt(64, value.integer, /*isSigned=*/true).trunc(bits)));
    }
  }
  return DenseElementsAttr::get(type, attributes);
}

static Attribute foldPointwise(GraphOpInterface op, RankedTensorType type,
                               ArrayRef<DenseElementsAttr> operands) {
  SmallVector<SmallVector<Scalar>> inputs;
  bool uniform = true;
  for (DenseElementsAttr operand : operands) {
    if (!operand.isSplat() && operand.getNumElements() > maxElements)
      return {};
    auto values = read(operand);
    if (!values || values->empty())
      return {};
    uniform &= values->size() == 1;
    inputs.push_back(std::move(*values));
  }
  if (!uniform && type.getNumElements() > maxElements)
    return {};

  SmallVector<AffineMap> maps;
  for (unsigned i = 0; i < operands.size(); ++i)
    maps.push_back(op.getOperandMap(i));
  SmallVector<Scalar> results;
  bool known = true;
  auto evaluateAt = [&](ArrayRef<int64_t> at) {
    SmallVector<Scalar, 3> elements;
    for (auto [values, map, operand] :
         llvm::zip_equal(inputs, maps, operands)) {
      SmallVector<int64_t> coordinates;
      for (AffineExpr e : map.getResults())
        coordinates.push_back(evaluate(e, at, {}).value_or(0));
      auto position = linearize(coordinates, operand.getType().getShape());
      elements.push_back(values[values.size() == 1 ? 0 : position.value_or(0)]);
    }
    auto result = op.evaluateScalar(elements);
    known &= result.has_value();
    results.push_back(result.value_or(Scalar()));
  };
  if (uniform)
    evaluateAt(SmallVector<int64_t>(type.getRank(), 0));
  else
    forEachElement(type, evaluateAt);
  return known ? write(type, results) : Attribute();
}

/// Views and indexing move elements: with a symbol for each element of the
/// data, symbolic evaluation tells which one goes where.
static Attribute foldMove(GraphOpInterface op, RankedTensorType type,
                          ArrayRef<DenseElementsAttr> operands) {
  MLIRContext *context = op->getContext();
  auto isData = [&](DenseElementsAttr operand) {
    return operand.getElementType() == type.getElementType();
  };
  // Equal elements stay equal wherever they go.
  if (op.getRole() == OpRole::View && operands[0].isSplat())
    return DenseElementsAttr(operands[0]).resizeSplat(type);
  if (type.getNumElements() > maxElements)
    return {};

  SmallVector<SymbolicTensor> contents;
  SmallVector<Attribute> elements;
  for (DenseElementsAttr operand : operands) {
    if (operand.getNumElements() > maxElements)
      return {};
    SymbolicTensor tensor;
    tensor.elements.emplace();
    if (isData(operand)) {
      for (Attribute value : operand.getValues<Attribute>()) {
        tensor.elements->push_back(
            getAffineSymbolExpr(elements.size(), context));
        elements.push_back(value);
      }
    } else {
      auto values = read(operand);
      if (!values)
        return {};
      for (int64_t i = 0; i < operand.getNumElements(); ++i)
        tensor.elements->push_back(getAffineConstantExpr(
            (*values)[values->size() == 1 ? 0 : i].integer, context));
    }
    contents.push_back(std::move(tensor));
  }
  SymbolicTensor moved = op.evaluateSymbolic(contents);
  if (!moved || (int64_t)moved.elements->size() != type.getNumElements())
    return {};
  SmallVector<Attribute> results;
  for (AffineExpr e : *moved.elements) {
    auto symbol = dyn_cast_or_null<AffineSymbolExpr>(e);
    if (!symbol || symbol.getPosition() >= elements.size())
      return {};
    results.push_back(elements[symbol.getPosition()]);
  }
  return DenseElementsAttr::get(type, results);
}

Attribute charonia::graph::foldConstants(Operation *op,
                                         ArrayRef<Attribute> attributes) {
  auto graphOp = dyn_cast<GraphOpInterface>(op);
  if (!graphOp || attributes.empty())
    return {};
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<DenseElementsAttr> operands;
  for (Attribute attribute : attributes) {
    auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute);
    if (!dense || dense.getNumElements() == 0)
      return {};
    operands.push_back(dense);
  }
  if (!type.hasStaticShape() || type.getNumElements() == 0)
    return {};
  switch (graphOp.getRole()) {
  case OpRole::Pointwise:
    return foldPointwise(graphOp, type, operands);
  case OpRole::View:
  case OpRole::Indexing:
    return foldMove(graphOp, type, operands);
  default:
    return {};
  }
}
