#include "frontends/common/Operands.h"
#include "frontends/common/Diagnostic.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;

llvm::FailureOr<int64_t> Operands::axis(int64_t value, int64_t rank) {
  if (value < -rank || value >= rank)
    return emitter.fail("axis " + Twine(value) + " is out of range for " +
                        Twine(rank) + " dimensions");
  return value < 0 ? value + rank : value;
}
llvm::FailureOr<SmallVector<int64_t>>
Operands::axes(llvm::ArrayRef<int64_t> values, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : values) {
    auto checked = axis(value, rank);
    if (failed(checked))
      return llvm::failure();
    if (llvm::is_contained(result, *checked))
      return emitter.fail("axis " + Twine(value) + " appears twice");
    result.push_back(*checked);
  }
  return result;
}

llvm::LogicalResult Operands::dependsOnData(unsigned i) {
  std::string what = emitter.findUnknown(input(i));
  if (!what.empty())
    return emitter.fail("input " + Twine(i) + " ('" + printable(inputName(i)) +
                            "') follows from sizes, but " + what,
                        "fix these sizes with --shape, or narrow their ranges" +
                            otherRemedy());
  return emitter.fail(
      "shapes that depend on data are not supported: input " + Twine(i) +
          " ('" + printable(inputName(i)) + "')",
      "shapes have to follow from the shapes of the model's inputs: replace "
      "that input by a constant" +
          otherRemedy());
}
llvm::FailureOr<Exprs> Operands::partlyKnown(unsigned i) {
  if (!has(i))
    return emitter.fail("input " + Twine(i) + " is missing");
  graph::SymbolicTensor contents = emitter.evaluateSizes(input(i));
  if (contents)
    return Exprs(contents.elements->begin(), contents.elements->end());
  auto type = llvm::cast<mlir::RankedTensorType>(input(i).getType());
  // A few integers that nothing is known of may still follow from other sizes.
  if (type.hasStaticShape() && type.getRank() <= 1 &&
      type.getNumElements() <= 32 && type.getElementType().isIntOrIndex())
    return Exprs(type.getNumElements());
  return dependsOnData(i);
}
llvm::FailureOr<Exprs> Operands::known(unsigned i) {
  auto elements = partlyKnown(i);
  if (succeeded(elements) &&
      !llvm::all_of(*elements, [](mlir::AffineExpr e) { return bool(e); }))
    return dependsOnData(i);
  return elements;
}
llvm::FailureOr<SmallVector<int64_t>> Operands::constants(unsigned i) {
  auto elements = known(i);
  if (failed(elements))
    return llvm::failure();
  SmallVector<int64_t> values;
  for (mlir::AffineExpr element : *elements) {
    auto value = graph::constantOf(element);
    if (!value)
      return emitter.fail("input " + Twine(i) + " ('" +
                              printable(inputName(i)) +
                              "') is not supported unless it is constant, "
                              "but is " +
                              emitter.getSymbols().toString(element),
                          "fix that size with --shape");
    values.push_back(*value);
  }
  return values;
}
llvm::FailureOr<SmallVector<double>> Operands::constantNumbers(unsigned i) {
  if (!has(i))
    return emitter.fail("input " + Twine(i) + " is missing");
  auto constant = emitter.constantOf(input(i));
  if (constant && llvm::isa<mlir::FloatType>(constant.getElementType())) {
    SmallVector<double> values;
    for (llvm::APFloat value : constant.getValues<llvm::APFloat>()) {
      bool loses;
      value.convert(llvm::APFloat::IEEEdouble(),
                    llvm::APFloat::rmNearestTiesToEven, &loses);
      values.push_back(value.convertToDouble());
    }
    return values;
  }
  if (!constant && !emitter.evaluateNumbers(input(i)).empty())
    return emitter.fail("input " + Twine(i) + " ('" + printable(inputName(i)) +
                            "') is not supported unless it is constant, but "
                            "follows from sizes",
                        "fix these sizes with --shape" + otherRemedy());
  if (!constant && isFloat(input(i)))
    return emitter.fail("input " + Twine(i) + " ('" + printable(inputName(i)) +
                            "') is not supported unless it is constant",
                        "replace it by a constant" + otherRemedy());
  auto integers = constants(i);
  if (failed(integers))
    return llvm::failure();
  return SmallVector<double>(integers->begin(), integers->end());
}
llvm::FailureOr<int64_t> Operands::constantInteger(unsigned i) {
  auto values = constants(i);
  if (failed(values))
    return llvm::failure();
  if (values->size() != 1)
    return emitter.fail("input " + Twine(i) + " has to have one element, not " +
                        Twine(values->size()));
  return values->front();
}
llvm::FailureOr<double> Operands::constantNumber(unsigned i) {
  auto values = constantNumbers(i);
  if (failed(values))
    return llvm::failure();
  if (values->size() != 1)
    return emitter.fail("input " + Twine(i) + " has to have one element, not " +
                        Twine(values->size()));
  return values->front();
}
llvm::LogicalResult Operands::needsRank(unsigned i, int64_t low, int64_t high) {
  int64_t rank = rankOf(input(i));
  if (rank >= low && rank <= high)
    return llvm::success();
  std::string range = low == high
                          ? std::to_string(low)
                          : std::to_string(low) + " to " + std::to_string(high);
  return emitter.fail("input " + Twine(i) + " has to have " + range +
                      " dimensions, not " + Twine(rank));
}
