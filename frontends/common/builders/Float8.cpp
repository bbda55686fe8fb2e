#include "frontends/common/builders/Float8.h"
#include "graph/ir/Float8.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::Value;

Value charonia::frontend::buildSaturated(Value x, mlir::Type element,
                                         Emitter &e) {
  mlir::Type from = elementOf(x);
  if (!from || !element || !graph::isFloat8(element) || from == element)
    return e.cast(x, element);
  if (!llvm::isa<mlir::FloatType>(from) || graph::isFloat8(from)) {
    from = e.getBuilder().getF32Type();
    x = e.cast(x, from);
  }
  const llvm::fltSemantics &semantics =
      llvm::cast<mlir::FloatType>(element).getFloatSemantics();
  double largest = llvm::APFloat::getLargest(semantics).convertToDouble();
  x = e.min(e.max(x, e.scalar(-largest, from)), e.scalar(largest, from));
  return e.cast(x, element);
}
