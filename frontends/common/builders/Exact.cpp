#include "frontends/common/builders/Exact.h"
#include "graph/ir/Exact.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::Value;

mlir::Type charonia::frontend::exactType(mlir::Type element,
                                         llvm::ArrayRef<double> numbers) {
  auto type = llvm::dyn_cast_or_null<mlir::FloatType>(element);
  if (!type || type.getWidth() >= 32)
    return element;
  bool isExact = llvm::all_of(
      numbers, [&](double number) { return graph::isExact(number, type); });
  return isExact ? element : mlir::Float32Type::get(element.getContext());
}

Value charonia::frontend::computeExactly(Value x,
                                         llvm::ArrayRef<double> numbers,
                                         llvm::function_ref<Value(Value)> build,
                                         Emitter &e) {
  mlir::Type element = elementOf(x);
  return e.cast(build(e.cast(x, exactType(element, numbers))), element);
}
