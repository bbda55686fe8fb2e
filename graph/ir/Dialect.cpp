#include "graph/ir/Dialect.h"
#include "graph/ir/Definitions.h"
#include "graph/ir/Fold.h"
#include "graph/ir/FormedOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"

using namespace mlir;
using namespace charonia::graph;

#include "graph/ir/GraphDialect.cpp.inc"
#include "graph/ir/GraphEnums.cpp.inc"
#include "graph/ir/GraphInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "graph/ir/GraphOps.cpp.inc"
#define GET_OP_CLASSES
#include "graph/ir/GraphFormedOps.cpp.inc"

namespace {
/// What operators have no folder of their own for.
struct ConstantFolder : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  LogicalResult fold(Operation *op, ArrayRef<Attribute> operands,
                     SmallVectorImpl<OpFoldResult> &results) const final {
    Attribute value = foldConstants(op, operands);
    if (!value)
      return failure();
    results.push_back(value);
    return success();
  }
};
} // namespace

void GraphDialect::initialize() {
  addInterfaces<ConstantFolder>();
  weights = std::make_shared<WeightStore>();
  addOperations<
#define GET_OP_LIST
#include "graph/ir/GraphOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "graph/ir/GraphFormedOps.cpp.inc"
      >();
}

Operation *GraphDialect::materializeConstant(OpBuilder &builder,
                                             Attribute value, Type type,
                                             Location location) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, location, elements);
}

LogicalResult GraphDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  if (attribute.getName() == "graph.constraints")
    return verifyConstraints(op, attribute.getValue());
  if (attribute.getName() == "graph.definitions")
    return verifyDefinitions(op, attribute.getValue());
  if (attribute.getName() != "graph.symbols")
    return success();
  auto array = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!array || !isa<ModuleOp>(op))
    return op->emitError(
        "graph.symbols must be an array attribute of a module");
  for (auto [i, entry] : llvm::enumerate(array)) {
    auto fields = dyn_cast<DictionaryAttr>(entry);
    if (!fields || !fields.getAs<StringAttr>("name"))
      return op->emitError("graph.symbols[")
             << i << "] must be a dictionary with a name";
    for (StringRef key : {"min", "opt", "max", "divisor"})
      if (!fields.getAs<IntegerAttr>(key))
        return op->emitError("graph.symbols[")
               << i << "] lacks the integer " << key;
  }
  for (auto [i, s] : llvm::enumerate(getSymbols(cast<ModuleOp>(op))))
    if (s.min < 0 || s.opt < s.min || s.max < s.opt || s.divisor < 1)
      return op->emitError("graph.symbols[")
             << i << "] needs 0 <= min <= opt <= max and divisor >= 1";
  return success();
}
